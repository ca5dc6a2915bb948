"""Who grades: the same honest submissions of one class, made ready for each contender.

Comes in: the settings of a course that has the lesson and its known answers. Goes out: a `Contest`. Must not: count a hostile submission,
since others would need their whole time limit, or give one contender a course that another has graded in.
"""

from __future__ import annotations

import json
import os
import shutil
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graders import config
from graders.bench import otter
from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.simulate import Simulated, notebook_with, simulate
from graders.coursework import Assignment, Role
from graders.errors import SettingsError
from graders.kernels import xla
from graders.records import Record
from graders.run import demo, releasing

OURS, FLOOR, NBGRADER, OTTER = "graders grade", "floor", "nbgrader autograde", "otter-grader"
AT_ONCE = os.cpu_count() or 1
# What sealing and walls cost, by settings that are others
_VARIANTS = {
    OURS: "",
    f"{OURS}, isolation = 'process'": "c.Graders.isolation = 'process'\n",
    f"{OURS}, examine = 'kernel'": "c.Graders.examine = 'kernel'\n",
}
# course_config.py leads nbgrader to our examiner; measured is its own way
_PLAIN = "--Autograde.exporter_class=nbconvert.exporters.NotebookExporter"


class Contender(Record):
    """A command of this Python that grades every submission, and where it is given."""

    name: str
    arguments: tuple[str, ...]
    where: str
    environment: dict[str, str] = {}  # noqa: RUF012  (msgspec copies defaults)


class Contest(Record):
    """The contenders, and the points that each student of the course `ours` should get."""

    contenders: tuple[Contender, ...]
    ours: str
    known: dict[str, Decimal]


def prepare(settings: Settings, isolation: str, students: int, home: Path) -> Contest:
    """Make a course for each contender below `home` and let the same class hand in there.

    Raises:
        SettingsError: otter-grader is not installed.
    """
    if find_spec("otter") is None:
        raise SettingsError("otter-grader, one of those to compare with, is not installed. Next step: make bench.")
    contenders: list[Contender] = []
    made: tuple[Simulated, ...] = ()
    for number, (name, lines) in enumerate(_VARIANTS.items()):
        where = home / f"graders-{number}"
        made = _class(settings, where, lines, isolation, students)
        contenders.append(Contender(name, ("graders.cli", "grade", demo.ASSIGNMENT, "--again", "--json"), str(where)))
    ours = Path(contenders[0].where)
    theirs = home / "nbgrader"
    shutil.copytree(ours, theirs, ignore=shutil.ignore_patterns(".graders"))
    contenders.append(Contender(NBGRADER, ("nbgrader", "autograde", demo.ASSIGNMENT, "--force", _PLAIN), str(theirs)))
    assignment = read_assignment(ours, demo.ASSIGNMENT)
    contenders += [_otter(ours, home / "otter", assignment), _floor(ours, home / "floor", assignment)]
    return Contest(tuple(contenders), str(ours), {one.student: one.total for one in made if one.honest})


def home_of(settings: Settings) -> Path:
    """Where a benchmark works, and leaves what it found."""
    return settings.course / ".graders" / "bench"


def _class(settings: Settings, home: Path, lines: str, isolation: str, students: int) -> tuple[Simulated, ...]:
    """A course with these settings, and the honest of a class who have handed in there."""
    demo.make_course(settings, home)
    with (home / "course_config.py").open("a") as file:
        file.write(f"c.Graders.isolation = {isolation!r}\n{lines}")
    releasing.release(config.load(home), demo.ASSIGNMENT, isolation)
    made = simulate(home, read_assignment(home, demo.ASSIGNMENT), settings.answers, students, seed=5)
    for one in made:
        if not one.honest:
            shutil.rmtree(home / "submitted" / one.student)
    return made


def _otter(ours: Path, home: Path, assignment: Assignment) -> Contender:
    autograder = otter.write_autograder(assignment, home)
    for student, name, notebook in _handed_in(ours, assignment):
        (home / f"{student}-{name}.ipynb").write_text(json.dumps(otter.asking(assignment, notebook)))
    notebooks = sorted(map(str, home.glob("*.ipynb")))
    return Contender(OTTER, ("graders.bench.otter", str(autograder), *notebooks), str(home))


def _floor(ours: Path, home: Path, assignment: Assignment) -> Contender:
    home.mkdir()
    tests = {
        cell.id: cell.source for cells in assignment.notebooks.values() for cell in cells if cell.role is Role.test
    }
    for student, name, notebook in _handed_in(ours, assignment):
        whole = notebook_with(notebook, {identity: text for identity, text in tests.items() if identity})
        (home / f"{student}-{name}.ipynb").write_text(json.dumps(whole))
    environment = {"JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1", "XLA_FLAGS": xla.flags()}
    arguments = ("graders.bench.floor", str(home / "cache"), str(AT_ONCE), *sorted(map(str, home.glob("*.ipynb"))))
    return Contender(FLOOR, arguments, str(home), environment)


def _handed_in(course: Path, assignment: Assignment) -> list[tuple[str, str, dict[str, Any]]]:
    """(student, notebook, the notebook as it was handed in)."""
    return [
        (path.parts[-3], name, json.loads(path.read_text()))
        for name in assignment.notebooks
        for path in sorted((course / "submitted").glob(f"*/{assignment.name}/{name}.ipynb"))
    ]
