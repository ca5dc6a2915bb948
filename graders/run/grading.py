"""Grade a class: who handed in, what every submission is judged by, and what is stored.

Comes in: a course folder, an assignment, names of students. Goes out: what a `Desk` makes of their submissions, and each report to
the caller as soon as it is stored. Must not: print, or grade while another process does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.reference import establish, known, with_caches
from graders.errors import AcceleratorError, CourseError, SettingsError
from graders.kernels import chips
from graders.records import Report
from graders.results import report
from graders.results.folders import folder, handed_in, subfolders
from graders.run import locks, pipeline
from graders.run.desk import Desk, nothing, unchanged
from graders.run.executors import Workers
from graders.run.pipeline import Course
from graders.targets import Target

if TYPE_CHECKING:  # with Dask, which not everybody installs
    from graders.run.cluster import Cluster


def students(course: Path, assignment: str) -> list[str]:
    """Who handed in `assignment`. Names are opaque: the folder is listed, never matched."""
    submitted = course / "submitted"
    names = subfolders(submitted)
    if unreadable := [os.fsencode(name) for name in names if not _is_text(name)]:
        raise CourseError(
            f"{submitted} holds a folder whose name is not UTF-8: {unreadable[0]!r}. A student's id is text everywhere else, "
            f"in the gradebook and on pages. Next step: rename the folder."
        )
    folders = {name: handed_in(course, name, assignment) for name in names}
    # a link is not followed, but who handed one in is told so
    return sorted(name for name, where in folders.items() if where.is_symlink() or where.is_dir())


def _is_text(name: str) -> bool:
    return name.encode("utf-8", "replace").decode() == name


def prepare(settings: Settings, name: str, isolation: str | None = None, target: str = "cpu") -> Course:
    """Read the assignment and establish its reference, running the solution if this version was never run here."""
    conditions = pipeline.conditions_of(settings, name, isolation, target)
    assignment = read_assignment(settings.course, name)
    reference = known(settings.course, assignment)
    if reference is None:
        with locks.holding(settings.course, name, "prepare"), pipeline.new_zygote() as zygote:
            # on the CPU, whatever the target: what checks there are, and programs for it
            reference = establish(
                settings.course, assignment, pipeline.conditions_of(settings, name, isolation), zygote
            )
    return Course(assignment, reference, with_caches(conditions, settings.course, assignment), settings.examine)


def grade_class(
    settings: Settings,
    course: Course,
    chosen: Collection[str],
    workers: int,
    again: bool,
    done: Callable[[Report], None],
    scheduler: str | None = None,
) -> None:
    """Grade the submissions of `chosen` students and store each. `done` is told every report, new or unchanged.

    Examinations run in `workers` processes of this machine, or on the Dask cluster of a scheduler.

    Raises:
        AcceleratorError: this machine, if it is to grade, has nothing of what the target asks for; nothing is graded.
        BusyError: another process has this assignment in its hands.
        GradersError: there is no such cluster.
        IsolationError: the walls that the course demands cannot be had; nothing is graded.
    """
    if scheduler is None:
        expect_accelerator(course.conditions.target)
    with (
        locks.holding(settings.course, course.assignment.name, "grade"),
        Desk(settings, course, _crew(course, _bounded(course, workers, len(chosen)), scheduler)) as desk,
    ):
        desk.grade(chosen, nothing if again else unchanged, done)


def expect_accelerator(target: Target) -> None:
    """Refuse at once what this machine cannot have, before a whole class waits for it. Raises `AcceleratorError`."""
    told = chips.missing(target)
    if told:
        raise AcceleratorError(f"Target {target.name!r} cannot be had here: {told}.")


def _bounded(course: Course, workers: int, students: int) -> int:
    """How many workers have something to do at once."""
    return max(1, min(workers, students, course.conditions.target.slots or workers))


def _crew(course: Course, workers: int, scheduler: str | None) -> Workers | Cluster:
    if scheduler is None:
        return Workers(course, workers)
    try:
        from graders.run.cluster import Cluster
    except ImportError as error:
        raise SettingsError(f"Dask is not installed here ({error}). Next step: pip install 'graders[dask]'.") from None
    return Cluster(course, scheduler)


def stored(course: Path, assignment: str, chosen: Collection[str] | None = None) -> list[tuple[Report, list[str]]]:
    """Every stored report of an assignment, or those of `chosen` students, with the names of its notebooks."""
    found = []
    for student in subfolders(course / "autograded") if chosen is None else sorted(chosen):
        where = folder(course, "autograded", student, assignment)
        if (where / report.REPORT).is_file():
            notebooks = _notebooks(where) or _notebooks(course / "release" / assignment)
            found.append((report.read(where / report.REPORT), notebooks))
    return found


def _notebooks(where: Path) -> list[str]:
    return sorted(path.stem for path in where.glob("*.ipynb"))
