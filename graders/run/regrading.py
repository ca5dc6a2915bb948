"""Grade again what is stored: first say who would change, check by check, and only then store just that.

Comes in: a course, an assignment, names of students. Goes out: `Change`s, one for each student whose points or status would be
others. Must not: store anything unasked, or anything but what was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from graders.config import Settings
from graders.results.marks import NO_MARKS
from graders.results.shifts import Change, compare
from graders.run import grading, locks
from graders.run.desk import Desk
from graders.run.pipeline import Course, Graded


def regrade(
    settings: Settings,
    course: Course,
    chosen: Collection[str],
    workers: int,
    store: bool,
    shown: Callable[[Sequence[Change]], None],
) -> None:
    """Examine the submissions of `chosen` students that have a report, show which would change, and store these if `store` is true.

    Raises:
        BusyError: another process has this assignment in its hands.
        IsolationError: the walls that the course demands cannot be had.
    """
    name = course.assignment.name
    with (
        locks.holding(settings.course, name, "regrade"),
        Desk(settings, course, max(1, min(workers, len(chosen))), "regrade") as desk,
    ):
        found = sorted(_changes(settings, desk, name, chosen), key=lambda one: one[0].before.student)
        shown([change for change, _ in found])
        if store:
            desk.keep(graded for _, graded in found)


def _changes(settings: Settings, desk: Desk, name: str, chosen: Collection[str]) -> list[tuple[Change, Graded]]:
    from graders.results.markbook import marks_of  # with SQLAlchemy, 0.3 s

    given = marks_of(settings.course, name, settings.db_url)
    before = {one.student: one for one, _ in grading.stored(settings.course, name) if one.student in chosen}
    found = []
    for graded in desk.examine(before):
        student = graded.report.student
        change = compare(before[student], graded.report, given.get(student, NO_MARKS))
        if change is not None:
            found.append((change, graded))
    return found
