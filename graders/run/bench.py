"""Measure grading against `nbgrader autograde`: the same honest submissions, the same cores, one run, interleaved.

Comes in: the settings of a course that has the lesson and its known answers. Goes out: CPU and wall seconds per
submission, children included. Must not: count a hostile submission, since nbgrader would need its whole time limit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.simulate import simulate
from graders.records import Record
from graders.run import demo, releasing

_ROUNDS = 2
# course_config.py leads nbgrader to our examiner; measured is its own way
_PLAIN = "--Autograde.exporter_class=nbconvert.exporters.NotebookExporter"


class Cost(Record):
    """What one whole command cost, per submission."""

    what: str
    cpu_s: float
    wall_s: float


def measure(settings: Settings, isolation: str, students: int) -> tuple[tuple[Cost, ...], int]:
    """Grade the honest submissions of a class with both, `_ROUNDS` times in turn; (every cost, how many were honest).

    The fixed costs of each command are in it: zygotes and writer here, one start of nbgrader there.
    """
    home = demo.make_course(settings, settings.course / ".graders" / "bench")
    releasing.release(home, demo.ASSIGNMENT, isolation)
    made = simulate(home.course, read_assignment(home.course, demo.ASSIGNMENT), home.answers, students, seed=5)
    for one in made:
        if not one.honest:
            shutil.rmtree(home.course / "submitted" / one.student)
    honest = sum(one.honest for one in made)
    theirs = home.course / "nbgrader"
    shutil.copytree(home.course, theirs, ignore=shutil.ignore_patterns("nbgrader", ".graders", "autograded"))
    commands = {
        "graders grade": (home.course, ["graders.cli", "grade", demo.ASSIGNMENT, "--again", "--json"]),
        "nbgrader autograde": (theirs, ["nbgrader", "autograde", demo.ASSIGNMENT, "--force", _PLAIN]),
    }
    costs = [
        _cost(what, where, arguments, honest) for _ in range(_ROUNDS) for what, (where, arguments) in commands.items()
    ]
    return tuple(costs), honest


def medians(costs: tuple[Cost, ...]) -> dict[str, Cost]:
    """The median of each figure, by command."""
    names = dict.fromkeys(one.what for one in costs)
    return {
        name: Cost(
            name,
            median(one.cpu_s for one in costs if one.what == name),
            median(one.wall_s for one in costs if one.what == name),
        )
        for name in names
    }


def _cost(what: str, where: Path, arguments: list[str], submissions: int) -> Cost:
    environment = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])}
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=where,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, _, usage = os.wait4(process.pid, 0)  # includes every descendant that was waited for
        process.returncode = 0
    return Cost(what, (usage.ru_utime + usage.ru_stime) / submissions, (time.monotonic() - begun) / submissions)
