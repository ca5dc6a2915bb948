"""One at a time for each assignment: whoever grades, releases, collects or deletes holds the assignment's lock meanwhile.

Comes in: a course, an assignment, what the holder does. Goes out: the right to do it, or a `BusyError` that says who has it. Must not:
outlive its owner: the system frees the lock of a process that was killed, and no child of it holds a share.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from graders.errors import BusyError
from graders.records import Record
from graders.results.folders import write_file

PATIENCE_S = 10.0  # `watch` grades one submission in less


class Holder(Record):
    """Who holds a lock: a process of a host, what it does, and since when (ISO 8601 UTC)."""

    pid: int
    host: str
    act: str
    since: str


@contextmanager
def holding(course: Path, assignment: str, act: str, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold the lock of an assignment. Whoever has it already, in this thread, has it once more.

    Raises:
        BusyError: somebody else held it for all of `patience_s`.
    """
    home = course / ".graders" / "locks" / assignment
    home.mkdir(parents=True, exist_ok=True)
    lock, note = FileLock(home / "lock", is_singleton=True), home / "holder.json"
    try:
        lock.acquire(timeout=patience_s)
    except Timeout:
        raise BusyError(_busy(assignment, act, note)) from None
    first = lock.lock_counter == 1
    try:
        if first:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            write_file(note, msgspec.json.encode(Holder(os.getpid(), platform.node(), act, now)))
        yield
    finally:
        if first:
            note.unlink(missing_ok=True)
        lock.release()


def _busy(assignment: str, act: str, note: Path) -> str:
    try:
        who = msgspec.json.decode(note.read_bytes(), type=Holder)
    except (OSError, msgspec.DecodeError):  # it has just got the lock, or is about to give it back
        told, end = "another process", "wait for it and try again"
    else:
        told = f"process {who.pid} on {who.host} (graders {who.act}), since {who.since}"
        end = f"wait for it, or end it (kill {who.pid}), and try again; it can be killed at any moment"
    return f"{assignment!r} is in the hands of {told}, so it was left alone by graders {act}. Next step: {end}."
