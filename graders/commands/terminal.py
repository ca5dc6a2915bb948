"""The two ends of a terminal, and how records are shown on them.

Comes in: records. Goes out: text on stdout, progress and complaints on stderr. Must not: decide anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from graders.findings import Finding
from graders.records import Report

if TYPE_CHECKING:
    from graders.run.regrading import Change

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_findings(findings: Sequence[Finding]) -> None:
    """One line for each finding."""
    for one in findings:
        where = f"{one.where}: " if one.where else ""
        out.print(f"{one.level.value}: [{one.rule}] {where}{one.text}", markup=False)


def print_reports(reports: Sequence[Report], what: dict[str, str] | None = None) -> None:
    """A table with a row for each report."""
    table = Table("student", "status", "score", "exercises", "to look at", *(["what was handed in"] if what else []))
    for report in reports:
        exercises = " ".join("·" if one.score is None else f"{one.score:g}" for one in report.exercises)
        score = "" if report.score is None else f"{report.score:g} of {report.max_score:g}"
        row = [report.student, report.status.value, score, exercises, _to_look_at(report)]
        table.add_row(*row, *([what[report.student]] if what else []))
    out.print(table)


def print_changes(changes: Sequence[Change]) -> None:
    """A table with a row for each submission that would change."""
    table = Table("student", "before", "after", "why")
    for one in changes:
        shifts = [f"{shift.exercise}: {_points(shift.before)} → {_points(shift.after)}" for shift in one.shifts]
        table.add_row(
            one.before.student, _total(one.before), _total(one.after), "; ".join(shifts) or one.after.reason or ""
        )
    out.print(table)


def _total(report: Report) -> str:
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
