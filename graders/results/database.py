"""The database of a gradebook: where it is, how it is opened, and that its writers take turns. SQLite, or PostgreSQL as nbgrader allows.

Comes in: a course folder, an address. Goes out: engines. Must not: show a password, or need nbgrader to be imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Index, MetaData, String, Table, create_engine, event, make_url
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import ArgumentError, ProgrammingError, SQLAlchemyError

from graders.errors import InfrastructureError, SettingsError
from graders.results.folders import free_bytes

BUSY_MS = 60_000
# Where nbgrader looks without an index, and so through the rows of the whole class for each submission
_LOOKED_UP = (("submitted_notebook", "assignment_id"), ("grade", "notebook_id"), ("comment", "notebook_id"))
_SHARED = ("student", "submitted_assignment", "grade", "comment")  # nbgrader's tables that formgrader writes to


def default_url(course: Path) -> str:
    """nbgrader's default database of a course folder."""
    return f"sqlite:///{course.resolve() / 'gradebook.db'}"


@contextmanager
def opened(course: Path, db_url: str) -> Iterator[Engine | None]:
    """The gradebook of a course, to be read; None when there is none yet.

    Raises:
        InfrastructureError: the database does not answer.
        SettingsError: there is no such kind of database here.
    """
    if not db_url and not (course / "gradebook.db").is_file():
        yield None
        return
    url = db_url or default_url(course)
    engine = engine_of(url)
    try:
        with explained(url, "read"):
            yield engine
    finally:
        engine.dispose()


def engine_of(url: str) -> Engine:
    """The engine of a database, which connects to nothing yet. Raises `SettingsError` when nothing here can open such a one."""
    try:
        return create_engine(url)
    except ImportError as error:
        raise SettingsError(
            f"The gradebook {_shown(url)} needs a driver that is not installed here ({error}). "
            "Next step: pip install 'graders[postgres]'."
        ) from None
    except ArgumentError:
        raise SettingsError(
            "c.CourseDirectory.db_url is no address of a database that can be opened here. "
            "Wanted: one such as postgresql+psycopg://USER@HOST/DATABASE, or none at all for gradebook.db in the course."
        ) from None


@contextmanager
def explained(url: str, act: str) -> Iterator[None]:
    """Tell what a database says as an `InfrastructureError`, without the statement that it says it about."""
    try:
        yield
    except SQLAlchemyError as error:
        said = " ".join(str(getattr(error, "orig", None) or error).split()).rstrip(".")
        file = make_url(url).database if url.startswith("sqlite:///") else None
        room = f" {free_bytes(Path(file)):,} bytes are free on its disk." if file else ""
        raise InfrastructureError(
            f"The gradebook {_shown(url)} could not be {act}: {said}.{room} What was stored before is whole. "
            "Next step: see that the database answers and has room; then run the same command again."
        ) from error


def _shown(url: str) -> str:
    return make_url(url).render_as_string(hide_password=True)


def take_turns(engine: Engine) -> None:
    """Whoever writes waits for the others, formgrader too, so that each decides by what stands; whoever reads does not wait.

    https://docs.sqlalchemy.org/en/20/dialects/sqlite.html, "Serializable isolation / Savepoints", and
    https://www.postgresql.org/docs/current/explicit-locking.html: the mode that excludes those who write and itself.
    """
    (_lock_sqlite if engine.dialect.name == "sqlite" else _lock_postgres)(engine)


def _lock_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    engine.dispose()  # connections made before have neither


def _lock_postgres(engine: Engine) -> None:
    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {BUSY_MS}")
        connection.exec_driver_sql(f"LOCK TABLE {', '.join(_SHARED)} IN SHARE ROW EXCLUSIVE MODE")


def hasten(engine: Engine) -> None:
    """Indexes that let a report be stored in a class of 2,000 as quickly as in one of 20. No row changes."""
    for table, column in _LOOKED_UP:
        with suppress(ProgrammingError):  # an account that does not own the tables goes without
            Index(f"graders_{table}", Table(table, MetaData(), Column(column, String)).c[column]).create(
                engine, checkfirst=True
            )
