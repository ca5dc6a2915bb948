"""One submission at a time, by workers who are warm: how long a student waits, and what an unchanged submission costs.

Comes in: the settings of a course whose class has handed in. Goes out: wall seconds. Must not: count a start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial

from graders.config import Settings
from graders.records import Record, Report
from graders.run import demo, grading
from graders.run.desk import Desk, nothing, unchanged
from graders.run.executors import Workers


class Waits(Record):
    """Wall seconds: from each submission to its stored report, and to find one of a class unchanged."""

    submissions_s: tuple[float, ...]
    unchanged_s: float


def measure(settings: Settings, students: Collection[str]) -> Waits:
    """Grade each submission alone, then all of them unchanged."""
    course = grading.prepare(settings, demo.ASSIGNMENT)
    found: list[Report] = []
    with Desk(settings, course, Workers(course, 1)) as desk:
        desk.grade([*students][:2], nothing, found.append)
        waits = [_seconds(partial(desk.grade, [one], nothing, found.append)) for one in students]
        all_s = _seconds(partial(desk.grade, students, unchanged, found.append))
    return Waits(tuple(waits), all_s / len(students))


def _seconds(act: Callable[[], None]) -> float:
    begun = time.monotonic()
    act()
    return time.monotonic() - begun
