"""The journal of a course: who changed which mark, when, from what to what. `.graders/journal.jsonl`, one JSON line a change.

Comes in: changes, before they are made. Goes out: lines at the end of the file, each on the disk when `note` returns. Must not: change
or lose a line that stands, but for those of a student who is forgotten.

A line is written before what it tells of is done: after a crash the journal may tell of a change that has to be made again, never lack one.
"""

from __future__ import annotations

import fcntl
import getpass
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from graders.records import Record, to_json
from graders.results.folders import write_file, writing

JOURNAL = Path(".graders", "journal.jsonl")
FORGET = "forget"


class Line(Record):
    """One change. `act` is the command that made it; `old` and `new` say what stood there and what stands there now.

    `exercise` is the grade_id where the change is of one exercise alone. `time` is ISO 8601 UTC, `who` an account of the machine.
    """

    time: str
    who: str
    act: str
    assignment: str
    student: str
    why: str
    old: dict[str, Any]
    new: dict[str, Any]
    exercise: str | None = None


def note(
    course: Path,
    act: str,
    assignment: str,
    student: str,
    why: str,
    old: Mapping[str, object],
    new: Mapping[str, object],
    exercise: str | None = None,
) -> Line:
    """Write one line, now and in the name of whoever runs this process, and return it."""
    line = Line(_now(), _who(), act, assignment, student, why, dict(old), dict(new), exercise)
    with _alone(course) as path:
        _append(path, to_json(line))
    return line


def lines(course: Path) -> list[Line]:
    """All lines, the oldest first. A line that was cut off by a crash told of a change that was not made and is left out."""
    return [line for line, _ in _read(course / JOURNAL)]


def forget(course: Path, student: str) -> int:
    """Take out every line of a student, and leave one that says, without a name, that somebody was forgotten. Returns how many."""
    with _alone(course) as path:
        found = list(_read(path))
        kept = [raw for line, raw in found if line.student != student]  # what was cut off could be this student's too
        nobody = f"forgotten-{uuid4().hex[:8]}"  # drawn, not derived: a hash of an id is found by trying all ids
        last = Line(_now(), _who(), FORGET, "", nobody, "The data of one student were deleted.", {}, {})
        write_file(path, b"".join(raw + b"\n" for raw in (*kept, to_json(last))), mode=0o640)
        return len(found) - len(kept)


def _read(path: Path) -> Iterator[tuple[Line, bytes]]:
    for raw in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            yield msgspec.json.decode(raw, type=Line), raw
        except msgspec.DecodeError:
            continue


def _append(path: Path, line: bytes) -> None:
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o640)
    size = os.fstat(handle).st_size
    try:
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"  # by a crash: it must not swallow this line
        left = b"\n" * torn + line + b"\n"
        with writing(path, len(left)):
            while left:  # a disk takes what it has room for, and says that it is full only when asked for more
                left = left[os.write(handle, left) :]
            os.fsync(handle)
    except BaseException:
        os.ftruncate(handle, size)
        raise
    finally:
        os.close(handle)


@contextmanager
def _alone(course: Path) -> Iterator[Path]:
    """The path of the journal, which nobody else changes meanwhile."""
    path = course / JOURNAL
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the system takes it back from whoever is killed
        yield path


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid {os.getuid()}"
