"""The repository's lesson in a throw-away course, released as it is committed, with its reference established."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from notebook_samples import dump

from graders import config
from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.reference import run_solution
from graders.kernels.nursery import best_level
from graders.run import grading, pipeline
from graders.run.pipeline import Course

# Without namespaces tasks are counted per user, so those of all tests that run beside this one count too.
PROCESSES = 1024
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A copy of this course that holds what is committed: source, release and settings."""
    home = tmp_path_factory.mktemp("lesson")
    for name in ("source", "release"):
        shutil.copytree(ROOT / name, home / name)
    for name in ("course_config.py", "nbgrader_config.py"):
        shutil.copy(ROOT / name, home / name)
    return msgspec.structs.replace(config.load(home), answers=ROOT / "tests" / "answers", processes=PROCESSES)


@pytest.fixture(scope="session")
def lesson(settings: Settings) -> Course:
    """performance-02, ready to grade behind the best walls of this machine."""
    return grading.prepare(settings, "performance-02", best_level())


CONFIG = f"""\
c = get_config()
c.CourseDirectory.course_id = "small"
c.Graders.processes = {PROCESSES}
c.ExportApp.plugin_class = "graders.results.exporters.StatusExport"
"""


def _small(folder: Path, assignments: dict[str, dict]) -> Settings:
    for name, made in assignments.items():
        (folder / "source" / name).mkdir(parents=True)
        (folder / "source" / name / "nb.ipynb").write_bytes(dump(made))
    for name in ("course_config.py", "nbgrader_config.py"):
        (folder / name).write_text(CONFIG)
    return config.load(folder)


@pytest.fixture(scope="session")
def small_course() -> Callable[[Path, dict[str, dict]], Settings]:
    """Makes a course folder in which every assignment is one notebook, `nb`."""
    return _small


SUBMISSIONS = ROOT / "tests" / "submissions"


@pytest.fixture(scope="session")
def shared_zygote() -> Iterator[pipeline.Zygote]:
    """One warm process for all examinations of these tests."""
    with pipeline.new_zygote() as zygote:
        yield zygote


@pytest.fixture(scope="session")
def small_lesson(shared_zygote: pipeline.Zygote) -> Course:
    """The assignment of tests/submissions, ready to grade: double (2 points), total (3) and a written answer (1)."""
    assignment = read_assignment(SUBMISSIONS / "course", "ps1")
    conditions = pipeline.conditions_of(config.load(SUBMISSIONS / "course"), "ps1", best_level())
    return Course(assignment, run_solution(assignment, conditions, shared_zygote), conditions)
