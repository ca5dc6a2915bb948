"""What grading again would change: every stored report beside what its submission earns today.

Comes in: a course, an assignment, names of students. Goes out: `Change`s, one for each student whose points or status would be
others. Must not: store anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal

from graders.config import Settings
from graders.records import ExerciseResult, Record, Report, Status
from graders.results.marks import NO_MARKS, Marks, marked
from graders.run import executors, grading
from graders.run.pipeline import Course


class Shift(Record):
    """One exercise whose points would change; None where there are none, or where the exercise is new or gone."""

    exercise: str
    before: Decimal | None
    after: Decimal | None


class Change(Record):
    """One submission that would change. The reports are as pages show them, with people's marks."""

    before: Report
    after: Report
    shifts: tuple[Shift, ...]


def changes(settings: Settings, course: Course, chosen: Collection[str], workers: int) -> Iterator[Change]:
    """Examine the submissions of `chosen` students that have a report, and say which would change.

    Raises:
        IsolationError: the walls that the course demands cannot be had.
    """
    from graders.results.markbook import marks_of  # with SQLAlchemy, 0.3 s

    name = course.assignment.name
    given = marks_of(settings.course, name, settings.db_url)
    before = {one.student: one for one, _ in grading.stored(settings.course, name) if one.student in chosen}
    jobs = (grading.read_job(settings.course, student, course.assignment) for student in before)
    for graded in executors.local(jobs, course, max(1, min(workers, len(before)))):
        student = graded.report.student
        change = compare(before[student], graded.report, given.get(student, NO_MARKS))
        if change is not None:
            yield change


def compare(before: Report, after: Report, marks: Marks) -> Change | None:
    """How one report differs from another in points or status, after people's marks; None when it does not."""
    before, after = marked(before, marks), marked(after, marks)
    old, new = (_by_place(one.exercises) for one in (before, after))
    shifts = tuple(
        Shift(place[1], _score(old.get(place)), _score(new.get(place)))
        for place in dict.fromkeys((*old, *new))
        if _worth(old.get(place)) != _worth(new.get(place))
    )
    if before.status is after.status is Status.not_graded:
        return None
    same = (before.status, before.score, before.max_score) == (after.status, after.score, after.max_score)
    return None if same and not shifts else Change(before, after, shifts)


def _by_place(exercises: tuple[ExerciseResult, ...]) -> dict[tuple[str, str], ExerciseResult]:
    return {(one.notebook, one.id): one for one in exercises}


def _score(one: ExerciseResult | None) -> Decimal | None:
    return one.score if one else None


def _worth(one: ExerciseResult | None) -> tuple[Decimal | None, Decimal] | None:
    return (one.score, one.max_score) if one else None
