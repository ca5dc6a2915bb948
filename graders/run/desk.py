"""Where submissions are graded and stored, one burst after the other, by workers who stay warm.

Comes in: names of students. Goes out: reports below autograded/, rows in the gradebook, lines in the journal, and each report to the
caller as soon as it is stored. Must not: store a fault of ours as a score, or be killed at a moment that the next start does not make good.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from graders.config import Settings
from graders.errors import VerifyError
from graders.records import Report, Status
from graders.results import journal, receipts, report, shifts
from graders.results.folders import folder, mend_folder, write_file
from graders.results.marks import NO_MARKS, ZERO, Marks, difference, marked
from graders.run import best
from graders.run.bookkeeping import Bookkeeper
from graders.run.executors import Workers
from graders.run.pipeline import Course, Graded, Job
from graders.run.submissions import read_job

if TYPE_CHECKING:  # with Dask, which not everybody installs
    from graders.run.cluster import Cluster

DIFFERENCE = "answer-changed.diff"
Kept = Callable[[Path, Job, Course], Report | None]


def nothing(course: Path, job: Job, wanted: Course) -> None:
    """Every submission is run, whatever is stored."""


class Desk:
    """A context manager: workers and the gradebook's writer, who stay warm from one call to the next.

    Whoever calls holds the assignment's lock. `crew` are processes of this machine, or a cluster; `act` is the command in whose name
    scores change.
    """

    def __init__(self, settings: Settings, course: Course, crew: Workers | Cluster, act: str = "grade") -> None:
        self.course = course
        self._settings, self._act, self._opened = settings, act, False
        self._workers, self._book = crew, Bookkeeper(settings)

    def grade(self, chosen: Iterable[str | None], kept: Kept, done: Callable[[Report], None]) -> None:
        """Grade the submissions of `chosen` students and store each; a None among them says that there is nobody just now.

        What `kept` has a report of is not run again; what it loses for being late is computed anew, since due dates and extensions change.
        """
        self.keep(self._workers.grade(self._changed(chosen, kept, done)), done)

    def examine(self, students: Iterable[str]) -> Iterator[Graded]:
        """Grade and store nothing."""
        assignment = self.course.assignment
        return self._workers.grade(read_job(self._settings.course, one, assignment) for one in students)

    def keep(self, results: Iterable[Graded], done: Callable[[Report], None] = lambda report: None) -> None:
        """Store each: a line in the journal if points change, then the report, then the gradebook's rows.

        A process killed in between is made good by the next `grade`, which finds a report that the gradebook does not have.
        """
        counts, given = self._settings.of(self.course.assignment.name).counts, self._given()
        for graded in results:
            self.open()
            before = report.earlier(self._settings.course, graded.report.student, graded.report.assignment)
            found = report.standing(graded.report, before)
            if before is not None and found.status is not Status.not_graded:
                self._note(before, found)
            if counts == "best":
                best.set_aside(
                    self._settings.course, found, lambda one: _worth(one, given().get(one.student, NO_MARKS))
                )
            report.write(self._settings.course, found, graded.notebooks, receipts.sign, graded.files)
            self._book.store(found, self._deciding(done))
        self._book.settle()

    def _changed(
        self, chosen: Iterable[str | None], kept: Kept, done: Callable[[Report], None]
    ) -> Iterator[Job | None]:
        """The submissions to run, read one by one: all together need not fit into memory."""
        from graders.results import markbook, standings  # with SQLAlchemy, 0.3 s

        course, name, db_url = self._settings.course, self.course.assignment.name, self._settings.db_url
        rows = {row.student: row.report_sha256 for row in standings.statuses(course, db_url) if row.assignment == name}
        may_be_late = markbook.may_be_late(course, name, db_url)
        given = self._given()
        for student in chosen:
            if student is None:
                self._book.settle()
                yield None
                continue
            mend_folder(folder(course, "autograded", student, name))
            job = read_job(course, student, self.course.assignment)
            before = None if best.undecided(course, student, name) else kept(course, job, self.course)
            if before is None:
                self.open()
                yield job
            elif rows.get(student) != standings.digest(before):
                self._book.store(before, self._telling(done))  # whoever stored the report was killed before this
            elif may_be_late:
                self._book.charge(before, self._telling(done))
            else:
                done(_told(course, before, given().get(student, NO_MARKS)))

    def _given(self) -> Callable[[], dict[str, Marks]]:
        """What people gave, read once when it is asked for."""
        from graders.results import markbook

        name = self.course.assignment.name
        return functools.cache(lambda: markbook.marks_of(self._settings.course, name, self._settings.db_url))

    def _deciding(self, done: Callable[[Report], None]) -> Callable[[Report, Marks], None]:
        """Tell of the report that stands once the points of a new one are known: this one, or a better one of before."""
        told = self._telling(done)

        def decided(one: Report, marks: Marks) -> None:
            stands = best.decide(self._settings.course, one, _worth(one, marks))
            if stands is None:
                told(one, marks)
            else:
                self._note(one, stands)
                self._book.store(stands, told)

        return decided

    def _telling(self, done: Callable[[Report], None]) -> Callable[[Report, Marks], None]:
        return lambda one, marks: done(_told(self._settings.course, one, marks))

    def _note(self, before: Report, after: Report) -> None:
        if shifts.compare(before, after, NO_MARKS) is not None:
            why, told = shifts.why(before, after), (shifts.account(before), shifts.account(after))
            journal.note(self._settings.course, self._act, after.assignment, after.student, why, *told)

    def open(self) -> None:
        """Begin to start what takes a while, now and not with the first submission."""
        if not self._opened:
            self._opened = True
            self._book.open()
            receipts.publish(self._settings.course)
            self._workers.open()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *error: object) -> None:
        with self._workers:
            self._book.__exit__(*error)


def _worth(one: Report, marks: Marks) -> Decimal:
    """The points that count."""
    return marked(one, marks).score or ZERO


def _told(course: Path, signed: Report, marks: Marks) -> Report:
    """The report with the points that count; staff get the difference to what was marked, beside the report."""
    path = folder(course, "autograded", signed.student, signed.assignment) / DIFFERENCE
    if text := difference(signed, marks):
        write_file(path, text.encode("utf-8", "replace"))
    elif signed.status is not Status.not_graded:
        path.unlink(missing_ok=True)
    return marked(signed, marks)


def unchanged(course: Path, job: Job, wanted: Course) -> Report | None:
    """The stored report, when the same files were graded under the same conditions and it is still what was signed."""
    found = same_files(course, job, wanted)
    receipt = found.receipt if found else None
    same = (
        receipt is not None
        and receipt.assignment_sha256 == wanted.assignment.sha256
        and receipt.environment_sha256 == receipts.environment_sha256()
        and (receipt.isolation, receipt.examine, receipt.target)
        == (wanted.conditions.isolation, wanted.examine, wanted.conditions.target.name)
    )
    return found if same else None


def same_files(course: Path, job: Job, wanted: Course) -> Report | None:
    """The stored report, when the same files were graded under whatever conditions and it is still what was signed."""
    path = folder(course, "autograded", job.student, wanted.assignment.name) / report.REPORT
    try:
        receipts.verify(path, course)
        found = report.read(path)
    except (VerifyError, OSError, ValueError):
        return None
    same = found.receipt is not None and found.receipt.submission_sha256 == job.sha256
    return found if same and found.status is Status.graded else None
