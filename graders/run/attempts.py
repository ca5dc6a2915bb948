"""What was collected of each student, in order: the record that attempts are counted from.

Comes in: a course folder, a student, an assignment. Goes out: `Attempt`s, and the folders of earlier submissions. Must not:
lose a submission, or take a time that a student wrote for the time at which we took the files.

`.graders/attempts/STUDENT/ASSIGNMENT/attempts.json` is the record; beside it, by its hash, lies every submission that a later
one took the place of.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from graders.errors import CourseError
from graders.records import Flag, Record, to_json
from graders.results.folders import folder, write_file

ATTEMPTS = "attempts.json"


class Attempt(Record):
    """One submission that was collected. Times are ISO 8601; `submitted` is the student's or the course page's, if there is one.

    `source` says where it came from, `left_out` what of it was not taken.
    """

    sha256: str
    collected: str
    submitted: str | None = None
    source: str = "exchange"
    left_out: tuple[Flag, ...] = ()

    @property
    def when(self) -> datetime:
        """The time at which it was collected."""
        return datetime.fromisoformat(self.collected)


_ATTEMPTS = msgspec.json.Decoder(tuple[Attempt, ...])


def place(course: Path, student: str, assignment: str) -> Path:
    """The folder of what is kept of one student's attempts."""
    return folder(course / ".graders", "attempts", student, assignment)


def read(course: Path, student: str, assignment: str) -> tuple[Attempt, ...]:
    """All that was collected, in order. Raises `CourseError` when the record is damaged: attempts must not begin anew."""
    path = place(course, student, assignment) / ATTEMPTS
    try:
        return _ATTEMPTS.decode(path.read_bytes())
    except FileNotFoundError:
        return ()
    except msgspec.DecodeError as error:
        raise CourseError(
            f"{path} is damaged: {error}. Restore it; or remove it, and the attempts of {student} are counted anew."
        ) from None


def add(course: Path, student: str, assignment: str, attempt: Attempt) -> None:
    """Note one more attempt."""
    path = place(course, student, assignment) / ATTEMPTS
    write_file(path, to_json((*read(course, student, assignment), attempt)), mode=0o640)


def keep(course: Path, student: str, assignment: str, sha256: str, submission: Path) -> None:
    """Move a submission away to where earlier ones are kept."""
    target = place(course, student, assignment) / sha256
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        submission.rename(target)
