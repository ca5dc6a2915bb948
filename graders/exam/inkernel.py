"""Tests that run inside the candidate, for courses that ask for it with `examine = "kernel"`.

Comes in: how a test cell ended in the kernel. Goes out: a `TestRun` like the examiner's. Must not: be used by default; here
a student's code can forge what a test shows, and reports say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

import msgspec

from graders.exam.plan import Step
from graders.kernels.client import CellEnd
from graders.records import CHECKS_TYPE
from graders.runs import RawCheck, TestRun

_CHECKS = msgspec.json.Decoder(tuple[RawCheck, ...])


def test_run(step: Step, end: CellEnd, reason: str | None) -> TestRun:
    """What a test cell showed: its checks if it has any, else its last value."""
    checks: tuple[RawCheck, ...] = ()
    value = None
    for data in (one["data"] for one in end.outputs if isinstance(one.get("data"), Mapping)):
        if isinstance(data, Mapping) and CHECKS_TYPE in data:
            checks = _decode(str(data[CHECKS_TYPE]))
        elif isinstance(data, Mapping):
            value = str(data.get("text/plain", ""))[:600]
    return TestRun(
        id=step.id or f"cell {step.position}",
        ended=end.ended,
        checks=checks,
        problem=end.problem,
        value=None if checks else value,
        number=None if checks else _number(value),
        output=_printed(end.outputs),
        reason=reason,
        seconds=end.seconds,
    )


def shows_checks(output: Mapping[str, object]) -> bool:
    """Whether an output is a test's list of checks, which only a test may show."""
    data = output.get("data")
    return isinstance(data, Mapping) and CHECKS_TYPE in data


def _decode(text: str) -> tuple[RawCheck, ...]:
    try:
        return _CHECKS.decode(text)
    except msgspec.MsgspecError:
        return ()


def _number(value: str | None) -> Decimal | None:
    try:
        found = Decimal(value or "")
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _printed(outputs: Iterable[Mapping[str, object]]) -> str:
    return "".join(str(one.get("text", "")) for one in outputs if one.get("output_type") == "stream")
