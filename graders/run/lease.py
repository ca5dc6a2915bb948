"""One process per chip: whoever examines on a target with slots has the lease of one of them meanwhile.

Comes in: a target, for whom, and for how long at most. Goes out: the number of a slot, or an `AcceleratorError` that says who
overstays. Must not: outlive its owner (the system frees the lock of a process that was killed), or touch libtpu's own lock file.

A lease is of the machine, not of a course or a user: a locked file in a folder that everybody may write. The owner's name stands in
it and ends nothing by itself: who reads it while the lock is free reads of the past.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from graders.errors import AcceleratorError
from graders.kernels import chips
from graders.records import Record
from graders.targets import Target

FOLDER = Path("/tmp")  # of the machine, where libtpu has its lock too
_LOOK_S = 0.05
_GRACE_S = 15.0  # from the end of an examination's time until its processes are gone


class Owner(Record):
    """Who has a lease: a process, for whose work, since when (ISO 8601 UTC), and until which second of the epoch at the latest."""

    pid: int
    student: str
    since: str
    until: float


@contextmanager
def of(target: Target, student: str, longest_s: float, folder: Path | None = None) -> Iterator[int]:
    """Hold a slot of a target for at most `longest_s`; a target without an accelerator has no end of slots, and the number is 0.

    Whoever waits does so as long as owners keep to their time, then no longer.

    Raises:
        AcceleratorError: an owner of every slot overstays, or a process that is none of ours has the chip.
    """
    if not target.holder:
        yield 0
        return
    slot, fd = _acquire(target, folder or FOLDER)
    try:
        now = datetime.now(UTC)
        _sign(
            fd, Owner(os.getpid(), student, now.isoformat(timespec="seconds"), now.timestamp() + longest_s + _GRACE_S)
        )
        if target.slots == 1 and target.platform == "tpu":
            _expect_free(target)
        yield slot
    finally:
        os.ftruncate(fd, 0)
        os.close(fd)


def _acquire(target: Target, folder: Path) -> tuple[int, int]:
    fds = [_open(folder / f"graders-{target.platform}-{slot}.lease") for slot in range(max(1, target.slots))]
    taken = -1
    try:
        while taken < 0:
            taken = next((slot for slot, fd in enumerate(fds) if _lock(fd)), -1)
            if taken < 0:
                _expect_end(target, fds)
                time.sleep(_LOOK_S)
        return taken, fds[taken]
    finally:
        for slot, fd in enumerate(fds):
            if slot != taken:
                os.close(fd)


def _open(path: Path) -> int:
    """Open the file of a slot, which every user of the machine may lock. No link is followed: the folder is everybody's."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags)  # without O_CREAT first: Linux refuses it for somebody else's file in such a folder
    except FileNotFoundError:
        fd = os.open(path, flags | os.O_CREAT, 0o666)
        os.fchmod(fd, 0o666)
    except OSError as error:
        raise AcceleratorError(
            f"The lease {path} cannot be opened ({error.strerror}). Next step: remove that file."
        ) from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(fd)
        raise AcceleratorError(f"The lease {path} is not a plain file of its own. Next step: remove it.")
    return fd


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(fd: int, owner: Owner) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, msgspec.json.encode(owner), 0)


def _read(fd: int) -> Owner | None:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0), type=Owner)
    except msgspec.DecodeError:
        return None  # it has just got the lease, and signs next


def _expect_end(target: Target, fds: list[int]) -> None:
    """Go on waiting while any owner is within its time."""
    owners = [_read(fd) for fd in fds]
    late = [one for one in owners if one is not None and one.until < time.time()]
    if len(late) == len(owners):
        first = min(late, key=lambda one: one.until)
        raise AcceleratorError(
            f"The chip of target {target.name!r} is in the hands of process {first.pid} (for {first.student}, since {first.since}), "
            f"which should have given it back by now. Next step: see what it does, or end it (kill {first.pid})."
        )


def _expect_free(target: Target) -> None:
    """Inside the walls libtpu sees neither its lock nor who has the chip; here both can be seen."""
    told = chips.held(chips.look().holders)
    if told:
        raise AcceleratorError(f"The chip of target {target.name!r} is not free: {told}.")
