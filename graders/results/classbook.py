"""A class as its gradebook knows it: who belongs to it, where each stands, and the points that count.

Comes in: a course folder and stored reports. Goes out: one `Entry` for each student of an assignment. Must not: write, round, need nbgrader
to be imported, or let a missing score be 0.

What counts is a person's mark before the machine's points, extra credit added and the penalty for being late taken off, as nbgrader
sums it; only that the machine's points come from the report, where a third is not yet a binary fraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import Connection

from graders.records import ExerciseResult, Kind, Record, Report, Status
from graders.results.gradebook import default_url
from graders.results.points import ZERO
from graders.results.report import earlier

MISSING = "missing"
_AWAITS = "awaits_marking"

# What nbgrader 0.9 stores
_PEOPLE = text("select id, last_name, first_name, email, lms_user_id from student order by id")
_ASSIGNMENTS = text("select name from assignment order by name")
_CELLS = """
from assignment a join notebook n on n.assignment_id = a.id join base_cell b on b.notebook_id = n.id
join (select id, max_score from grade_cells union all select id, max_score from task_cells) c on c.id = b.id
"""
_WORTH = text(f"select c.max_score as worth {_CELLS} where a.name = :assignment")
_GRADES = text(
    "select sa.student_id as student, n.name as notebook, b.name as cell, c.max_score as worth, g.auto_score as auto, "
    f"g.manual_score as manual, g.extra_credit as extra {_CELLS} join grade g on g.cell_id = b.id "
    "join submitted_notebook sn on sn.id = g.notebook_id join submitted_assignment sa on sa.id = sn.assignment_id "
    "where a.name = :assignment"
)
_PENALTIES = text(
    "select sa.student_id as student, sn.late_submission_penalty as penalty from assignment a "
    "join submitted_assignment sa on sa.assignment_id = a.id join submitted_notebook sn on sn.assignment_id = sa.id "
    "where a.name = :assignment and sn.late_submission_penalty is not null"
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
    """What the gradebook holds of one assignment; rows by student."""

    people: dict[str, Person] = msgspec.field(default_factory=dict)
    grades: dict[str, dict[tuple[str, str], dict[str, Any]]] = msgspec.field(default_factory=dict)
    penalties: dict[str, Decimal] = msgspec.field(default_factory=dict)
    worth: Decimal = ZERO


def assignments(course: Path, db_url: str = "") -> list[str]:
    """Names of all assignments in the gradebook."""
    with _reading(course, db_url) as connection:
        return [] if connection is None else [str(row.name) for row in connection.execute(_ASSIGNMENTS)]


def entries(course: Path, assignment: str, reports: Iterable[Report], db_url: str = "") -> tuple[Entry, ...]:
    """Everybody of the course's list and everybody who has a report, by id. `reports` are the latest ones."""
    with _reading(course, db_url) as connection:
        book = _Book() if connection is None else _read(connection, assignment)
    latest = {one.student: one for one in reports}
    worth = book.worth or max((one.max_score for one in latest.values()), default=ZERO)
    found = []
    for student in sorted({*book.people, *book.grades, *latest}):
        report = latest.get(student)
        lost = report is not None and report.status is Status.not_graded
        judged = earlier(course, student, assignment) if lost else report
        found.append(_entry(book, Person(student), assignment, report, judged, worth))
    return tuple(found)


def _entry(
    book: _Book, unlisted: Person, assignment: str, latest: Report | None, judged: Report | None, worth: Decimal
) -> Entry:
    """`judged` is the report whose points stand; what nbgrader itself graded has none."""
    student = unlisted.student
    person = book.people.get(student, unlisted)
    grades, penalty = book.grades.get(student, {}), book.penalties.get(student, ZERO)
    reason = latest.reason if latest else None
    if judged is None and grades:
        judged = _graded_by_nbgrader(student, assignment, grades)
    if judged is None:
        status = latest.status.value if latest else MISSING
        return Entry(person, assignment, status, None, worth, reason, None, latest)
    if reason is not None:
        reason = f"A later hand-in could not be graded: {reason}"
    judged = counted(judged, grades, penalty)
    return Entry(
        person, assignment, judged.status.value, judged.score, judged.max_score, reason, judged, latest, penalty
    )


def counted(report: Report, grades: Mapping[tuple[str, str], Mapping[str, Any]], penalty: Decimal) -> Report:
    """A report with the points that count: a person's before the machine's, extra credit added, the penalty taken off."""
    exercises = tuple(_counted(one, grades.get((one.notebook, one.id), {})) for one in report.exercises)
    waits = any(waiting(one) for one in exercises)
    lost = any(one.score is None and not one.manual for one in exercises)
    return msgspec.structs.replace(
        report,
        status=Status.partly_graded if lost else Status.graded,
        score=max(ZERO, sum((one.score or ZERO for one in exercises), ZERO) - penalty),
        exercises=exercises,
        flags=tuple(flag for flag in report.flags if waits or flag.name != _AWAITS),
    )


def waiting(one: ExerciseResult) -> bool:
    """Whether a person still has to read this answer, or to look where it went."""
    return one.manual and one.score is None and (one.attempted or one.reason is not None)


def _counted(one: ExerciseResult, grade: Mapping[str, Any]) -> ExerciseResult:
    manual, extra = _points(grade.get("manual")), _points(grade.get("extra"))
    if manual is None and not extra:
        return one
    score = one.score if manual is None else manual
    return msgspec.structs.replace(one, score=(score or ZERO) + (extra or ZERO))


def _graded_by_nbgrader(student: str, assignment: str, grades: Mapping[tuple[str, str], Mapping[str, Any]]) -> Report:
    """A report of what stood in the gradebook before this course used graders; it knows no kinds and no outcomes."""
    exercises = tuple(
        ExerciseResult(
            cell,
            notebook,
            Kind.exercise,
            _points(grade["auto"]),
            _points(grade["worth"]) or ZERO,
            manual=grade["auto"] is None,
        )
        for (notebook, cell), grade in grades.items()
    )
    total = sum((one.max_score for one in exercises), ZERO)
    return Report(student, assignment, Status.graded, None, total, exercises)


@contextmanager
def _reading(course: Path, db_url: str) -> Iterator[Connection | None]:
    """nbgrader's gradebook, read; None when there is none yet."""
    if not db_url and not (course / "gradebook.db").is_file():
        yield None
        return
    engine = create_engine(db_url or default_url(course))
    try:
        with engine.connect() as connection:
            yield connection if inspect(connection).has_table("grade") else None
    finally:
        engine.dispose()


def _read(connection: Connection, assignment: str) -> _Book:
    asked = {"assignment": assignment}
    rows = connection.execute(_PEOPLE).all()
    people = {row[0]: Person(row[0], *(value or "" for value in row[1:])) for row in rows}
    grades: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for row in connection.execute(_GRADES, asked).mappings():
        grades.setdefault(row["student"], {})[row["notebook"], row["cell"]] = dict(row)
    lost: dict[str, Decimal] = {}
    for row in connection.execute(_PENALTIES, asked).mappings():
        lost[row["student"]] = lost.get(row["student"], ZERO) + (_points(row["penalty"]) or ZERO)
    worth = [_points(row.worth) or ZERO for row in connection.execute(_WORTH, asked)]
    return _Book(people, grades, lost, sum(worth, ZERO))


def _points(number: float | None) -> Decimal | None:
    """A point value as a person typed it: 0.1 is one tenth."""
    return None if number is None else Decimal(str(number))
