"""The writer of nbgrader's gradebook, and of our table of statuses beside it.

Comes in: reports, one after the other. Goes out: rows of nbgrader's own schema, through nbgrader's own API, and one row
in `graders_status`; one transaction for each report. Must not: store "could not be graded" as a score, lose a mark that
a person gave, or import nbgrader before a writer starts (its API takes 2.5 s to import).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete
from sqlalchemy.engine import Connection
from sqlalchemy.orm import scoped_session, sessionmaker

from graders import nbgrader_parts
from graders.errors import CourseError, InfrastructureError
from graders.records import ExerciseResult, Report, Status
from graders.results import database
from graders.results.comments import comments_of
from graders.results.lateness import charge
from graders.results.markbook import ANSWERS, read_marks, remember
from graders.results.marks import NO_MARKS, Marks, storable
from graders.results.standings import TABLE, store_status
from graders.results.times import utc

if TYPE_CHECKING:
    from nbgrader.api import Gradebook


class Writer:
    """The one writer of a course's gradebook. Use it as a context manager, in a process of its own beside the grading.

    Before it is entered it holds strings alone, so it can be pickled.
    """

    def __init__(self, course: Path | str, db_url: str = "", course_id: str = "") -> None:
        self.course = str(course)
        self.db_url = db_url or database.default_url(Path(course))
        self.course_id = course_id
        self._book: Gradebook | None = None

    def __enter__(self) -> Writer:
        from nbgrader.api import Gradebook

        nbgrader_parts.without_alembic_command()
        nbgrader_parts.without_its_log()
        database.engine_of(self.db_url)  # says what is missing
        with database.explained(self.db_url, "opened"):
            self._book = Gradebook(self.db_url, self.course_id)
            self._book.db.remove()
            database.take_turns(self._book.engine)
            TABLE.create(self._book.engine, checkfirst=True)
            ANSWERS.create(self._book.engine, checkfirst=True)
            database.hasten(self._book.engine)
        return self

    def __exit__(self, *_: object) -> None:
        if self._book is not None:
            self._book.close()
            self._book = None

    def store(self, report: Report) -> Marks:
        """Store one report, all of it or nothing, and return the marks of people that stand beside it.

        A `not_graded` report makes no grades; when the student has grades from an earlier hand-in they stand, and the
        reason says what happened to the later one.

        Raises:
            CourseError: the assignment, or a graded cell of it, is not in the gradebook.
            InfrastructureError: the database could not be written.
        """
        with self._writing() as (connection, book):
            if report.assignment not in [one.name for one in book.assignments]:
                raise CourseError(
                    f"The gradebook does not know the assignment {report.assignment!r}; its grades have no place. "
                    f"Run `graders release {report.assignment}` first."
                )
            book.update_or_create_student(report.student)
            if report.status is Status.not_graded:
                earlier = self._charge(book, report)
                store_status(connection, report, earlier.score if earlier else None)
                return NO_MARKS
            marks = _marks(connection, report)
            _store_grades(book, report)
            remember(connection, report, marks)
            store_status(connection, report, None)
            self._charge(book, report)
            book.db.flush()
            return Marks(marks.by_cell, _marks(connection, report).penalty)

    def charge(self, report: Report) -> Marks:
        """Compute anew what a report that is stored loses for being late, and return the marks that stand beside it.

        Raises:
            CourseError: the course's plugin for late submissions does not work.
            InfrastructureError: the database could not be written.
        """
        with self._writing() as (connection, book):
            self._charge(book, report)
            book.db.flush()
            return _marks(connection, report)

    def mark(self, report: Report, one: ExerciseResult, points: Decimal) -> None:
        """Give a person's points for one exercise of a stored report, as formgrader does.

        Raises:
            CourseError: the gradebook has no grade of it.
            InfrastructureError: the database could not be written.
        """
        with self._writing() as (_, book):
            submission = _submission(book, report)
            rows = [row for row in submission.notebooks if row.name == one.notebook] if submission else []
            grade = next((grade for row in rows for grade in row.grades if grade.name == one.id), None)
            if grade is None:
                raise CourseError(
                    f"The gradebook has no grade {one.id!r} of {report.student!r} in {one.notebook!r}. "
                    f"Run `graders grade {report.assignment} --student {report.student} --again` first."
                )
            grade.manual_score, grade.needs_manual_grade = float(points), False
            self._charge(book, report)

    def forget(self, student: str) -> dict[str, int]:
        """Delete a student with all that is stored of them. Returns how many rows of our tables, and submissions of nbgrader's.

        Raises:
            InfrastructureError: the database could not be written.
        """
        with self._writing() as (connection, book):
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete = ON")  # what is deleted is overwritten
            found = {}
            for table in (TABLE, ANSWERS):
                gone = connection.execute(delete(table).where(table.c.student == student)).rowcount
                found[table.name] = gone
            if student in [one.id for one in book.students]:
                found["submitted_assignment"] = len(book.find_student(student).submissions)
                found["student"] = 1
                book.remove_student(student)
            return {name: count for name, count in found.items() if count}

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, Gradebook]]:
        """One transaction, in which nbgrader's API works."""
        if self._book is None:
            raise InfrastructureError("The gradebook writer is not open. Use it as `with Writer(course) as writer:`.")
        with (
            database.explained(self.db_url, "written"),
            self._book.engine.begin() as connection,
            _inside(self._book, connection) as book,
        ):
            yield connection, book

    def _charge(self, book: Gradebook, report: Report) -> Any:
        """nbgrader's row of the submission, its penalties computed anew; None when there is none."""
        book.db.flush()
        book.db.expire_all()  # the sums that the penalty depends on are nbgrader's to add up
        submission = _submission(book, report)
        if submission is not None:
            charge(submission, Path(self.course))
        return submission


