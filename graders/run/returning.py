"""Return what was graded: pages below `feedback/`.

Comes in: settings, an assignment, perhaps some of its students. Goes out: pages, and beside them what nbgrader needs to put them into the exchange.
Must not: give a page to anybody but whoever handed in what it is about.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from graders.config import Settings
from graders.course.files import read_regular
from graders.errors import CourseError
from graders.records import Record, Report
from graders.results import feedback
from graders.results.folders import folder, handed_in, hash_submission, write_file
from graders.results.markbook import marks_of
from graders.results.marks import NO_MARKS
from graders.run import grading

NOTES = ("timestamp.txt", "submission_secret.txt")  # nbgrader names the page in the exchange by the secret
_LONGEST_NOTE = 2_000  # bytes


class Returned(Record):
    """The pages of one student."""

    student: str
    pages: tuple[str, ...]


def write(settings: Settings, assignment: str, students: Collection[str] | None = None) -> list[Returned]:
    """A page for every stored report of an assignment, or for those of some students, with the marks that people gave since.

    Raises:
        CourseError: nothing is graded.
    """
    course = settings.course
    reports = [one for one in grading.stored(course, assignment) if students is None or one[0].student in students]
    if not reports:
        raise CourseError(f"Nothing of {assignment!r} is graded in {course}. Next step: graders grade {assignment}.")
    given = marks_of(course, assignment, settings.db_url)
    made = []
    for report, notebooks in reports:
        pages = feedback.write(course, report, notebooks, given.get(report.student, NO_MARKS))
        _address(course, report)
        made.append(Returned(report.student, tuple(map(str, pages))))
    return made


def _address(course: Path, report: Report) -> None:
    """Put nbgrader's notes beside the pages, if what was handed in last is what they are about."""
    submission = handed_in(course, report.student, report.assignment)
    if report.receipt is None or hash_submission(submission) != report.receipt.submission_sha256:
        return
    for name in NOTES:
        if (note := read_regular(submission / name, _LONGEST_NOTE)) is not None:
            write_file(folder(course, "feedback", report.student, report.assignment) / name, note, mode=0o640)
