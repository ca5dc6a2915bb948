"""A class as its gradebook knows it: who belongs to it, where each stands, and the points that count.

Comes in: a course folder and stored reports. Goes out: one `Entry` for each student of an assignment. Must not: write, round, need nbgrader
to be imported, or let a missing score be 0.

What counts is what nbgrader sums, only that the machine's points come from the report, where a third is not yet a binary fraction.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

import msgspec
from sqlalchemy import text
from sqlalchemy.engine import Connection

from graders.records import ExerciseResult, Kind, Record, Report, Status
from graders.results.markbook import marks_of, reading
from graders.results.marks import NO_MARKS, Marks, marked
from graders.results.points import ZERO
from graders.results.report import earlier

MISSING = "missing"

# What nbgrader 0.9 stores
_PEOPLE = text("select id, last_name, first_name, email, lms_user_id from student order by id")
_ASSIGNMENTS = text("select name from assignment order by name")
_CELLS = """
from assignment a join notebook n on n.assignment_id = a.id join base_cell b on b.notebook_id = n.id
join (select id, max_score from grade_cells union all select id, max_score from task_cells) c on c.id = b.id
"""
_WORTH = text(f"select c.max_score as worth {_CELLS} where a.name = :assignment")
_GRADES = text(
    "select sa.student_id as student, n.name as notebook, b.name as cell, c.max_score as worth, g.auto_score as auto "
    f"{_CELLS} join grade g on g.cell_id = b.id join submitted_notebook sn on sn.id = g.notebook_id "
    "join submitted_assignment sa on sa.id = sn.assignment_id where a.name = :assignment"
)


class Person(Record):
    """A student as the course's list has them; what is not known is empty."""

    student: str
    last_name: str = ""
    first_name: str = ""
    email: str = ""
    lms_user_id: str = ""


class Entry(Record):
    """Where one student stands. `status` is one of `Status`, or "missing" when nothing was handed in.

    `report` holds what counts and is None when nothing does; `latest` is what was looked at last, as it was signed. `score` has the
    `penalty` taken off.
    """

    person: Person
    assignment: str
    status: str
    score: Decimal | None
    max_score: Decimal
    reason: str | None = None
    report: Report | None = None
    latest: Report | None = None
    penalty: Decimal = ZERO


class _Book(Record):
    """What the gradebook holds of one assignment: the course's list, the machine's results by student, and the points of all cells."""

    people: dict[str, Person] = msgspec.field(default_factory=dict)
    grades: dict[str, list[ExerciseResult]] = msgspec.field(default_factory=dict)
    worth: Decimal = ZERO


def assignments(course: Path, db_url: str = "") -> list[str]:
    """Names of all assignments in the gradebook."""
    with reading(course, db_url) as connection:
        return [] if connection is None else [str(row.name) for row in connection.execute(_ASSIGNMENTS)]


def people(course: Path, db_url: str = "") -> list[Person]:
    """The course's list of students, by id."""
    with reading(course, db_url) as connection:
        return [] if connection is None else _people(connection)


def entries(course: Path, assignment: str, reports: Iterable[Report], db_url: str = "") -> tuple[Entry, ...]:
    """Everybody of the course's list and everybody who has a report, by id. `reports` are the latest ones."""
    with reading(course, db_url) as connection:
        book = _Book() if connection is None else _read(connection, assignment)
    marks = marks_of(course, assignment, db_url)
    latest = {one.student: one for one in reports}
    worth = book.worth or max((one.max_score for one in latest.values()), default=ZERO)
    found = []
    for student in sorted({*book.people, *book.grades, *latest}):
        report = latest.get(student)
        lost = report is not None and report.status is Status.not_graded
        judged = earlier(course, student, assignment) if lost else report
        if judged is None and student in book.grades:  # by nbgrader itself, before this course used graders
            judged = Report(student, assignment, Status.graded, None, worth, tuple(book.grades[student]))
        bare = Entry(book.people.get(student, Person(student)), assignment, MISSING, None, worth)
        found.append(_entry(bare, report, judged, marks.get(student, NO_MARKS)))
    return tuple(found)


def _entry(bare: Entry, latest: Report | None, judged: Report | None, marks: Marks) -> Entry:
    """`judged` is the report whose points stand, `bare` somebody who has handed in nothing."""
    reason = latest.reason if latest else None
    if judged is None:
        status = latest.status.value if latest else MISSING
        return msgspec.structs.replace(bare, status=status, reason=reason, latest=latest)
    total = sum((one.score or ZERO for one in judged.exercises), ZERO)
    judged = marked(msgspec.structs.replace(judged, score=total), marks)
    return msgspec.structs.replace(
        bare,
        status=judged.status.value,
        score=judged.score,
        max_score=judged.max_score,
        reason=reason and f"A later hand-in could not be graded: {reason}",
        report=judged,
        latest=latest,
        penalty=marks.penalty,
    )


def _read(connection: Connection, assignment: str) -> _Book:
    asked = {"assignment": assignment}
    people = {one.student: one for one in _people(connection)}
    grades: dict[str, list[ExerciseResult]] = {}
    for row in connection.execute(_GRADES, asked).mappings():
        auto, worth = _points(row["auto"]), _points(row["worth"]) or ZERO
        one = ExerciseResult(row["cell"], row["notebook"], Kind.exercise, auto, worth, manual=auto is None)
        grades.setdefault(row["student"], []).append(one)
    return _Book(people, grades, sum((_points(row.worth) or ZERO for row in connection.execute(_WORTH, asked)), ZERO))


def _people(connection: Connection) -> list[Person]:
    return [Person(row[0], *(value or "" for value in row[1:])) for row in connection.execute(_PEOPLE)]


def _points(number: float | None) -> Decimal | None:
    """A point value as a person typed it: 0.1 is one tenth."""
    return None if number is None else Decimal(str(number))
