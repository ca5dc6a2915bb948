"""The two ends of a terminal, and how records are shown on them.

Comes in: records. Goes out: text on stdout, progress and complaints on stderr. Must not: decide anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from graders.findings import Finding
from graders.records import CheckResult, Record, Report
from graders.results.shifts import Change, Shift, why

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirmed(question: str) -> bool:
    """Ask a person at the terminal; anything but yes is no."""
    return out.input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def print_findings(findings: Sequence[Finding]) -> None:
    """One line for each finding."""
    for one in findings:
        where = f"{one.where}: " if one.where else ""
        out.print(f"{one.level.value}: [{one.rule}] {where}{one.text}", markup=False)


class Line(Record):
    """What is shown of one report, so that a class of thousands need not be kept: texts, the points, what waits for a person."""

    student: str
    status: str
    score: str
    exercises: str
    to_look_at: str
    points: Decimal | None
    waiting: tuple[str, ...]


def line(report: Report) -> Line:
    """The line of a report; `waiting` are those of its flags that a person has to settle, as the queue identifies them."""
    from graders.results import review  # with SQLAlchemy, 0.3 s that only grading needs

    return Line(
        student=report.student,
        status=report.status.value,
        score="" if report.score is None else f"{report.score:g} of {report.max_score:g}",
        exercises=" ".join("·" if one.score is None else f"{one.score:g}" for one in report.exercises),
        to_look_at=_to_look_at(report),
        points=report.score,
        waiting=tuple(one.seen for one in review.of(report)),
    )


def print_lines(lines: Sequence[Line], what: dict[str, str] | None = None) -> None:
    """A table with a row for each report."""
    table = Table("student", "status", "score", "exercises", "to look at", *(["what was handed in"] if what else []))
    for one in lines:
        row = [one.student, one.status, one.score, one.exercises, one.to_look_at]
        table.add_row(*row, *([what[one.student]] if what else []))
    out.print(table)


def print_changes(changes: Sequence[Change]) -> None:
    """Each submission that would change: from what to what, check by check, and why."""
    if not changes:
        out.print("Nobody's points or status would change.")
    for one in changes:
        reason = f" {one.after.reason}" if one.after.reason else ""
        told = f"{total(one.before)} → {total(one.after)}. {why(one.before, one.after)}{reason}"
        out.print(f"{one.before.student}: {told}", markup=False)
        for shift in one.shifts:
            _print_shift(shift)


def _print_shift(shift: Shift) -> None:
    out.print(f"  {shift.exercise}: {_points(shift.before)} → {_points(shift.after)}", markup=False)
    for check in shift.checks:
        out.print(f"    {check.title}: {_outcome(check.before)} → {_outcome(check.after)}", markup=False)


def _outcome(check: CheckResult | None) -> str:
    return "–" if check is None else f"{check.outcome.value} ({check.earned:g} of {check.points:g})"


def total(report: Report) -> str:
    """The points of a report, or why there are none."""
    return report.status.value if report.score is None else f"{report.score:g} of {report.max_score:g}"


def _points(score: Decimal | None) -> str:
    return "–" if score is None else f"{score:g}"


def _to_look_at(report: Report) -> str:
    if report.reason:
        return report.reason
    reasons = [one.reason for one in report.exercises if one.reason]
    return "; ".join([*reasons, *(flag.name for flag in report.flags)])


@contextmanager
def progress(total: int, hidden: bool) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, moved by calling what is given; nothing elsewhere."""
    columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, disable=hidden or not err.is_terminal, transient=True) as bar:
        task = bar.add_task("grading", total=total)
        yield lambda: bar.advance(task)
