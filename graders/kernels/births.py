"""The records that cross the seam between the nursery, the zygote, the warden and the born process.

Comes in: nothing. Goes out: `Limits`, `Spawn`, `Walls`, `Exit`. Must not: import anything heavier than msgspec, or act.
"""

from __future__ import annotations

import os

from graders.records import Record

LEVELS = ("process", "namespaces")  # weakest first
CHANNELS = ("shell", "iopub", "stdin", "control", "hb")  # order in which a kernel gets its listening sockets


class Limits(Record, frozen=True):
    """What one born process and all its children may use together. Resident bytes, bytes of files, tasks."""

    memory_bytes: int = 2 * 2**30
    disk_bytes: int = 64 * 2**20
    processes: int = 64


class Spawn(Record, frozen=True):
    """One birth: what to run inside which walls.

    `entry` is "module:function", called as function(argument, fds) inside the walls; the module must be preloaded.
    `files` are written into the private folder, which is also the working directory; names are relative.
    `environment` is what is set beside the usual. `devices` are nodes that it may use, `readable` more files and folders that it may read.
    `cpu` is the processor that it is bound to. `cache` is a compile-cache folder of the host, read-only unless `cache_writable`: for the instructor's own run only.
    """

    entry: str
    isolation: str
    argument: dict[str, object] = {}  # noqa: RUF012  (msgspec copies defaults)
    files: dict[str, bytes] = {}  # noqa: RUF012  (the same)
    limits: Limits = Limits()
    environment: dict[str, str] = {}  # noqa: RUF012  (the same)
    devices: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    seed: int = 0
    cache: str | None = None
    cache_writable: bool = False
    cpu: int | None = None


class Walls(Record, frozen=True):
    """The level that was put up and the name of each wall that is really in force."""

    level: str
    held: tuple[str, ...]


class Exit(Record, frozen=True):
    """How a born process ended.

    `kind` is one of: exit (code is its status), signal (code is the signal), memory, disk and tasks (killed at the limit),
    setup_failed (our fault: walls or entry did not come up; `text` says why), lost (its warden is gone; our fault).
    `cpu_s` counts all its children, `peak_bytes` is resident, summed over its processes.
    """

    kind: str
    code: int
    cpu_s: float = 0.0
    peak_bytes: int = 0
    text: str = ""


class Started(Record, frozen=True, tag="started"):
    """First message of a warden: the walls stand, the entry is about to run."""

    pid: int
    walls: Walls


class Refused(Record, frozen=True, tag="refused"):
    """First message of a warden or zygote that started nothing. `isolation` tells missing walls from other faults."""

    isolation: bool
    text: str


class Ended(Record, frozen=True, tag="ended"):
    """Last message of a warden."""

    exit: Exit


_EXTRA_CORES = max(0, (os.cpu_count() or 2) - 2)


def task_limit(limits: Limits) -> int:
    """Tasks for RLIMIT_NPROC: threads count too, and XLA starts several per core (12-15 on 2 cores)."""
    return limits.processes + 8 * _EXTRA_CORES


def data_limit(limits: Limits) -> int:
    """Bytes for RLIMIT_DATA, the backstop behind the warden.

    It counts what is reserved, not what is resident: JAX alone takes about 220 MB on 2 cores, and 8 MiB of stack for
    each thread on more.
    """
    return limits.memory_bytes + 512 * 2**20 + 64 * 2**20 * _EXTRA_CORES
