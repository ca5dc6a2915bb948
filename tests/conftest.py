"""What the slower tests share: a warm zygote, and this repository's course in a folder of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graders import config
from graders.config import Settings
from graders.kernels import xla
from graders.kernels.nursery import Zygote, best_level
from graders.run import pipeline, releasing

ROOT = Path(__file__).resolve().parents[1]

# What tests compute themselves for comparison is compiled as quickly as where the grader compiles.
os.environ.setdefault("XLA_FLAGS", xla.flags())


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A zygote as grading starts it."""
    with pipeline.new_zygote() as started:
        yield started


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """Make a folder once for all worker processes of a test run; copy it, do not change it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base

    def make(name: str, fill: Callable[[Path], None]) -> Path:
        folder = shared / name
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                fresh = shared / f"{name}.fresh"
                shutil.rmtree(fresh, ignore_errors=True)
                fresh.mkdir()
                fill(fresh)
                fresh.rename(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def lesson_source(once) -> Path:
    """The lesson with its known answers, as it stands in the repository."""

    def fill(folder: Path) -> None:
        shutil.copytree(ROOT / "source" / "performance-02", folder / "source" / "performance-02")
        shutil.copytree(ROOT / "tests" / "answers", folder / "tests" / "answers")
        for name in ("course_config.py", "nbgrader_config.py"):
            shutil.copy(ROOT / name, folder / name)

    return once("unreleased", fill)


@pytest.fixture(scope="session")
def lesson(once, lesson_source: Path) -> Path:
    """The same, released at the strongest level of walls that this machine has."""

    def fill(folder: Path) -> None:
        shutil.copytree(lesson_source, folder, dirs_exist_ok=True)
        with (folder / "course_config.py").open("a") as file:
            file.write(f'\nc.Graders.isolation = "{best_level()}"\n')
        releasing.release(config.load(folder), "performance-02")

    return once("released", fill)


@pytest.fixture(scope="session")
def settings(lesson: Path) -> Settings:
    """The settings of the released course."""
    return config.load(lesson)
