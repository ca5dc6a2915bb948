"""Return what was graded: pages below `feedback/`, and from there into nbgrader's exchange.

Comes in: settings, an assignment, perhaps some of its students. Goes out: pages, and a `Returned` for each student. Must not: give
a page to anybody but whoever handed in what it is about.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import msgspec

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
    folder = exchange.feedback_folder(settings)
    given = []
    for report, pages in _written(settings, assignment, students):
        why = _release(settings.course, folder, report, pages)
        given.append(Returned(report.student, tuple(map(str, pages)), why))
    return given


def _written(settings: Settings, assignment: str, students: Collection[str] | None) -> list[tuple[Report, list[Path]]]:
    course = settings.course
    reports = [one for one in grading.stored(course, assignment) if students is None or one[0].student in students]
    if not reports:
        raise CourseError(f"Nothing of {assignment!r} is graded in {course}. Next step: graders grade {assignment}.")
    given = marks_of(course, assignment, settings.db_url)
    now, rules = datetime.now(UTC), settings.of(assignment)
    found = []
    for report, notebooks in reports:
        notes = attempts.notes(attempts.read(course, report.student, assignment), rules, now)
        told = msgspec.structs.replace(report, flags=(*report.flags, *notes))
        found.append((report, feedback.write(course, told, notebooks, given.get(report.student, NO_MARKS))))
    return found


def _release(course: Path, folder: Path, report: Report, pages: list[Path]) -> str | None:
    submissions = _submissions(course, report)
    if not submissions:
        return f"What {report.student} handed in is not what was graded. Next step: graders grade {report.assignment}."
    by_name = {page.stem: page.read_bytes() for page in pages}
    whys = []
    for submission in submissions:
        # nbgrader looks for a page by the name under which a student handed in the notebook
        names = {*by_name, *(path.stem for path in submission.glob("*.ipynb"))}
        given = {name: by_name.get(name, by_name[pages[0].stem]) for name in sorted(names)}
        whys.append(exchange.release(folder, report.student, submission, given))
    return whys[0]


def _submissions(course: Path, report: Report) -> list[Path]:
    """The folder of the submission that a report is about, and of those that came with or after it and changed nothing."""
    wanted = report.receipt.submission_sha256 if report.receipt else ""
    last, kept = (
        handed_in(course, report.student, report.assignment),
        attempts.place(course, report.student, report.assignment),
    )
    there = hash_submission(last) if last.is_dir() else None
    graded = last if there == wanted else kept / wanted
    if not graded.is_dir():
        return []
    known = attempts.read(course, report.student, report.assignment)
    later = [kept / one.sha256 for one in attempts.beside(known, wanted) if one.sha256 not in (wanted, there)]
    return [graded, *(folder for folder in later if folder.is_dir())]
