"""A class of 24 on performance-02, in a course folder of its own.

Comes in: the settings of a course that has the lesson and its known answers. Goes out: settings of the demo's course.
Must not: touch the submissions or the gradebook of the course that it was called from.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from graders import config
from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.simulate import Simulated, simulate
from graders.errors import CourseError
from graders.run import releasing

ASSIGNMENT = "performance-02"
STUDENTS = 24
# An endless loop costs its whole cell budget in wall time; the demo's class has one.
CELL_TIMEOUT_S = 10


def prepare(settings: Settings, isolation: str) -> tuple[Settings, tuple[Simulated, ...]]:
    """Make the course, release the lesson in it and let a class hand in. Returns the settings and who handed in what."""
    own = make_course(settings, settings.course / ".graders" / "demo")
    releasing.release(own, ASSIGNMENT, isolation)  # compiles everything, so it may take longer than the class
    own = msgspec.structs.replace(own, cell_timeout_s=CELL_TIMEOUT_S)
    return own, simulate(own.course, read_assignment(own.course, ASSIGNMENT), own.answers, STUDENTS, seed=2)


def make_course(settings: Settings, home: Path) -> Settings:
    """A fresh course folder with the lesson in it. Raises `CourseError` when there is no lesson here."""
    source = settings.course / "source" / ASSIGNMENT
    if not source.is_dir() or not (settings.answers / ASSIGNMENT).is_dir():
        raise CourseError(
            f"The demo needs {source} and {settings.answers / ASSIGNMENT}. Run it in a clone of this project's repository."
        )
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(source, home / "source" / ASSIGNMENT)
    for name in ("course_config.py", "nbgrader_config.py"):
        shutil.copy(settings.course / name, home / name)
    return msgspec.structs.replace(config.load(home), answers=settings.answers)
