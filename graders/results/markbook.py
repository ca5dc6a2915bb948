"""Marks in the gradebook: nbgrader's rows that a person filled, and our table of the texts that were marked.

Comes in: an open engine or connection, reports. Goes out: `Marks` by student. Must not: write into nbgrader's tables, or need
nbgrader to be imported, so that pages can be written without it.

nbgrader remembers a mark and not what it was given for. So each stored answer is remembered here; once a person has given a
mark, the answer of that moment is kept as the one that was marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlalchemy import Column, MetaData, String, Table, Text, bindparam, delete, insert, inspect, select, text
from sqlalchemy.engine import Connection, MappingResult

from graders.records import Report
from graders.results.database import opened
from graders.results.marks import ZERO, Mark, Marks, of, storable

ANSWERS = Table(
    "graders_answers",
    MetaData(),
    Column("student", String(128), primary_key=True),
    Column("assignment", String(128), primary_key=True),
    Column("notebook", String(128), primary_key=True),
    Column("cell", String(128), primary_key=True),
    Column("answer", Text, nullable=False),  # as stored last: what a person sees in formgrader
    Column("mark", String(64)),  # the mark that a person had given by then
    Column("marked_answer", Text),  # and the answer for which it was given
)

_MARKED = ("mark", "marked_answer")

# What nbgrader 0.9 stores: a grade belongs to a graded cell, a comment to an answer cell
_HANDED_IN = """
from assignment a join submitted_assignment sa on sa.assignment_id = a.id
join submitted_notebook sn on sn.assignment_id = sa.id join notebook n on n.id = sn.notebook_id
"""
_GRADES = (
    "select sa.student_id as student, n.name as notebook, b.name as cell, g.manual_score as score, "
    f"g.extra_credit as extra, g.needs_manual_grade as needs {_HANDED_IN} "
    "join grade g on g.notebook_id = sn.id join base_cell b on b.id = g.cell_id "
    "where a.name = :assignment and (g.manual_score is not null or g.extra_credit != 0)"
)
_COMMENTS = (
    f"select sa.student_id as student, n.name as notebook, b.name as cell, c.manual_comment as comment {_HANDED_IN} "
    "join comment c on c.notebook_id = sn.id join base_cell b on b.id = c.cell_id "
    "where a.name = :assignment and c.manual_comment is not null and c.manual_comment != ''"
)
_DUE = text("select 1 from assignment where name = :assignment and duedate is not null")
_PENALTIES = (
    f"select sa.student_id as student, sn.late_submission_penalty as penalty {_HANDED_IN} "
    "where a.name = :assignment and sn.late_submission_penalty is not null"
)


def marks_of(course: Path, assignment: str, db_url: str = "") -> dict[str, Marks]:
    """Everybody's marks for one assignment; empty when there is no gradebook yet."""
    with reading(course, db_url) as connection:
        if connection is None:
            return {}
        return read_marks(connection, assignment, known=inspect(connection).has_table(ANSWERS.name))


def may_be_late(course: Path, assignment: str, db_url: str = "") -> bool:
    """Whether a penalty may have to be computed: the assignment is due some day, or somebody has one from when it was."""
    with reading(course, db_url) as connection:
        return connection is not None and bool(
            connection.execute(_DUE, {"assignment": assignment}).first()
            or connection.execute(text(_PENALTIES), {"assignment": assignment}).first()
        )


@contextmanager
def reading(course: Path, db_url: str) -> Iterator[Connection | None]:
    """nbgrader's gradebook, read; None when there is none yet."""
    with opened(course, db_url) as engine:
        if engine is None:
            yield None
            return
        with engine.connect() as connection:
            yield connection if inspect(connection).has_table("grade") else None


def read_marks(
    connection: Connection, assignment: str, student: str | None = None, *, known: bool = True
) -> dict[str, Marks]:
    """Like `marks_of`, inside a transaction and for one `student` if named. `known`: whether our own table is there."""
    ours = select(ANSWERS).where(ANSWERS.c.assignment == assignment)
    ours = ours if student is None else ours.where(ANSWERS.c.student == student)
    rows = connection.execute(ours).mappings() if known else ()
    answers = {(row["student"], row["notebook"], row["cell"]): row for row in rows}
    found: dict[str, dict[tuple[str, str], Mark]] = {}
    for row in _rows(connection, _GRADES, assignment, student):
        mark = Mark(_points(row["score"]), _points(row["extra"]) or ZERO)
        if mark.given:
            before = answers.get((row["student"], row["notebook"], row["cell"]))
            mark = Mark(mark.score, mark.extra, None, _marked_answer(before, mark, settled=not row["needs"]))
            found.setdefault(row["student"], {})[row["notebook"], row["cell"]] = mark
    for row in _rows(connection, _COMMENTS, assignment, student):
        mine = found.setdefault(row["student"], {})
        key = (row["notebook"], row["cell"])
        mark = mine.get(key, Mark())
        mine[key] = Mark(mark.score, mark.extra, row["comment"], mark.answer)
    lost: dict[str, Decimal] = {}
    for row in _rows(connection, _PENALTIES, assignment, student):
        lost[row["student"]] = lost.get(row["student"], ZERO) + (_points(row["penalty"]) or ZERO)
    return {student: Marks(found.get(student, {}), lost.get(student, ZERO)) for student in {*found, *lost}}


def _rows(connection: Connection, query: str, assignment: str, student: str | None) -> MappingResult:
    if student is None:
        return connection.execute(text(query), {"assignment": assignment}).mappings()
    own = {"assignment": assignment, "student": student}
    return connection.execute(text(f"{query} and sa.student_id = :student"), own).mappings()


def remember(connection: Connection, report: Report, marks: Marks) -> None:
    """Note the answers of a report, and for each mark the answer that it was given for. `marks` are those of before."""
    keys, rows = [], []
    for one in report.exercises:
        mark = of(one, marks)
        key = {"student": report.student, "assignment": report.assignment, "notebook": one.notebook, "cell": one.id}
        given = {"mark": _text(mark), "marked_answer": mark.answer} if mark.given else dict.fromkeys(_MARKED)
        keys.append({f"its_{name}": value for name, value in key.items()})
        rows.append({**key, "answer": storable(one.answer), **given})
    if rows:
        same = [column == bindparam(f"its_{column.name}") for column in ANSWERS.primary_key]
        connection.execute(delete(ANSWERS).where(*same), keys)
        connection.execute(insert(ANSWERS), rows)


def _marked_answer(before: Mapping[Any, Any] | None, mark: Mark, *, settled: bool) -> str | None:
    """The text that a mark was given for: the stored one, if a person marked it since it was stored."""
    if before is None:
        return None
    fresh = settled or before["mark"] != _text(mark)
    return str(before["answer"]) if fresh else before["marked_answer"]


def _text(mark: Mark) -> str:
    return f"{mark.score} + {mark.extra}"


def _points(number: float | None) -> Decimal | None:
    """A point value as a person typed it: 0.1 is one tenth."""
    return None if number is None else Decimal(str(number))
