"""Return what was graded: pages below `feedback/`, and from there into nbgrader's exchange.

Comes in: settings, an assignment, perhaps some of its students. Goes out: pages, and a `Returned` for each student. Must not: give
a page to anybody but whoever handed in what it is about.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from graders.config import Settings
from graders.errors import CourseError
from graders.records import Record, Report
from graders.results import feedback
from graders.results.folders import handed_in, hash_submission
from graders.results.markbook import marks_of
from graders.results.marks import NO_MARKS
from graders.run import attempts, exchange, grading


class Returned(Record):
    """The pages of one student, and, if they are not in the exchange, why not."""

    student: str
    pages: tuple[str, ...]
    why: str | None = None


def write(settings: Settings, assignment: str, students: Collection[str] | None = None) -> list[Returned]:
    """A page for every stored report of an assignment, or for those of some students, with the marks that people gave since.

    Raises:
        CourseError: nothing is graded.
    """
    return [
        Returned(report.student, tuple(map(str, pages))) for report, pages in _written(settings, assignment, students)
    ]


def release_feedback(settings: Settings, assignment: str, students: Collection[str] | None = None) -> list[Returned]:
    """Write the pages as above and put each into the exchange, where nbgrader gives it to its student.

    Raises:
        CourseError: nothing is graded, or there is no exchange.
    """
    given = []
    for report, pages in _written(settings, assignment, students):
        why = _release(settings, report, pages)
        given.append(Returned(report.student, tuple(map(str, pages)), why))
    return given


def _written(settings: Settings, assignment: str, students: Collection[str] | None) -> list[tuple[Report, list[Path]]]:
    course = settings.course
    reports = grading.stored(course, assignment, students)
    if not reports:
        raise CourseError(f"Nothing of {assignment!r} is graded in {course}. Next step: graders grade {assignment}.")
    given = marks_of(course, assignment, settings.db_url)
    return [
        (report, feedback.write(course, report, notebooks, given.get(report.student, NO_MARKS)))
        for report, notebooks in reports
    ]


def _release(settings: Settings, report: Report, pages: list[Path]) -> str | None:
    submission = _submission(settings.course, report)
    if submission is None:
        return f"What {report.student} handed in is not what was graded. Next step: graders grade {report.assignment}."
    # nbgrader looks for a page by the name under which a student handed in the notebook
    names = {page.stem for page in pages} | {path.stem for path in submission.glob("*.ipynb")}
    by_name = {page.stem: page.read_bytes() for page in pages}
    return exchange.release(
        settings,
        report.student,
        submission,
        {name: by_name.get(name, by_name[pages[0].stem]) for name in sorted(names)},
    )


def _submission(course: Path, report: Report) -> Path | None:
    """The folder of the submission that a report is about, be it the last one or an earlier one."""
    wanted = report.receipt.submission_sha256 if report.receipt else ""
    last = handed_in(course, report.student, report.assignment)
    if last.is_dir() and hash_submission(last) == wanted:
        return last
    kept = attempts.place(course, report.student, report.assignment) / wanted
    return kept if wanted and kept.is_dir() else None
