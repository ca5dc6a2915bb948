"""Programs that tests had made of a student's functions for another platform, noted as they are used.

Comes in: which part of a test runs, and each use of a program. Goes out: one `Exported` a program. Must not: read a program, or
take a name from anybody but the author.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import msgspec

from graders.exam import artifacts, control, views, wire
from graders.exam.peer import Avals, Chain, Peer

MOST_NOTED = 16  # of one test
_TOO_LARGE = f"it has more than {artifacts.MAX_ARTIFACT_BYTES:,} bytes"


class Notes:
    """The programs of one test."""

    def __init__(self) -> None:
        self._shown = False
        self._wanted = False
        self._noted: dict[tuple[int, Chain, Avals], control.Exported] = {}

    def watch(self, peer: Peer, names: Mapping[str, Any]) -> None:
        """Note what `peer` uses from now on; a function is called what `names` call it when it is used first."""

        def note(target: int, chain: Chain, avals: Avals, program: wire.Lowered) -> None:
            key = (target, chain, avals)
            if key not in self._noted and len(self._noted) < MOST_NOTED:
                name = next((name for name, value in names.items() if views.id_at(peer, value) == target), "")
                large = len(program.program) > artifacts.MAX_ARTIFACT_BYTES
                kept = wire.Lowered(program.platform, problem=_TOO_LARGE) if large else program
                arguments = tuple(map(_in_words, avals))
                self._noted[key] = control.Exported(name, arguments, transformed(chain), avals, kept, shown=False)
            if self._shown and key in self._noted:
                self._noted[key] = msgspec.structs.replace(self._noted[key], shown=True)

        self._wanted = bool(peer.elsewhere)
        peer.on_program = note

    def part(self, *, hidden: bool) -> AbstractContextManager[Any]:
        """Around one part of a test. Whether students see it matters, so JAX must not take what an earlier part traced.

        The default device, named, is another key of JAX's caches and changes nothing else.
        """
        self._shown = not hidden
        return nullcontext() if hidden or not self._wanted else jax.default_device(jax.devices()[0])

    def take(self) -> tuple[control.Exported, ...]:
        """What was noted since the last time."""
        taken = tuple(self._noted.values())
        self._noted.clear()
        return taken


def _in_words(aval: wire.Aval) -> str:
    spec = artifacts.spec_of(aval)
    return f"{spec.dtype}[{', '.join(map(str, spec.shape))}]"


def transformed(chain: Chain) -> tuple[str, ...]:
    """A chain in the words of JAX; a jvp that is transposed is a gradient."""
    words: list[str] = []
    for step in chain:
        if isinstance(step, wire.Transpose) and words[-1:] == ["jvp"]:
            words[-1] = "grad"
        else:
            words.append(type(step).__name__.lower())
    return tuple(words)
