"""nbgrader's CSV export with a status, so that what could not be graded is blank and not 0.

Comes in: nbgrader's gradebook, by `nbgrader export` (course_config.py names this class). Goes out: a CSV file with the
columns of nbgrader's CsvExportPlugin, then `status` and `reason`. Must not: write a score that nobody gave.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from nbgrader.plugins import ExportPlugin

from graders.records import Status
from graders.results.spreadsheet import harmless
from graders.results.standings import Standing, read_standings

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "status",
    "reason",
)
MISSING = "missing"


class StatusExport(ExportPlugin):
    """CSV exporter with a status column."""

    def export(self, gradebook: Any) -> None:
        """Write `--to` (default `grades.csv`), one row for each assignment and student, as nbgrader orders them."""
        target = Path(self.to or "grades.csv")
        students, assignments = {str(one) for one in self.student}, {str(one) for one in self.assignment}
        self.log.info("Exporting grades to %s", target)
        standings = {(one.assignment, one.student): one for one in read_standings(gradebook.engine)}
        with target.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for assignment in gradebook.assignments:
                handed_in = {one.student_id: one for one in assignment.submissions}
                for student in gradebook.students:
                    key = (assignment.name, student.id)
                    if key[0] in (assignments or key) and key[1] in (students or key):
                        writer.writerow(row(assignment, student, handed_in.get(student.id), standings.get(key)))


def row(assignment: Any, student: Any, submission: Any, standing: Standing | None) -> dict[str, object]:
    """One line of the table; the first three are nbgrader's own rows, None where it has none."""
    cells: dict[str, object] = {
        "assignment": assignment.name,
        "duedate": assignment.duedate,
        "student_id": harmless(student.id),
        "last_name": harmless(student.last_name or ""),
        "first_name": harmless(student.first_name or ""),
        "email": harmless(student.email or ""),
        "max_score": assignment.max_score,
        "status": MISSING,
    }
    if submission is not None:
        cells["timestamp"] = submission.timestamp
        cells["status"] = Status.graded.value  # by nbgrader itself, before this course used graders
    if standing is not None:
        cells["status"], cells["reason"] = standing.status, harmless(standing.reason or "")
    if submission is not None and cells["status"] != Status.not_graded.value:
        penalty = submission.late_submission_penalty
        cells["raw_score"] = _tidy(submission.score)
        cells["late_submission_penalty"] = penalty
        cells["score"] = _tidy(max(0.0, submission.score - penalty))
    return cells


def _tidy(score: float) -> float:
    """nbgrader adds binary fractions: 33.3 + 33.3 + 33.4 may end in …99999."""
    return round(score, 9)
