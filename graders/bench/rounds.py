"""Measure every contender in turn, several times: CPU, wall and memory.

Comes in: a `Contest`. Goes out: `Cost`s of whole commands, and what a slot of ours holds in memory. Must not: measure time and memory at
once, since looking at memory takes time.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from graders.bench.contenders import Contender, Contest
from graders.errors import InfrastructureError
from graders.kernels import census
from graders.records import Record

_LOOK_S = 0.05
_ZYGOTE = "graders.kernels.zygote"


class Cost(Record):
    """Seconds of a submission, with every process that the command waited for."""

    name: str
    cpu_s: float
    wall_s: float


def measure(contest: Contest, few: Contest, told: Callable[[str], None]) -> tuple[tuple[Cost, ...], tuple[Cost, ...]]:
    """One round, every contender in turn: its whole command, and what each submission beyond those of a `few` adds to it.

    Each has graded both once before, and filled its caches.
    """
    whole, further = [], []
    most, least = len(contest.known), len(few.known)
    for one, same in zip(contest.contenders, few.contenders, strict=True):
        told(one.name)
        cpu_s, wall_s = _used(one)
        less_cpu_s, less_wall_s = _used(same)
        whole.append(Cost(one.name, cpu_s / most, wall_s / most))
        further.append(Cost(one.name, (cpu_s - less_cpu_s) / (most - least), (wall_s - less_wall_s) / (most - least)))
    return tuple(whole), tuple(further)


def medians(costs: Sequence[Cost]) -> dict[str, Cost]:
    """The median of each figure, by contender."""
    found = {}
    for name in dict.fromkeys(one.name for one in costs):
        rounds = [one for one in costs if one.name == name]
        found[name] = Cost(name, median(one.cpu_s for one in rounds), median(one.wall_s for one in rounds))
    return found


def peak_bytes(contender: Contender) -> int:
    """The most that a command held in memory with all its processes, shared pages counted once."""
    return _peak(contender, lambda pid: census.proportional_bytes({pid} | census.descendants(pid)))


def slot_bytes(contender: Contender) -> int:
    """The most that a slot of ours holds for itself, by a command with one slot: what is born for it, and its worker.

    What all share with the zygote is left out. Of the command's two helpers, the worker and the gradebook's writer, the larger counts.
    """

    def held(pid: int) -> int:
        children = census.children(pid)
        zygotes = {one for one in children if _ZYGOTE in census.command(one)}
        born = set[int]().union(*map(census.descendants, zygotes))
        return census.private_bytes(born) + max((census.private_bytes({one}) for one in children - zygotes), default=0)

    return _peak(contender, held)


def _peak(contender: Contender, held: Callable[[int], int]) -> int:
    """The most that a command held while it ran, as `held` says of its process again and again."""
    process, peak = _started(contender), 0
    ending = os.pidfd_open(process.pid)
    while not select.select([ending], [], [], _LOOK_S)[0]:
        peak = max(peak, held(process.pid))
    os.close(ending)
    _ended(process, contender)
    return peak


def _used(contender: Contender) -> tuple[float, float]:
    """CPU and wall seconds of a command."""
    begun = time.monotonic()
    used = _ended(_started(contender), contender)
    return used, time.monotonic() - begun


def _started(contender: Contender) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", *contender.arguments],
        cwd=contender.where,
        env=os.environ | {"PATH": path} | contender.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _ended(process: subprocess.Popen[bytes], contender: Contender) -> float:
    """CPU seconds of a command and of every descendant that was waited for. 1 is a person who is needed, not a failure."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise InfrastructureError(
            f"{contender.name} ended with {process.returncode}, so there is nothing to compare. Next step: run it by hand in "
            f"{contender.where}: python -m {' '.join(contender.arguments[:4])} …"
        )
    return usage.ru_utime + usage.ru_stime
