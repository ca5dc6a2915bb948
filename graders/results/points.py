"""The points of one test cell, check by check.

Comes in: a released test cell, the reference, and what the examiner saw. Goes out: `CheckResult`s in the reference's
order. Must not: believe the points of a run (the reference decides), or give points for what nobody can judge.
"""

from __future__ import annotations

from decimal import Decimal

from graders.coursework import Reference, ReleasedCell
from graders.records import CheckResult, Outcome
from graders.runs import Ended, RawCheck, TestRun

WHOLE_CELL = "The tests of this cell pass"
PARTIAL_CREDIT = "The tests of this cell give points for each part that is right"
REST_OF_CELL = "The remaining tests of this cell pass"

ORDINARY = (Ended.ok, Ended.error)
ZERO = Decimal(0)


def judge_checks(cell: ReleasedCell, reference: Reference, test: TestRun | None) -> tuple[CheckResult, ...]:
    """The checks of one test cell; `test` is None when the test never ran."""
    id = cell.id or ""
    if id in reference.partial_credit:
        return (_partial(cell, test),)
    wanted = reference.checks.get(id, ())
    if not wanted and test is not None:
        wanted = tuple(RawCheck(title=c.title, points=c.points, outcome=Outcome.passed) for c in test.checks)
    if not wanted:
        return (_whole(cell, test, broken=id in reference.broken),)
    results = _matched(wanted, test)
    clean = id not in reference.broken
    if clean and test is not None and test.problem is not None and all(r.outcome is Outcome.passed for r in results):
        message = f"{test.problem.name}: {test.problem.message}"
        results.append(CheckResult(REST_OF_CELL, Outcome.failed, ZERO, ZERO, message=message))
    return tuple(results)


def _matched(wanted: tuple[RawCheck, ...], test: TestRun | None) -> list[CheckResult]:
    """Every check of the reference, in its order and with its points, with what happened to it.

    Two checks may share a title, so the n-th of a title is matched with the n-th. What the reference does not list
    earns nothing: a loop over a student's list must not make points.
    """
    seen: dict[str, list[RawCheck]] = {}
    for raw in test.checks if test is not None else ():
        seen.setdefault(raw.title, []).append(raw)
    lost = test is not None and test.ended is Ended.examiner_lost
    results = []
    for check in wanted:
        raws = seen.get(check.title, [])
        found = raws.pop(0) if raws else None
        if found is None and lost:
            # the examiner died inside the first check that it did not report
            found, lost = RawCheck(check.title, check.points, Outcome.failed, hint=check.hint), False
        results.append(_result(check, found))
    extra = [raw for raws in seen.values() for raw in raws]
    return results + [_result(RawCheck(raw.title, ZERO, Outcome.passed), raw) for raw in extra]


def _result(wanted: RawCheck, found: RawCheck | None) -> CheckResult:
    if wanted.outcome is not Outcome.passed:
        outcome = Outcome.broken
    elif found is None or found.outcome is Outcome.not_run:
        outcome = Outcome.not_run
    else:
        # only what fails on the reference too is broken
        outcome = Outcome.passed if found.outcome is Outcome.passed else Outcome.failed
    earned = wanted.points if outcome is Outcome.passed else ZERO
    if found is None:
        return CheckResult(wanted.title, outcome, wanted.points, earned, hint=wanted.hint)
    return CheckResult(
        wanted.title,
        outcome,
        wanted.points,
        earned,
        hint=found.hint or wanted.hint,
        misconception=found.misconception if outcome is Outcome.failed else None,
        message=found.message,
        expected=found.expected,
        actual=found.actual,
    )


def _whole(cell: ReleasedCell, test: TestRun | None, *, broken: bool) -> CheckResult:
    """A test without checks counts as one check worth the cell's points."""
    message = None if test is None or test.problem is None else f"{test.problem.name}: {test.problem.message}"
    if broken:
        outcome = Outcome.broken
    elif test is None or test.ended not in (*ORDINARY, Ended.examiner_lost):
        outcome = Outcome.not_run
    else:
        clean = test.ended is Ended.ok and test.problem is None
        outcome = Outcome.passed if clean else Outcome.failed
    return CheckResult(
        WHOLE_CELL, outcome, cell.points, cell.points if outcome is Outcome.passed else ZERO, message=message
    )


def _partial(cell: ReleasedCell, test: TestRun | None) -> CheckResult:
    """A test whose last value is its number of points; anything but a number in 0..points is broken."""
    whole = _whole(cell, test, broken=False)
    if test is None or whole.outcome is not Outcome.passed:
        return CheckResult(PARTIAL_CREDIT, whole.outcome, cell.points, ZERO, message=whole.message)
    if test.number is None or not ZERO <= test.number <= cell.points:
        message = f"The last value must be a number of points from 0 to {cell.points}; it was {test.value}."
        return CheckResult(PARTIAL_CREDIT, Outcome.broken, cell.points, ZERO, message=message, actual=test.value)
    full = test.number == cell.points
    return CheckResult(PARTIAL_CREDIT, Outcome.passed if full else Outcome.failed, cell.points, abs(test.number))
