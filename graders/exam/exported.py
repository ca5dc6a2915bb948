"""Programs that tests had made of a student's functions for another platform, noted as they are made.

Comes in: which part of a test runs, and each use of a program. Goes out: one `Exported` a program. Must not: read a program, or
take a name from anybody but the author.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from graders.exam import control, views, wire
from graders.exam.artifacts import MAX_ARTIFACT_BYTES
from graders.exam.peer import Avals, Chain, Peer

MOST_NOTED = 16  # of one test
_TOO_LARGE = f"it has more than {MAX_ARTIFACT_BYTES:,} bytes"


class Notes:
    """The programs of one test. `shown` is whether what runs now is a part that students see."""

    def __init__(self) -> None:
        self.shown = False
        self._noted: dict[tuple[int, Chain, Avals], control.Exported] = {}

    def watch(self, peer: Peer, names: Mapping[str, Any]) -> None:
        """Note what `peer` makes from now on; a function is called what `names` call it when it is used first."""

        def note(target: int, chain: Chain, avals: Avals, program: wire.Lowered) -> None:
            key = (target, chain, avals)
            if key not in self._noted and len(self._noted) < MOST_NOTED:
                name = next((name for name, value in names.items() if views.id_at(peer, value) == target), "")
                large = len(program.program) > MAX_ARTIFACT_BYTES
                kept = wire.Lowered(program.platform, problem=_TOO_LARGE) if large else program
                self._noted[key] = control.Exported(name, transformed(chain), avals, kept, shown=False)
            if self.shown and key in self._noted:
                self._noted[key] = msgspec.structs.replace(self._noted[key], shown=True)

        peer.on_program = note

    def take(self) -> tuple[control.Exported, ...]:
        """What was noted since the last time."""
        taken = tuple(self._noted.values())
        self._noted.clear()
        return taken


def transformed(chain: Chain) -> tuple[str, ...]:
    """A chain in the words of JAX; a jvp that is transposed is a gradient."""
    words: list[str] = []
    for step in chain:
        if isinstance(step, wire.Transpose) and words[-1:] == ["jvp"]:
            words[-1] = "grad"
        else:
            words.append(type(step).__name__.lower())
    return tuple(words)
