"""What an author writes inside hidden tests: `check`, `expect` and `operations`.

Comes in: values and views that a test reads. Goes out: one `RawCheck` a block, to the recorder that is active.
Must not: import jax before a test needs it, or ask an object of a student whether it is equal to anything: a comparison
is made on built-in, NumPy and JAX values only, never by an `__eq__` from outside.

The same cell also works where no examiner is: in plain nbgrader the cell shows what they found and ends in the number of
points earned, which nbgrader reads as partial credit.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from types import TracebackType
from typing import Any

from graders import compare, tolerances
from graders.records import CHECKS_TYPE, Outcome, to_json
from graders.runs import RawCheck

__all__ = ["CheckFailed", "check", "expect", "operations"]


class CheckFailed(AssertionError):
    """`expect` found another value than the one wanted. Carries both as text, and the misconception that explains it."""

    def __init__(self, message: str, expected: str = "", actual: str = "", misconception: str | None = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual
        self.misconception = misconception


class Recorder:
    """Collects the checks of one test cell, in the order in which their blocks end; `expect` compares by its profile."""

    def __init__(self, profile: str = tolerances.CPU) -> None:
        self.checks: list[RawCheck] = []
        self.profile = profile

    def add(self, result: RawCheck) -> None:
        self.checks.append(result)


_active: list[Recorder] = []


@contextmanager
def recording(profile: str = tolerances.CPU) -> Iterator[Recorder]:
    """Send every check that runs inside to a fresh recorder. Used by the examiner, once a test cell."""
    _active.append(Recorder(profile))
    try:
        yield _active[-1]
    finally:
        _active.pop()


class check:  # noqa: N801 - reads as a statement: with check("..."):
    """One check: a block of assertions with a title and points.

    Args:
        title: what a student reads; it must not give hidden values away.
        points: what passing earns. The points of a cell's checks add up to the points of the cell.
        hint: a sentence for the student whose check failed.
    """

    def __init__(self, title: str, points: float = 1, hint: str | None = None) -> None:
        self.title = str(title)
        self.points = Decimal(str(points))
        self.hint = hint

    def __enter__(self) -> check:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False  # an interrupt or the loss of the candidate ends the whole test
        recorder = _active[-1] if _active else _InKernel.recorder()
        if recorder is None:
            return False  # a plain Python script: let the assertion be seen
        recorder.add(self._result(error))
        return True

    def _result(self, error: Exception | None) -> RawCheck:
        if error is None:
            return RawCheck(self.title, self.points, Outcome.passed, self.hint)
        told = error if isinstance(error, CheckFailed) else CheckFailed("")
        return RawCheck(
            self.title,
            self.points,
            Outcome.failed,
            self.hint,
            misconception=told.misconception,
            message="".join(traceback.format_exception_only(error)).strip()[:4000],
            expected=told.expected or None,
            actual=told.actual or None,
        )


Misconceptions = Mapping[Any, str] | Iterable[tuple[Any, str]]


def expect(
    actual: Any,
    wanted: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: Any = None,
    misconceptions: Misconceptions = (),
) -> None:
    """Assert that `actual` is the value `wanted`: same structure, same shape, numbers within tolerance.

    Args:
        actual: a number, string, container or array of any shape, as the student's code made it.
        wanted: the value it should be; nothing is broadcast, and NaN equals NaN.
        rtol: relative tolerance; by default it follows the coarser dtype of the two and the target (see `graders.tolerances`).
        atol: absolute tolerance, likewise.
        dtype: when given, `actual` must have exactly this dtype.
        misconceptions: wrong values that explain themselves, each with a sentence for the student.

    Raises:
        CheckFailed: with the difference, and the first misconception whose wrong value `actual` has.
    """
    allowed = compare.Allowed(rtol, atol, _active[-1].profile if _active else tolerances.here())
    problem = compare.difference(actual, wanted, allowed)
    if problem is None and dtype is not None:
        problem = compare.dtype_difference(actual, dtype)
    if problem is None:
        return
    pairs = misconceptions.items() if isinstance(misconceptions, Mapping) else misconceptions
    named = next((text for wrong, text in pairs if compare.difference(actual, wrong, allowed) is None), None)
    raise CheckFailed(problem, compare.show(wanted), compare.show(actual), named)


def operations(function: Any, *args: Any) -> dict[str, int]:
    """Count the StableHLO operations of the program that `function` becomes for arguments like `args`.

    Args:
        function: something that JAX can trace, jitted or not.
        args: arrays; only their shapes and dtypes matter.

    Returns:
        Counts by operation name without its dialect, such as `{"multiply": 1, "reduce": 1, "case": 1}`. `lax.cond` is
        `case` (or `if`), `lax.while_loop` is `while`, `jnp.where` is `select`.
    """
    from graders.exam import artifacts  # imports jax, which a test has loaded anyway

    return artifacts.count_operations(function, args)


class _InKernel(Recorder):
    """The recorder of a plain IPython kernel: tells what it found and lets the cell end in the points earned."""

    _current: _InKernel | None = None

    @classmethod
    def recorder(cls) -> Recorder | None:
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        if shell is None:
            return None
        if cls._current is None:
            cls._current = cls()
            shell.events.register("post_run_cell", cls._finish)
        return cls._current

    @classmethod
    def _finish(cls, result: Any) -> None:
        shell = sys.modules["IPython"].get_ipython()
        shell.events.unregister("post_run_cell", cls._finish)
        done, cls._current = cls._current, None
        if done is None:
            return
        lines = [f"{one.outcome.value}: {one.title} ({one.points} points)" for one in done.checks]
        shell.display_pub.publish(data={"text/plain": "\n".join(lines), CHECKS_TYPE: to_json(done.checks).decode()})
        if result.error_in_exec is None and result.error_before_exec is None:
            earned = sum((one.points for one in done.checks if one.outcome is Outcome.passed), Decimal(0))
            shell.displayhook(float(earned))
