"""A student's portfolio: what was handed in over a course, what it earned by outcome, and what the lessons recorded.

Comes in: reports, receipts, and the text that evidence cells printed. Goes out: a record, and the same as JSON. Must not: hold what
feedback may not show, or take what a student's notebook says about itself for more than text.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from enum import Enum

import msgspec

from graders import __version__
from graders.records import ExerciseResult, Kind, Record, Report, Status, to_json
from graders.results.feedback import Share, shares, student_copy
from graders.results.marks import NO_MARKS, Marks, marked
from graders.runs import CellRun

EVIDENCE = "evidence"  # the grade_id of the cell that ends a lesson


class Mastery(str, Enum):
    """How far a student has come with one outcome: only a checkpoint proves it, and only full marks do."""

    proven = "proven"
    practised = "practised"
    waiting = "waiting"
    not_yet = "not_yet"


class OutcomeScore(Record):
    """One learning outcome over all assignments; a kind that has nothing judged is None."""

    name: str
    mastery: Mastery
    exercises: Share | None
    checkpoints: Share | None


class Statement(Record):
    """What the evidence cell of a notebook printed: its record, or why there is none. The student's own word."""

    notebook: str
    record: object = None
    reason: str | None = None


class Work(Record):
    """One assignment, and what a person gave for it. `signed` is the SHA-256 of the report, if it and what was handed in are what was signed.

    `notebooks` are paths inside the portfolio; `note` says why there are none.
    """

    report: Report
    signed: str | None = None
    notebooks: tuple[str, ...] = ()
    statements: tuple[Statement, ...] = ()
    note: str | None = None
    marks: Marks = NO_MARKS

    @property
    def counted(self) -> Report:
        """The report with the points that count."""
        return marked(self.report, self.marks)


class Portfolio(Record):
    """All work of one student. `made` is ISO 8601 UTC."""

    student: str
    made: str
    works: tuple[Work, ...]


def statement(cell: CellRun) -> Statement:
    """Read the record that an evidence cell printed: one JSON object and nothing else."""
    if cell.problem is not None:
        return Statement(cell.notebook, reason=f"The evidence cell ended with {cell.problem.name}.")
    if cell.reason is not None:
        return Statement(cell.notebook, reason=cell.reason)
    printed = "".join(str(one.get("text", "")) for one in cell.outputs if one.get("name") == "stdout")
    try:
        record = msgspec.json.decode(printed)
        to_json(record)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        record = None
    if not isinstance(record, dict):
        return Statement(cell.notebook, reason="What the evidence cell printed is not one JSON object.")
    return Statement(cell.notebook, record)


def outcomes(reports: Iterable[Report]) -> tuple[OutcomeScore, ...]:
    """Every outcome that the reports name, in the order in which they name it."""
    found: dict[str, list[ExerciseResult]] = {}
    for report in reports:
        for one in report.exercises if report.status is not Status.not_graded else ():
            if one.outcome:
                found.setdefault(one.outcome, []).append(one)
    return tuple(OutcomeScore(name, mastery(group), *by_kind(group)) for name, group in found.items())


def mastery(group: Iterable[ExerciseResult]) -> Mastery:
    """Proven: every checkpoint has full marks. Practised: there is none, and every exercise has them. A missing mark waits."""
    group = list(group)
    checkpoints = [one for one in group if one.kind is Kind.checkpoint]
    decisive = checkpoints or group
    if any(one.score is not None and one.score < one.max_score for one in decisive):
        return Mastery.not_yet
    if any(one.score is None for one in decisive):
        return Mastery.waiting
    return Mastery.proven if checkpoints else Mastery.practised


def by_kind(group: Iterable[ExerciseResult]) -> tuple[Share | None, Share | None]:
    """Points of exercises and of checkpoints; what nobody has marked is left out."""
    group = list(group)
    exercises, checkpoints = (
        next(iter(shares([(kind.value, [one for one in group if one.kind is kind])])), None)
        for kind in (Kind.exercise, Kind.checkpoint)
    )
    return exercises, checkpoints


def as_json(portfolio: Portfolio) -> bytes:
    """The portfolio as one JSON object, with what a student may read and nothing more."""
    told = {
        "student": portfolio.student,
        "made": portfolio.made,
        "graders": __version__,
        "outcomes": [
            {"outcome": one.name, "mastery": one.mastery.value} | _points(one.exercises, one.checkpoints)
            for one in outcomes(work.counted for work in portfolio.works)
        ],
        "assignments": [_work(work) for work in portfolio.works],
    }
    return msgspec.json.format(to_json(told), indent=1) + b"\n"


def _work(work: Work) -> dict[str, object]:
    copy = student_copy(work.report, work.marks)
    exercises = copy["exercises"]
    assert isinstance(exercises, list)
    named = {one.id: one.outcome for one in work.report.exercises}
    return (
        copy
        | {"exercises": [one | {"outcome": named[one["id"]]} for one in exercises]}
        | {"scores": _points(*by_kind(work.counted.exercises))}
        | {"notebooks": list(work.notebooks), "note": work.note, "evidence": list(work.statements)}
        | {"receipt": work.report.receipt, "signed_report_sha256": work.signed}
    )


def _points(exercises: Share | None, checkpoints: Share | None) -> dict[str, dict[str, Decimal] | None]:
    return {
        name: share and {"score": share.score, "max_score": share.max_score}
        for name, share in (("exercises", exercises), ("checkpoints", checkpoints))
    }
