"""What has arrived since it was last looked at: in nbgrader's exchange, and below `submitted/`.

Comes in: settings, an assignment. Goes out: students whose files are others than before; what lies in the exchange is collected on the
way. Must not: read what it has read before, or give a student out twice for the same files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime

from graders.config import Settings
from graders.errors import CourseError
from graders.results.folders import handed_in, hash_submission, mend_folder
from graders.run import collecting, exchange, grading

_Look = tuple[tuple[str, int, int, int], ...]


class Inbox:
    """The submissions of one assignment. `tell` is told in a sentence what could not be collected, once for each reason."""

    def __init__(self, settings: Settings, assignment: str, tell: Callable[[str], None]) -> None:
        self._settings, self._assignment, self._tell = settings, assignment, tell
        self._told: set[str] = set()
        self._collected: set[tuple[str, str | None]] = set()
        self._doubtful: set[tuple[str, str | None]] = set()
        self._looks: dict[str, _Look] = {}
        self._seen: dict[str, str] = {}

    def waiting(self) -> bool:
        """Whether there is something to look at; nothing is read or changed."""
        return bool(self._inbound()) or any(self._look(one) != self._looks.get(one) for one in self._students())

    def new(self) -> list[str]:
        """Collect, and name the students whose files are new. Whoever calls holds the assignment's lock."""
        self._collect()
        found = []
        for student in self._students():
            look = self._look(student)
            if look == self._looks.get(student):
                continue
            self._looks[student] = look
            digest = hash_submission(handed_in(self._settings.course, student, self._assignment))
            if self._seen.get(student) != digest:
                self._seen[student] = digest
                found.append(student)
        return found

    def _collect(self) -> None:
        fresh = self._inbound()
        for one in fresh:
            mend_folder(handed_in(self._settings.course, one.student, self._assignment))
        for one, arrived in zip(fresh, collecting.arrived(fresh), strict=True):
            taken = collecting.take(self._settings, self._assignment, arrived, datetime.now(UTC))
            key = (one.folder, one.why)
            if taken.problem and key not in self._doubtful:
                # most of these are just being handed in: told if it is still so at the next look
                self._doubtful.add(key)
                continue
            if taken.problem or taken.waits:
                self._once(f"{taken.student}: {taken.text}")
            if not taken.waits:
                self._collected.add(key)

    def _inbound(self) -> list[exchange.Inbound]:
        try:
            found, unknown = exchange.inbound(self._settings, self._assignment)
        except CourseError as error:
            self._once(str(error))
            return []
        for name in unknown:
            self._once(f"Not understood in the exchange: {name!r}.")
        return [one for one in found if (one.folder, one.why) not in self._collected]

    def _once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _students(self) -> list[str]:
        return grading.students(self._settings.course, self._assignment)

    def _look(self, student: str) -> _Look:
        """What the system says of a submission's folder and of what lies right in it: changed files are seen without being read."""
        where = handed_in(self._settings.course, student, self._assignment)
        try:
            with os.scandir(where) as entries:
                inside = [(one.name, one.stat(follow_symlinks=False)) for one in entries]
            found = [(".", where.stat(follow_symlinks=False)), *sorted(inside, key=lambda one: one[0])]
        except OSError:  # it is being replaced, or may not be read
            return ()
        return tuple((name, status.st_mtime_ns, status.st_size, status.st_ino) for name, status in found)
