"""What a class did with each exercise and each check.

Comes in: reports with what counts. Goes out: figures by exercise, check, outcome and mistake. Must not: count what was not judged, or an answer
that nobody wrote, as wrong.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from graders.records import CheckResult, ExerciseResult, Kind, Outcome, Record, Report
from graders.results.hints import NOT_ANSWERED, student_reads
from graders.results.points import ZERO

FEWEST = 10  # answers, below which a correlation says next to nothing


class Item(Record):
    """One check. `answered` counts those who answered its exercise and were judged, `passed` those of them who passed it.

    `discrimination` is None where it says nothing: few answers, or all alike.
    """

    title: str
    points: Decimal
    answered: int
    passed: int
    discrimination: float | None


class ExerciseItem(Record):
    """One exercise. `median_s` and `longest_s` are wall seconds of its answer and its test, None when no time is known."""

    id: str
    notebook: str
    kind: Kind
    outcome: str | None
    max_score: Decimal
    answered: int
    median_s: float | None
    longest_s: float | None
    items: tuple[Item, ...]


class Levels(Record):
    """How many students stand where with one outcome: all of its points, some, none, or nothing judged yet."""

    outcome: str
    kind: Kind
    full: int
    part: int
    none: int
    open: int


class Mistake(Record):
    """What several answers have in common, in the words that their students read. `id` is the exercise's."""

    id: str
    notebook: str
    text: str
    students: tuple[str, ...]


def discrimination(scores: Sequence[float], rests: Sequence[float]) -> float | None:
    """The corrected item-total correlation: Pearson's r between the scores of one item and the points of all *other* items.

    For an item that is right or wrong it is the corrected point-biserial correlation. From 0.4 on an item tells strong from weak
    answers well, below 0.2 hardly, below 0 it favours the weak (R. L. Ebel, Measuring Educational Achievement, 1965; the
    correction: S. Henrysson, Psychometrika 28 (1963), 211-218). None when either side is the same for all.
    """
    if len(set(scores)) < 2 or len(set(rests)) < 2:
        return None
    return statistics.correlation(scores, rests)


def exercises(reports: Sequence[Report]) -> tuple[ExerciseItem, ...]:
    """Figures of every exercise and its checks, in the order of the reports."""
    found: dict[tuple[str, str], list[_Answer]] = {}
    for report in reports:
        checks = [check for one in report.exercises if one.score is not None for check in _sound(one)]
        earned, points = sum((one.earned for one in checks), ZERO), sum((one.points for one in checks), ZERO)
        for one in report.exercises:
            found.setdefault((one.notebook, one.id), []).append(_Answer(one, earned, points))
    return tuple(_exercise(answers) for answers in found.values())


class _Answer(NamedTuple):
    """An exercise of one student, and what all checks of that student earned, of how many points."""

    result: ExerciseResult
    earned: Decimal
    points: Decimal

    def rest(self, check: CheckResult) -> float:
        """The share earned of all points but those of one check: what was not judged is in neither number."""
        left = self.points - check.points
        return float((self.earned - check.earned) / left) if left else 0.0


def _sound(one: ExerciseResult) -> list[CheckResult]:
    return [check for check in one.checks if check.outcome is not Outcome.broken]


def _exercise(answers: Sequence[_Answer]) -> ExerciseItem:
    latest = answers[-1].result
    judged = [one for one in answers if one.result.score is not None and one.result.attempted]
    seconds = [one.result.seconds for one in judged if one.result.seconds]
    return ExerciseItem(
        id=latest.id,
        notebook=latest.notebook,
        kind=latest.kind,
        outcome=latest.outcome,
        max_score=latest.max_score,
        answered=sum(one.result.attempted for one in answers),
        median_s=statistics.median(seconds) if seconds else None,
        longest_s=max(seconds, default=None),
        items=tuple(_items(judged)),
    )


def _items(judged: Sequence[_Answer]) -> Iterator[Item]:
    """The checks of one exercise; of those with the same title the n-th is one. What is broken judges nobody."""
    found: dict[tuple[str, int], list[tuple[CheckResult, float]]] = {}
    for one in judged:
        seen: dict[str, int] = {}
        for check in _sound(one.result):
            number = seen[check.title] = seen.get(check.title, 0) + 1
            found.setdefault((check.title, number), []).append((check, one.rest(check)))
    for (title, _), rows in found.items():
        passed = [check.outcome is Outcome.passed for check, _ in rows]
        # a check without points is right or wrong all the same
        scores = [
            float(check.earned) if check.points else float(fine) for (check, _), fine in zip(rows, passed, strict=True)
        ]
        index = discrimination(scores, [rest for _, rest in rows]) if len(rows) >= FEWEST else None
        yield Item(title, rows[-1][0].points, len(rows), sum(passed), index)


def outcomes(reports: Sequence[Report]) -> tuple[Levels, ...]:
    """Every learning outcome, exercises and checkpoints apart, in the order of the reports."""
    names = dict.fromkeys((one.outcome, one.kind) for report in reports for one in report.exercises if one.outcome)
    found = []
    for outcome, kind in names:
        counts = {"full": 0, "part": 0, "none": 0, "open": 0}
        for report in reports:
            counts[level(one for one in report.exercises if (one.outcome, one.kind) == (outcome, kind))] += 1
        found.append(Levels(outcome, kind, **counts))
    return tuple(found)


def level(group: Iterable[ExerciseResult]) -> str:
    """All points of what is judged, some, none; "open" when nothing is."""
    judged = [one for one in group if one.score is not None]
    score = sum((one.score or ZERO for one in judged), ZERO)
    if not judged:
        return "open"
    return "full" if score >= sum((one.max_score for one in judged), ZERO) else "part" if score > 0 else "none"


def mistakes(reports: Sequence[Report]) -> tuple[Mistake, ...]:
    """Misconceptions that a check named, and what was said about errors; the most common first, each student counted once."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for report in reports:
        for one in report.exercises:
            told = [check.misconception and student_reads(check) for check in one.checks]
            advice = None if one.advice == NOT_ANSWERED else one.advice
            for text in filter(None, (*told, advice)):
                found.setdefault((one.id, one.notebook, text), {})[report.student] = None
    made = [Mistake(*key, tuple(students)) for key, students in found.items()]
    return tuple(sorted(made, key=lambda one: (-len(one.students), one.id, one.text)))