@contextmanager
def _inside(book: Gradebook, connection: Connection) -> Iterator[Gradebook]:
    """Let nbgrader's API work inside our transaction: its commits only flush, its rollbacks roll all back."""
    from nbgrader.api import InvalidEntry

    before = book.db
    book.db = scoped_session(sessionmaker(bind=connection, join_transaction_mode="rollback_only", autoflush=True))
    try:
        yield book
        book.db.flush()
    except InvalidEntry as error:  # nbgrader's word for whatever a database says
        raise error.__context__ or error from None
    finally:
        book.db.remove()
        book.db = before


def _submission(book: Gradebook, report: Report) -> Any:
    from nbgrader.api import MissingEntry

    try:
        return book.find_submission(report.assignment, report.student)
    except MissingEntry:
        return None


def _marks(connection: Connection, report: Report) -> Marks:
    return read_marks(connection, report.assignment, report.student).get(report.student, NO_MARKS)


def _store_grades(book: Gradebook, report: Report) -> None:
    when = utc(report.submitted)
    # a time that is not known leaves what nbgrader has
    extra = {} if when is None else {"timestamp": when.replace(tzinfo=None)}
    submission = book.update_or_create_submission(report.assignment, report.student, **extra)
    rows = {row.name: row for row in submission.notebooks}
    cells = {(row.name, cell.name): cell for row in rows.values() for cell in row.notebook.grade_cells}
    cells |= {(row.name, cell.name): cell for row in rows.values() for cell in row.notebook.task_cells}
    for one in report.exercises:
        cell = cells.get((one.notebook, one.id))
        if cell is None:
            raise CourseError(
                f"The graded cell {one.id!r} of {one.notebook!r} is not in the gradebook: {report.assignment!r} was "
                f"changed after its release. Run `graders release {report.assignment}` again."
            )
        _store_grade(book, rows[one.notebook], cell, one)
    for (notebook, id), text in comments_of(report.exercises).items():
        for comment in rows[notebook].comments:
            if comment.name == id:
                comment.auto_comment = text and storable(text)


def _store_grade(book: Gradebook, notebook: Any, cell: Any, one: ExerciseResult) -> None:
    """As nbgrader's SaveAutoGrades does: a manual score is kept, and then a person should look again."""
    from nbgrader.api import Grade

    grade = next((grade for grade in notebook.grades if grade.cell_id == cell.id), None)
    if grade is None:  # the cell was added to the assignment after this submission was first stored
        grade = Grade(cell_id=cell.id, notebook=notebook)
        book.db.add(grade)
    unanswered = one.manual and not one.attempted
    grade.auto_score = 0.0 if unanswered else None if one.score is None else float(one.score)
    # nbgrader settles an unanswered written cell as 0; one that was deleted is only proposed as 0
    deleted = unanswered and one.reason is not None
    given = grade.manual_score is not None or bool(grade.extra_credit)
    grade.needs_manual_grade = given or grade.auto_score is None or deleted
