"""How two reports of one student differ: exercise by exercise, check by check, and why.

Comes in: the report that is stored and one that was made since. Goes out: a `Change`, a sentence, and what the journal keeps. Must not:
compare anything but points, outcomes and status.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from graders.records import CheckResult, ExerciseResult, Receipt, Record, Report, Status
from graders.results.marks import Marks, marked


class CheckShift(Record):
    """One check that came out differently; None where there is no such check."""

    title: str
    before: CheckResult | None
    after: CheckResult | None


class Shift(Record):
    """One exercise whose points would change; None where there are none, or where the exercise is new or gone."""

    exercise: str
    before: Decimal | None
    after: Decimal | None
    checks: tuple[CheckShift, ...] = ()


class Change(Record):
    """One submission that would change. The reports are as pages show them, with people's marks."""

    before: Report
    after: Report
    shifts: tuple[Shift, ...]


def compare(before: Report, after: Report, marks: Marks) -> Change | None:
    """How one report differs from another in points or status, after people's marks; None when it does not."""
    before, after = marked(before, marks), marked(after, marks)
    old, new = (_by_place(one.exercises) for one in (before, after))
    shifts = tuple(
        Shift(place[1], _score(old.get(place)), _score(new.get(place)), _checks(old.get(place), new.get(place)))
        for place in dict.fromkeys((*old, *new))
        if _worth(old.get(place)) != _worth(new.get(place))
    )
    if before.status is after.status is Status.not_graded:
        return None
    same = (before.status, before.score, before.max_score) == (after.status, after.score, after.max_score)
    return None if same and not shifts else Change(before, after, shifts)


def why(before: Report, after: Report) -> str:
    """What was not the same the second time."""
    old, new = before.receipt, after.receipt
    if old is None or new is None:
        return "Nothing says under which conditions it was graded before."
    reasons = [sentence for field, sentence in _REASONS.items() if getattr(old, field) != getattr(new, field)]
    return " ".join(reasons) or "The same files came out differently under the same conditions: a person should look."


_REASONS = {
    "submission_sha256": "Other files were handed in.",
    "assignment_sha256": "The assignment was released anew.",
    "environment_sha256": "Other versions of packages are installed.",
    "graders": "Another version of graders judged.",
    "examine": "The tests ran in another place.",
    "isolation": "The walls were others.",
    "target": "The processor was another.",
}


def account(report: Report) -> dict[str, object]:
    """What the journal keeps of a report: every point in it, and hashes by which its conditions can be found."""
    receipt: Receipt | None = report.receipt
    return {
        "status": report.status,
        "score": report.score,
        "max_score": report.max_score,
        "submission_sha256": receipt and receipt.submission_sha256,
        "assignment_sha256": receipt and receipt.assignment_sha256,
        "exercises": [
            {
                "id": one.id,
                "notebook": one.notebook,
                "score": one.score,
                "checks": [[check.title, check.outcome, check.earned] for check in one.checks],
            }
            for one in report.exercises
        ],
    }


def _checks(old: ExerciseResult | None, new: ExerciseResult | None) -> tuple[CheckShift, ...]:
    before, after = _by_title(old.checks if old else ()), _by_title(new.checks if new else ())
    return tuple(
        CheckShift(key[0], before.get(key), after.get(key))
        for key in dict.fromkeys((*before, *after))
        if _result(before.get(key)) != _result(after.get(key))
    )


def _by_title(checks: Iterable[CheckResult]) -> dict[tuple[str, int], CheckResult]:
    """Checks by title; the second of one title is another check than the first."""
    found: dict[tuple[str, int], CheckResult] = {}
    for one in checks:
        found[one.title, sum(title == one.title for title, _ in found)] = one
    return found


def _result(check: CheckResult | None) -> tuple[object, ...]:
    return (check.outcome, check.earned, check.points) if check else ()


def _by_place(exercises: tuple[ExerciseResult, ...]) -> dict[tuple[str, str], ExerciseResult]:
    return {(one.notebook, one.id): one for one in exercises}


def _score(one: ExerciseResult | None) -> Decimal | None:
    return one.score if one else None


def _worth(one: ExerciseResult | None) -> tuple[Decimal | None, Decimal] | None:
    return (one.score, one.max_score) if one else None
