"""What runs on this machine, as Linux tells it."""

from __future__ import annotations

import contextlib
from pathlib import Path


def below(pid: int) -> set[int]:
    """Every process that descends from this one."""
    found: set[int] = set()
    with contextlib.suppress(OSError):  # it has just ended
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, children.read_text().split()):
                found |= {child} | below(child)
    return found


def alive(pid: int) -> bool:
    """Whether this process still runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
