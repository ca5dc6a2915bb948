"""Grade a class: find submissions, send them through workers, store what comes back.

Comes in: a course folder, an assignment, names of students. Goes out: reports below autograded/, rows in the gradebook,
and each report to the caller as soon as it is stored. Must not: print, or store a fault of ours as a score.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from itertools import chain
from pathlib import Path

from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.files import SECOND_LOOK, STAMP, read_files, read_note, read_regular
from graders.course.reference import establish, known, with_caches
from graders.coursework import Assignment
from graders.errors import CourseError, VerifyError
from graders.records import Flag, Report, Status
from graders.results import receipts, report
from graders.results.folders import folder, handed_in, subfolders, write_file
from graders.results.marks import NO_MARKS, ZERO, Marks, difference, marked
from graders.run import attempts, best, executors, pipeline
from graders.run.bookkeeping import Bookkeeper
from graders.run.pipeline import Course, Job

DIFFERENCE = "answer-changed.diff"


def students(course: Path, assignment: str) -> list[str]:
    """Who handed in `assignment`. Names are opaque: the folder is listed, never matched."""
    submitted = course / "submitted"
    names = subfolders(submitted)
    if unreadable := [os.fsencode(name) for name in names if not _is_text(name)]:
        raise CourseError(
            f"{submitted} holds a folder whose name is not UTF-8: {unreadable[0]!r}. A student's id is text everywhere else, "
            f"in the gradebook and on pages. Next step: rename the folder."
        )
    folders = {name: handed_in(course, name, assignment) for name in names}
    # a link is not followed, but who handed one in is told so
    return sorted(name for name, where in folders.items() if where.is_symlink() or where.is_dir())


def _is_text(name: str) -> bool:
    return name.encode("utf-8", "replace").decode() == name


def prepare(settings: Settings, name: str, isolation: str | None = None) -> Course:
    """Read the assignment and establish its reference, running the solution if this version was never run here."""
    assignment = read_assignment(settings.course, name)
    conditions = pipeline.conditions_of(settings, name, isolation)
    reference = known(settings.course, assignment)
    if reference is None:
        with pipeline.new_zygote() as zygote:
            reference = establish(settings.course, assignment, conditions, zygote)
    return Course(assignment, reference, with_caches(conditions, settings.course, assignment), settings.examine)


def grade_class(
    settings: Settings,
    course: Course,
    chosen: Collection[str],
    workers: int,
    again: bool,
    done: Callable[[Report], None],
) -> None:
    """Grade the submissions of `chosen` students and store each. `done` is told every report, new or unchanged.

    What is unchanged is not run again; what it loses for being late is computed anew, since due dates and extensions change.

    Raises:
        IsolationError: the walls that the course demands cannot be had; nothing is graded.
    """
    from graders.results import markbook  # with SQLAlchemy, 0.3 s

    name = course.assignment.name

    @functools.cache
    def given() -> dict[str, Marks]:
        return markbook.marks_of(settings.course, name, settings.db_url)

    def told(one: Report, marks: Marks) -> None:
        done(_told(settings.course, one, marks))

    def decided(one: Report, marks: Marks) -> None:
        stands = best.decide(settings.course, one, _worth(one, marks))
        told(one, marks) if stands is None else book.store(stands, told)

    rules = settings.of(name)

    with Bookkeeper(settings) as book:
        may_be_late = markbook.may_be_late(settings.course, name, settings.db_url)

        def changed() -> Iterator[Job]:
            for student in chosen:  # read one by one: all submissions together need not fit into memory
                job = read_job(settings.course, student, course.assignment)
                anew = again or best.undecided(settings.course, student, name)
                kept = None if anew else unchanged(settings.course, job, course)
                if kept is None:
                    yield job
                elif may_be_late:
                    book.charge(kept, told)
                else:
                    told(kept, given().get(student, NO_MARKS))

        jobs = changed()
        if (first := next(jobs, None)) is None:
            return
        book.open()
        receipts.publish(settings.course)
        for graded in executors.local(chain([first], jobs), course, max(1, min(workers, len(chosen)))):
            found = report.standing(graded.report, _earlier(settings.course, graded.report))
            if rules.counts == "best":
                best.set_aside(settings.course, found, lambda one: _worth(one, given().get(one.student, NO_MARKS)))
            report.write(settings.course, found, graded.notebooks, receipts.sign)
            book.store(found, decided)


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


def stored(course: Path, assignment: str) -> list[tuple[Report, list[str]]]:
    """Every stored report of an assignment, with the names of its notebooks."""
    found = []
    for student in subfolders(course / "autograded"):
        where = folder(course, "autograded", student, assignment)
        if (where / report.REPORT).is_file():
            notebooks = _notebooks(where) or _notebooks(course / "release" / assignment)
            found.append((report.read(where / report.REPORT), notebooks))
    return found


def _notebooks(where: Path) -> list[str]:
    return sorted(path.stem for path in where.glob("*.ipynb"))


def read_job(course: Path, student: str, assignment: Assignment) -> Job:
    """The bytes of one submission. What cannot be read becomes a reason, not an error."""
    where = handed_in(course, student, assignment.name)
    if where.is_symlink():
        why = f"The folder of {assignment.name} that was handed in is a link and was not followed. Hand in the files themselves."
        return Job(student, {}, (), receipts.hash_submission(where), None, why)
    left_out: list[Flag] = []
    try:
        files = read_files(where, left_out)
        stamp = read_regular(where / STAMP, 100)
        digest = receipts.hash_submission(where)
    except OSError as error:  # such as a file that is taken away meanwhile; the rest of the class is graded
        return Job(student, {}, tuple(left_out), "", None, f"What was handed in could not be read: {error}.")
    submitted = stamp.decode(errors="replace").strip() if stamp is not None else None
    notes = (*attempts.flags(course, student, assignment.name, digest), *_asked(where))
    return Job(student, files, tuple(left_out), digest, submitted, notes=notes)


def _asked(where: Path) -> tuple[Flag, ...]:
    """What a student asks of a person, as one line of text."""
    asked = "".join(one if one.isprintable() else " " for one in read_note(where / SECOND_LOOK))
    return (Flag("second_look", f"A second look was asked for: “{' '.join(asked.split())}”"),) if asked else ()


def _earlier(course: Path, later: Report) -> Report | None:
    return report.earlier(course, later.student, later.assignment) if later.status is Status.not_graded else None


def unchanged(course: Path, job: Job, wanted: Course) -> Report | None:
    """The stored report, when the same files were graded under the same conditions and it is still what was signed."""
    path = folder(course, "autograded", job.student, wanted.assignment.name) / report.REPORT
    try:
        receipts.verify(path, course)
        found = report.read(path)
    except (VerifyError, OSError, ValueError):
        return None
    receipt = found.receipt
    same = (
        receipt is not None
        and found.status is Status.graded
        and receipt.submission_sha256 == job.sha256
        and receipt.assignment_sha256 == wanted.assignment.sha256
        and receipt.environment_sha256 == receipts.environment_sha256()
        and (receipt.isolation, receipt.examine, receipt.target)
        == (wanted.conditions.isolation, wanted.examine, wanted.target)
    )
    return found if same else None
