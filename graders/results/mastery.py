"""How far a student has come, by learning outcome.

Comes in: reports with what counts. Goes out: points and a word by outcome, exercises and checkpoints apart. Must not: count what nobody
has marked yet, or let practice prove anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from enum import Enum

from graders.records import ExerciseResult, Kind, Record, Report, Status
from graders.results.marks import unanswered


class Share(Record, frozen=True):
    """Points of one group of exercises."""

    name: str
    score: Decimal
    max_score: Decimal


class Mastery(str, Enum):
    """How far a student has come with one outcome: only a checkpoint proves it, and only full marks do."""

    proven = "proven"
    practised = "practised"
    waiting = "waiting"
    not_yet = "not_yet"


WORDS = {
    Mastery.proven.value: ("Proven", "every checkpoint has full marks"),
    Mastery.practised.value: ("Practised", "every exercise has full marks; no checkpoint asks for it"),
    Mastery.waiting.value: ("Waiting", "not everything is judged yet"),
    Mastery.not_yet.value: ("Not yet", "points are still to be found"),
}


class OutcomeScore(Record):
    """One learning outcome over all assignments; a kind that has nothing judged is None."""

    name: str
    mastery: Mastery
    exercises: Share | None
    checkpoints: Share | None


def outcomes(reports: Iterable[Report]) -> tuple[OutcomeScore, ...]:
    """Every outcome that the reports name, in the order in which they name it."""
    found: dict[str, list[ExerciseResult]] = {}
    for report in reports:
        for one in report.exercises if report.status is not Status.not_graded else ():
            if one.outcome:
                found.setdefault(one.outcome, []).append(one)
    return tuple(OutcomeScore(name, mastery(group), *by_kind(group)) for name, group in found.items())


def mastery(group: Iterable[ExerciseResult]) -> Mastery:
    """Proven: every checkpoint has full marks. Practised: there is none, and every exercise has them. What nobody judged waits."""
    group = list(group)
    checkpoints = [one for one in group if one.kind is Kind.checkpoint]
    decisive = checkpoints or group
    if any(short(one) for one in decisive):
        return Mastery.not_yet
    if any(one.score is None for one in decisive):
        return Mastery.waiting
    return Mastery.proven if checkpoints else Mastery.practised


def short(one: ExerciseResult) -> bool:
    """Whether points are left that the student can still find: judged with fewer than all, or to be read by a person and empty."""
    return unanswered(one) or (one.score is not None and one.score < one.max_score)


def by_kind(group: Iterable[ExerciseResult]) -> tuple[Share | None, Share | None]:
    """Points of exercises and of checkpoints; what nobody has marked is left out."""
    group = list(group)
    exercises, checkpoints = (
        next(iter(shares([(kind.value, [one for one in group if one.kind is kind])])), None)
        for kind in (Kind.exercise, Kind.checkpoint)
    )
    return exercises, checkpoints


def shares(groups: Iterable[tuple[str, Iterable[ExerciseResult]]]) -> list[Share]:
    """Points by group; what nobody has marked yet is left out of both numbers."""
    found = []
    for name, group in groups:
        judged = [one for one in group if one.score is not None]
        if judged:
            total = sum((one.max_score for one in judged), Decimal(0))
            found.append(Share(name, sum((one.score or Decimal(0) for one in judged), Decimal(0)), total))
    return found


def as_data(reports: Iterable[Report]) -> list[dict[str, object]]:
    """The outcomes as JSON has them."""
    return [
        {"outcome": one.name, "mastery": one.mastery.value} | points(one.exercises, one.checkpoints)
        for one in outcomes(reports)
    ]


def points(exercises: Share | None, checkpoints: Share | None) -> dict[str, object]:
    """The two kinds apart, as JSON has them; None for a kind that has nothing judged."""
    return {
        name: share and {"score": share.score, "max_score": share.max_score}
        for name, share in (("exercises", exercises), ("checkpoints", checkpoints))
    }
