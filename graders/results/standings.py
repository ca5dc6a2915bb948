"""Our table of statuses, in the same database as nbgrader's gradebook.

Comes in: reports. Goes out: one row for each student and assignment. Must not: hold a score where there is none, or need nbgrader
to be imported.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from sqlalchemy import Column, MetaData, String, Table, Text, delete, insert, inspect, select
from sqlalchemy.engine import Connection, Engine

from graders.records import Record, Report, Status, to_json
from graders.results.database import opened
from graders.results.marks import storable

# Its own MetaData: nbgrader's create_all and migrations never see this table.
TABLE = Table(
    "graders_status",
    MetaData(),
    Column("student", String(128), primary_key=True),
    Column("assignment", String(128), primary_key=True),
    Column("status", String(32), nullable=False),
    Column("reason", Text),
    Column("score", String(64)),  # decimal text: SQLite has no exact number with a fraction
    Column("max_score", String(64), nullable=False),
    Column("report_sha256", String(64), nullable=False),
    Column("graded_at", String(40), nullable=False),
)


class Standing(Record, frozen=True):
    """Where one student stands in one assignment. `graded_at` is ISO 8601 UTC."""

    student: str
    assignment: str
    status: str
    reason: str | None
    score: Decimal | None
    max_score: Decimal
    report_sha256: str
    graded_at: str


def statuses(course: Path, db_url: str = "") -> list[Standing]:
    """Every row of `graders_status`, by assignment and student; an empty list when there is no gradebook yet."""
    with opened(course, db_url) as engine:
        return read_standings(engine) if engine is not None else []


def read_standings(engine: Engine) -> list[Standing]:
    """Like `statuses`, from an open engine."""
    if not inspect(engine).has_table(TABLE.name):
        return []
    with engine.connect() as connection:
        rows = connection.execute(select(TABLE).order_by(TABLE.c.assignment, TABLE.c.student)).mappings()
        return [
            Standing(**dict(row) | {key: row[key] and Decimal(row[key]) for key in ("score", "max_score")})
            for row in rows
        ]


def digest(report: Report) -> str:
    """The SHA-256 of a report as it is stored, by which a row says which report it is of."""
    return hashlib.sha256(to_json(report)).hexdigest()


def store_status(connection: Connection, report: Report, standing: float | None) -> None:
    """Write the row. `standing` is the score of earlier grades that a not_graded report leaves in force."""
    own = (TABLE.c.student == report.student) & (TABLE.c.assignment == report.assignment)
    before = connection.execute(select(TABLE).where(own)).mappings().first()
    row = {
        "student": report.student,
        "assignment": report.assignment,
        "status": report.status.value,
        "reason": report.reason and storable(report.reason),
        "score": None if report.score is None else str(report.score),
        "max_score": str(report.max_score),
        "report_sha256": digest(report),
        "graded_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if standing is not None:
        row |= {"status": Status.graded.value, "score": str(round(standing, 9))}
        if before is not None and before["status"] != Status.not_graded.value:
            row |= {key: before[key] for key in ("status", "score", "max_score")}
        row["reason"] = f"A later hand-in could not be graded: {row['reason']}"
    connection.execute(delete(TABLE).where(own))
    connection.execute(insert(TABLE).values(row))
