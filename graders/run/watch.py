"""Collect, grade and return feedback as submissions arrive.

Comes in: settings, an assignment. Goes out: for each submission what `collect`, `grade` and `feedback --release` would leave, and a `Done` to
the caller. Must not: hold the assignment's lock while it waits, or leave anything that the next start does not put right.

It keeps no state of its own: whatever moment it is killed at, the next start looks at every submission once. One that was graded
before, under whatever version, is not run again: `regrade` does that. Its row and its page are put right.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress

import watchfiles

from graders.config import Settings
from graders.errors import BusyError, CourseError, FullError, InfrastructureError
from graders.records import Record, Report
from graders.results.folders import folder, mend_folder
from graders.run import exchange, grading, locks, returning
from graders.run.desk import Desk, same_files
from graders.run.executors import Workers
from graders.run.inbox import Inbox

POLL_S = 3.0  # where the system tells nothing, as on a network file system
RETRY_S = 5.0
_GATHER_MS = 400  # what arrives together is looked at together


class Done(Record):
    """A submission whose report is stored and whose pages are written. `why`: why they are not in the exchange, if they are not."""

    report: Report
    why: str | None = None


class Watch:
    """One assignment of a course, watched until `stop`. `tell` gets sentences for whoever looks on, `done` every submission."""

    def __init__(
        self,
        settings: Settings,
        assignment: str,
        workers: int,
        tell: Callable[[str], None],
        done: Callable[[Done], None],
        isolation: str | None = None,
    ) -> None:
        self._settings, self._assignment, self._workers, self._isolation = settings, assignment, workers, isolation
        self._tell, self._done = tell, done
        self._stop = threading.Event()

    def stop(self) -> None:
        """End after what is being graded."""
        self._stop.set()

    def run(self) -> None:
        """Watch; what goes wrong is told, and tried again.

        Raises:
            IsolationError: the walls that the course demands cannot be had.
        """
        while not self._stop.is_set():
            try:
                course = grading.prepare(self._settings, self._assignment, self._isolation)
                with Desk(self._settings, course, Workers(course, self._workers), "watch") as desk:
                    self._serve(desk)
            except (BusyError, CourseError, FullError, InfrastructureError, OSError) as error:
                self._tell(f"{error} Trying again every {RETRY_S:g} s.")
                self._stop.wait(RETRY_S)

    def _serve(self, desk: Desk) -> None:
        """Grade what arrives, until another version is released."""
        desk.open()
        inbox, version = Inbox(self._settings, self._assignment, self._tell), self._version()
        with closing(self._arrivals()) as arrivals:
            while not self._stop.is_set() and self._version() == version:
                if inbox.waiting():
                    try:
                        self._burst(desk, inbox)
                    except BusyError as error:
                        self._tell(str(error))
                next(arrivals)

    def _arrivals(self) -> Generator[None]:
        """Goes on when something has arrived, or may have."""
        rooms = [self._settings.course / "submitted"]
        rooms[0].mkdir(exist_ok=True)
        with suppress(CourseError):  # no course is named; the inbox says so
            rooms.append(exchange.inbound_folder(self._settings))
        while True:
            there = [room for room in rooms if room.is_dir()]
            # not recursive: it would follow a student's link; what changes further down is seen at the next look
            for _ in watchfiles.watch(
                *there,
                recursive=False,
                debounce=_GATHER_MS,
                rust_timeout=int(POLL_S * 1000),
                yield_on_timeout=True,
                stop_event=self._stop,
            ):
                yield
                if there != [room for room in rooms if room.is_dir()]:
                    break
            if self._stop.is_set():
                yield

    def _version(self) -> list[tuple[str, int]]:
        """What changes when the assignment is released anew."""
        homes = [self._settings.course / room / self._assignment for room in ("source", "release")]
        files = (path for home in homes for path in sorted(home.rglob("*")))
        return [(str(path), path.stat().st_mtime_ns) for path in files]

    def _burst(self, desk: Desk, inbox: Inbox) -> None:
        """Grade what is there and what comes meanwhile."""
        left: set[str] = set()

        def students() -> Iterator[str | None]:
            new: dict[str, None] = {}
            while True:
                new |= dict.fromkeys(inbox.new())
                # whoever hands in again meanwhile comes after what is in work: results are stored in the order of hand-ins
                ready = [one for one in new if one not in left]
                if not ready and not left:
                    return
                new = {one: None for one in new if one in left}
                left.update(ready)
                yield from ready or (None,)

        def done(report: Report) -> None:
            left.discard(report.student)
            self._return(report)

        with locks.holding(self._settings.course, self._assignment, "watch", patience_s=POLL_S):
            desk.grade(students(), same_files, done)

    def _return(self, report: Report) -> None:
        student = report.student
        mend_folder(folder(self._settings.course, "feedback", student, self._assignment))
        try:
            [given] = returning.release_feedback(self._settings, self._assignment, {student})
            why = given.why
        except CourseError as error:
            returning.write(self._settings, self._assignment, {student})
            why = str(error)
        self._done(Done(report, why))
