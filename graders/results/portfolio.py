"""A student's portfolio: what was handed in over a course, what it earned by outcome, and what the lessons recorded.

Comes in: reports, receipts, and the text that evidence cells printed. Goes out: a record, and the same as JSON. Must not: hold what
feedback may not show, or take what a student's notebook says about itself for more than text.
"""

from __future__ import annotations

import msgspec

from graders import __version__
from graders.records import Record, Report, to_json
from graders.results.feedback import student_copy
from graders.results.marks import NO_MARKS, Marks, marked
from graders.results.mastery import as_data, by_kind, points
from graders.runs import CellRun

EVIDENCE = "evidence"  # the grade_id of the cell that ends a lesson


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


def as_json(portfolio: Portfolio) -> bytes:
    """The portfolio as one JSON object, with what a student may read and nothing more."""
    told = {
        "student": portfolio.student,
        "made": portfolio.made,
        "graders": __version__,
        "outcomes": as_data(work.counted for work in portfolio.works),
        "assignments": [_work(work) for work in portfolio.works],
    }
    return msgspec.json.format(to_json(told), indent=1) + b"\n"


def _work(work: Work) -> dict[str, object]:
    return (
        student_copy(work.report, work.marks)
        | {"scores": points(*by_kind(work.counted.exercises))}
        | {"notebooks": list(work.notebooks), "note": work.note, "evidence": list(work.statements)}
        | {"receipt": work.report.receipt, "signed_report_sha256": work.signed}
    )
