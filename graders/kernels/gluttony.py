"""What a greedy candidate would take, for `graders doctor`: each function goes for more than its limits allow.

Comes in: a `Bait` with the limits. Goes out: a sentence when it got through; an `OSError` when it was refused; often
nothing, because the warden ended it. Must not: be run anywhere but behind walls with limits.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from graders.kernels import syscalls
from graders.kernels.trespass import Bait

_MIB = 2**20
_POPULATE_WRITE = 23  # Python has no name for it


def fork_bomb(bait: Bait) -> str:
    """Fork until it is refused, and wait."""
    for _ in range(2 * bait.tasks):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    time.sleep(5)
    return f"made {2 * bait.tasks} processes"


def fill_disk(bait: Bait) -> str:
    """Write twice as much as the private folder may hold, over several files, and wait."""
    for number in range(8):
        with Path(f"big-{number}").open("wb") as file:
            for _ in range(bait.disk_bytes // 4 // _MIB):
                file.write(b"x" * _MIB)
    time.sleep(5)
    return f"wrote {2 * bait.disk_bytes} bytes"


def many_files(bait: Bait) -> str:
    """Make twice as many files as the private folder may hold, and wait."""
    for number in range(2 * bait.files):
        Path(f"small-{number}").touch()
    time.sleep(5)
    return f"made {2 * bait.files} files"


def eat_memory(bait: Bait) -> str:
    """Hold four times the memory, as fast as it can."""
    held = [bytearray(os.urandom(4096) * (8 * _MIB // 4096)) for _ in range(4 * bait.memory_bytes // (8 * _MIB))]
    time.sleep(5)
    return f"held {len(held) * 8} MiB"


def eat_memory_in_large_pages(bait: Bait) -> str:
    """As in children, in pages of 2 MiB, which the kernel fills in one call, twice as fast as small ones."""

    def large() -> mmap.mmap:
        with contextlib.suppress(OSError):
            syscalls.prctl(syscalls.THP_DISABLE, 0)
        held = mmap.mmap(-1, bait.memory_bytes // 2, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        held.madvise(mmap.MADV_HUGEPAGE)
        held.madvise(_POPULATE_WRITE)
        return held

    return _hold_in_children(large)


def eat_memory_in_children(bait: Bait) -> str:
    """Hold four times the memory, spread over children."""
    return _hold_in_children(lambda: bytearray(b"x") * (bait.memory_bytes // 2))


def _hold_in_children(take: Callable[[], bytearray | mmap.mmap]) -> str:
    for _ in range(8):
        if os.fork() == 0:
            held = take()
            time.sleep(5 + len(held) * 0)
            os._exit(0)
    time.sleep(5)
    return "held it"


def leave_daemon(bait: Bait) -> str:
    """Leave a process behind: the end of a pipe that it holds tells when it dies."""
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    time.sleep(0.2)
    raise OSError("it was started; whether it survives is seen from outside")
