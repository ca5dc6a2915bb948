"""Candidates in processes of their own, asked from this one as the examiner asks; and the same text in one process."""

from __future__ import annotations

import socket
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from graders.exam.examiner import grants
from graders.exam.peer import Peer
from graders.kernels.nursery import Child, Spawn, Zygote, best_level

PATIENCE_S = 60


class Candidate:
    """One candidate. `candidate["f"]` is what a test sees of its name f."""

    def __init__(self, zygote: Zygote, source: str) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE_S)
        argument = {"source": textwrap.dedent(source)}
        with theirs:
            spawn = Spawn(entry="served:serve", argument=argument, isolation=best_level())
            self.child: Child = zygote.spawn(spawn, [theirs.fileno()])
        self.peer = Peer(ours, 2, allows=grants, tell=False)

    def __getitem__(self, name: str) -> Any:
        return self.names(name)[name]

    def names(self, *names: str) -> dict[str, Any]:
        """What a test reads at its beginning."""
        return self.peer.ask("names", 0, *names)

    def close(self) -> None:
        """End it."""
        self.peer.channel.close()
        self.child.close()


def in_one_process(source: str) -> dict[str, Any]:
    """The names that a text binds when it runs right here: what plain Python and JAX make of it."""
    namespace: dict[str, Any] = {"__name__": "__main__", "jax": jax, "jnp": jnp, "np": np}
    exec(textwrap.dedent(source), namespace)
    return namespace
