"""Settings: what `course_config.py` may say, with the defaults of DESIGN.

Comes in: a course folder. Goes out: a frozen `Settings`. Must not: start anything, or import nbgrader.
traitlets is nbgrader's own configuration library, so one file serves both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from traitlets import Dict, Enum, Float, Int, TraitError, Unicode
from traitlets.config import Config, Configurable
from traitlets.config.loader import PyFileConfigLoader

from graders.errors import SettingsError
from graders.targets import LIMITS as EXAMINATION_LIMITS
from graders.targets import Target, chosen, configured, known

ISOLATION_LEVELS = ("process", "namespaces")  # weakest first
LIMITS = (*EXAMINATION_LIMITS, "attempts", "cool_down_s", "counts")


class Graders(Configurable):
    """The `c.Graders` section of course_config.py."""

    examine = Enum(["sealed", "kernel"], "sealed", help="where tests run").tag(config=True)
    isolation = Enum(list(ISOLATION_LEVELS), "namespaces", help="the least that grading accepts").tag(config=True)
    cell_timeout_s = Int(30, min=1, help="wall seconds for one cell or one test").tag(config=True)
    submission_timeout_s = Int(300, min=1, help="wall seconds for one submission").tag(config=True)
    memory_bytes = Int(2 * 2**30, min=2**26, help="resident, per candidate").tag(config=True)
    disk_bytes = Int(64 * 2**20, min=2**16, help="the candidate's private folder").tag(config=True)
    output_bytes = Int(200_000, min=1_000, help="per cell, head and tail kept").tag(config=True)
    processes = Int(64, min=16, help="scaled up where the machine has many cores").tag(config=True)
    attempts = Int(None, allow_none=True, min=1, help="how often a student may hand in").tag(config=True)
    cool_down_s = Int(0, min=0, help="seconds between one attempt and the next").tag(config=True)
    counts = Enum(["last", "best"], "last", help="which attempt counts").tag(config=True)
    answers = Unicode("tests/answers", help="folder of known answers").tag(config=True)
    mutation_floor = Float(
        None, allow_none=True, min=0, max=1, help="the share of wrong answers that the tests must notice, or no floor"
    ).tag(config=True)
    targets = Dict(help="by name of a target, what is other there").tag(config=True)
    assignments = Dict(help="by name of an assignment, the limits that are others there").tag(config=True)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Checked settings of one course. Units end the names."""

    course: Path
    course_id: str
    db_url: str
    examine: str
    isolation: str
    cell_timeout_s: int
    submission_timeout_s: int
    memory_bytes: int
    disk_bytes: int
    output_bytes: int
    processes: int
    attempts: int | None
    cool_down_s: int
    counts: str
    answers: Path
    mutation_floor: float | None
    targets: dict[str, Target]
    assignments: dict[str, dict[str, Any]]

    def of(self, assignment: str) -> Settings:
        """The settings as they are for one assignment."""
        return msgspec.structs.replace(self, **self.assignments.get(assignment, {}))

    def target(self, name: str) -> Target:
        """The target of this name. Raises `SettingsError` when there is none."""
        return chosen(name, self.targets, f"{self.course / 'course_config.py'}, c.Graders.targets")


def load(course: Path) -> Settings:
    """Read `course_config.py` of a course folder.

    Raises:
        SettingsError: the file is missing, does not run, or names a setting that does not exist.
    """
    course = course.resolve()
    config, path = read_config(course), course / "course_config.py"
    section = config.get("Graders", Config())
    names = set(Graders.class_trait_names(config=True))
    for name in section:
        known(name, names, f"{path}: there is no setting c.Graders.")
    try:
        values = Graders(config=config)
    except TraitError as error:
        raise SettingsError(f"{path}: {error}") from None
    named = {name: getattr(values, name) for name in names - {"answers", "targets"}}
    for name, limits in values.assignments.items():
        _check_limits(course, name, limits)
    directory = config.get("CourseDirectory", Config())
    course_id, db_url = (str(directory.get(name, "")) for name in ("course_id", "db_url"))
    targets = configured(values.targets, f"{path}, c.Graders.targets")
    for one in targets.values():
        _check_values(one.limits, f"{path}, c.Graders.targets[{one.name!r}]")
    return Settings(
        course=course, course_id=course_id, db_url=db_url, answers=course / values.answers, targets=targets, **named
    )


def _check_limits(course: Path, assignment: str, limits: object) -> None:
    where = f"{course / 'course_config.py'}, c.Graders.assignments"
    made = {
        one.name
        for folder in ("source", "release")
        if (course / folder).is_dir()
        for one in (course / folder).iterdir()
    }
    known(assignment, made or {assignment}, f"{where}: there is no assignment ")
    if not isinstance(limits, dict):
        raise SettingsError(
            f'{where}[{assignment!r}] is {limits!r}; wanted: limits by name, as in {{"{LIMITS[0]}": 60}}.'
        )
    for name in limits:
        known(name, LIMITS, f"{where}[{assignment!r}]: there is no limit ")
    _check_values(limits, f"{where}[{assignment!r}]")


def _check_values(limits: dict[str, Any], where: str) -> None:
    try:
        Graders(**limits)
    except TraitError as error:
        raise SettingsError(f"{where}: {error}") from None


def read_config(course: Path) -> Config:
    """All of `course_config.py`, sections of nbgrader included. Raises `SettingsError` when it is missing or does not run."""
    path = course / "course_config.py"
    if not path.is_file():
        raise SettingsError(
            f"{path} is missing, so {course} is not a course folder. Name one with --course DIR, or make the file with "
            f'the lines: c = get_config() and c.CourseDirectory.course_id = "my-course".'
        )
    try:
        return PyFileConfigLoader(path.name, path=str(course)).load_config()
    except Exception as error:  # whatever the instructor's Python raises is theirs to read
        raise SettingsError(f"{path} could not be run: {type(error).__name__}: {error}") from error
