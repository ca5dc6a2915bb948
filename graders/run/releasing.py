"""Release an assignment: first its solution must pass, then nbgrader writes what students receive.

Comes in: settings and a name. Goes out: `Released`. Must not: print, or leave a release that shows what is hidden.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from graders.config import Settings
from graders.course.notebooks import read_assignment
from graders.course.reference import establish, run_solution
from graders.course.release import generate, leaks
from graders.errors import CourseError
from graders.records import Record, Reference
from graders.run import pipeline


class Released(Record):
    """What a release made."""

    folder: Path
    reference: Reference


def release(settings: Settings, name: str, isolation: str | None = None) -> Released:
    """Release one assignment.

    Raises:
        CourseError: the solution fails its own tests, a hidden line would be released, or nbgrader refuses.
    """
    conditions = pipeline.conditions_of(settings, isolation)
    with pipeline.new_zygote() as zygote:
        run_solution(read_assignment(settings.course, name, released=False), conditions, zygote)
        generate(settings.course, settings.course_id, name)
        assignment = read_assignment(settings.course, name)
        shown = leaks(assignment)
        if shown:
            shutil.rmtree(settings.course / "release" / name)
            raise CourseError(
                f"{name!r} was not released, since it would show what is hidden:\n  " + "\n  ".join(shown)
            )
        reference = establish(settings.course, assignment, conditions, zygote)
    return Released(settings.course / "release" / name, reference)
