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

from graders.bench.contenders import Contender
from graders.errors import InfrastructureError
from graders.kernels import census
from graders.records import Record

_LOOK_S = 0.05


class Cost(Record):
    """What one whole command cost for each submission; its start is in it, and every process that it waited for."""

    name: str
    cpu_s: float
    wall_s: float


def measure(
    contenders: Sequence[Contender], submissions: int, rounds: int, told: Callable[[Cost], None]
) -> tuple[Cost, ...]:
    """Every contender in turn, `rounds` times. Each has graded once before, and filled its caches."""
    costs = []
    for _ in range(rounds):
        for one in contenders:
            costs.append(_cost(one, submissions))
            told(costs[-1])
    return tuple(costs)


def medians(costs: Sequence[Cost]) -> dict[str, Cost]:
    """The median of each figure, by contender."""
    found = {}
    for name in dict.fromkeys(one.name for one in costs):
        rounds = [one for one in costs if one.name == name]
        found[name] = Cost(name, median(one.cpu_s for one in rounds), median(one.wall_s for one in rounds))
    return found


def peak_bytes(contender: Contender) -> int:
    """The most that a command held in memory with all its processes, shared pages counted once."""
    process, peak = _started(contender), 0
    ending = os.pidfd_open(process.pid)
    while not select.select([ending], [], [], _LOOK_S)[0]:
        peak = max(peak, census.proportional_bytes({process.pid} | census.descendants(process.pid)))
    os.close(ending)
    _ended(process, contender)
    return peak


def _cost(contender: Contender, submissions: int) -> Cost:
    begun = time.monotonic()
    used = _ended(_started(contender), contender)
    return Cost(contender.name, used / submissions, (time.monotonic() - begun) / submissions)


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
