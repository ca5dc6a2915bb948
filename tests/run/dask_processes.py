"""A Dask scheduler and its workers, each a process of its own, which says where it listens.

Comes in: command lines of `dask scheduler` and `dask worker`. Goes out: running processes and their addresses. Must not: leave one running.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SAYS = {"scheduler": r"Scheduler at: +(\S+)", "worker": r"Registered to: +(\S+)"}
_START_S = 60.0


def started(kind: str, *options: str, log: Path, before: Sequence[str] = (), **how: Any) -> tuple[str, Any]:
    """Start one, by way of the command `before`, and wait until it says where it listens or what it is registered to: that and its process."""
    command = [*before, sys.executable, "-m", f"distributed.cli.dask_{kind}", *options, "--no-dashboard"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, **how)
    deadline = time.monotonic() + _START_S
    while (found := re.search(_SAYS[kind], log.read_text())) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise AssertionError(f"dask {kind} did not start:\n{log.read_text()}")
        time.sleep(0.05)
    return found[1], process


class Cluster:
    """A scheduler and workers on this machine, in a folder of their own."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self._how: dict[str, Any] = {"cwd": home, "env": os.environ | environment}
        self._home = home
        self.processes: list[subprocess.Popen[bytes]] = []
        self.address = self._started("scheduler", "--host", "127.0.0.1", "--port", "0")

    def _started(self, kind: str, *options: str) -> str:
        log = self._home / f"{len(self.processes)}.log"
        said, process = started(kind, *options, log=log, **self._how)
        self.processes.append(process)
        return said

    def add(self, *options: str) -> subprocess.Popen[bytes]:
        """One more worker."""
        self._started("worker", self.address, "--nthreads", "1", "--no-nanny", *options)
        return self.processes[-1]

    def close(self) -> None:
        """End all that runs."""
        for one in self.processes:
            one.kill()
            one.wait()
