"""How long JAX has compiled in this process, so that a receipt can tell it from the time that programs ran.

Comes in: JAX's own events. Goes out: seconds. Must not: believe what a candidate says of itself to be more than that.

Reading a program from a cache counts as compiling it. Tracing and lowering, which are Python, do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from graders.targets import CANDIDATE, EXAMINER

if TYPE_CHECKING:
    from graders.exam.peer import Peer

_EVENT = "/jax/core/compile/backend_compile_duration"
_MOST_S = 1e6
_spent_s = [0.0]


def count() -> None:
    """Begin to count."""
    jax.monitoring.register_event_duration_secs_listener(_add)


def seconds() -> float:
    """Wall seconds of compiling in this process since `count`."""
    return _spent_s[0]


def of_both(candidate: Peer | None) -> dict[str, float]:
    """Seconds by role: this process is the examiner, and the candidate is asked for what it says of itself."""
    spent = {EXAMINER: seconds()}
    try:
        told = candidate.ask("compiled") if candidate else None
    except Exception:  # it is gone, or answers nonsense
        told = None
    return spent | ({CANDIDATE: told} if isinstance(told, float) and 0.0 <= told <= _MOST_S else {})


def _add(event: str, duration_secs: float, **_: Any) -> None:
    if event == _EVENT:
        _spent_s[0] += duration_secs
