"""The gradebook's writer in a process of its own: nbgrader takes 2.5 s to import, which passes beside the grading.

Comes in: reports, one after the other, and what is to be done once each is stored. Goes out: rows in the gradebook. Must not:
start the process before there is something to write, or let anything be done before it is stored.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

from graders import nbgrader_parts
from graders.config import Settings
from graders.errors import CourseError, GradersError, InfrastructureError
from graders.records import Report
from graders.results.marks import Marks
from graders.run.orphans import end_with_parent

if TYPE_CHECKING:
    from graders.results.gradebook import Writer

Then = Callable[[Report, Marks], None]


class Bookkeeper:
    """A context manager. What is to be done with a report is done here, in the order in which the reports came."""

    def __init__(self, settings: Settings) -> None:
        context = multiprocessing.get_context("spawn")
        start = (settings.course, settings.db_url, settings.course_id)
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_open, initargs=start)
        self._pending: deque[tuple[Future[Marks], Report, Then]] = deque()

    def open(self) -> None:
        """Start the process now, since something will be stored later."""
        self._pool.submit(os.getpid)

    def store(self, one: Report, then: Then) -> None:
        """Store a report, and then do `then` with it and the marks of people that stand beside it."""
        self._submit(_store, one, then)

    def charge(self, one: Report, then: Then) -> None:
        """Compute anew what a stored report loses for being late, and then do `then` as above."""
        self._submit(_charge, one, then)

    def _submit(self, work: Callable[[Report], Marks], one: Report, then: Then) -> None:
        self._pending.append((self._pool.submit(work, one), one, then))
        while self._pending and self._pending[0][0].done() and self._pending[0][0].exception() is None:
            self._settle()

    def settle(self) -> None:
        """Wait until all is stored and done."""
        while self._pending:
            self._settle()

    def _settle(self) -> None:
        stored, one, then = self._pending.popleft()
        try:
            marks = stored.result()
        except BrokenProcessPool:
            raise InfrastructureError(
                f"The gradebook's writer was lost while it stored the report of {one.student}. The report itself is stored. "
                f"Next step: graders grade {one.assignment}, which gives the gradebook what it lacks."
            ) from None
        then(one, marks)

    def __enter__(self) -> Bookkeeper:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.settle()
        finally:
            self._pool.shutdown()


_writer: Writer | GradersError | None = None


def _open(course: Path, db_url: str, course_id: str) -> None:
    global _writer
    end_with_parent()
    nbgrader_parts.without_servers()
    # nbgrader's own queries make SQLAlchemy warn three times for each submission
    warnings.filterwarnings("ignore", message="Object of type <Submitted")
    from graders.results.gradebook import Writer  # with SQLAlchemy, 0.3 s that only this process needs to pay

    try:
        _writer = Writer(course, db_url, course_id).__enter__()
    except GradersError as error:
        _writer = error  # a pool would tell a traceback and not this sentence


def _store(one: Report) -> Marks:
    return _opened().store(one)


def _charge(one: Report) -> Marks:
    return _opened().charge(one)


def _opened() -> Writer:
    if _writer is None:
        raise CourseError("The gradebook writer is not open.")
    if isinstance(_writer, GradersError):
        raise _writer
    return _writer
