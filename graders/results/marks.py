"""What people gave beside the machine: marks, extra credit, comments, penalties.

Comes in: a report as it was signed, and a person's marks of it. Goes out: the same report as pages and lines show it, and the
difference between an answer and the text that was marked. Must not: change what is stored, or let a mark for another text pass
without a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from decimal import Decimal

import msgspec

from graders.records import ExerciseResult, Flag, Record, Report, Status

AWAITS = "awaits_marking"
CHANGED = (
    "Your answer changed after a person had marked it. The mark stands, as given for the earlier answer, until a person "
    "has looked again."
)
ZERO = Decimal(0)


class Mark(Record):
    """What a person gave for one graded cell. `score` is None when the machine's score stands.

    `answer` is the text that was marked, None when it is not known.
    """

    score: Decimal | None = None
    extra: Decimal = ZERO
    comment: str | None = None
    answer: str | None = None

    @property
    def given(self) -> bool:
        """Whether there are points of a person, and not a comment alone."""
        return self.score is not None or self.extra != ZERO


class Marks(Record):
    """The marks of one submission, by notebook and grade_id, and the points that it loses for being late."""

    by_cell: dict[tuple[str, str], Mark] = msgspec.field(default_factory=dict)
    penalty: Decimal = ZERO


NO_MARKS = Marks()


def of(one: ExerciseResult, marks: Marks) -> Mark:
    """The mark of one exercise; an empty one where nobody gave any."""
    return marks.by_cell.get((one.notebook, one.id), Mark())


def storable(text: str) -> str:
    """A text as every database keeps it: PostgreSQL has no null character, and no encoding has half a surrogate pair."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def changed(one: ExerciseResult, mark: Mark) -> bool:
    """Whether the answer is another one than the person marked; white space at the ends of lines does not count."""
    return mark.given and mark.answer is not None and _lines(mark.answer) != _lines(one.answer)


def waiting(one: ExerciseResult) -> bool:
    """Whether a person still has to read this answer, or to look where it went."""
    return one.manual and one.score is None and (one.attempted or one.reason is not None)


def unanswered(one: ExerciseResult) -> bool:
    """Whether a person would have had to read this answer, and there is none: nobody will mark it."""
    return one.manual and one.score is None and not waiting(one)


def marked(report: Report, marks: Marks) -> Report:
    """The report with the points that count: a person's before the machine's, extra credit added, the penalty taken off."""
    if report.status is Status.not_graded or (not marks.by_cell and not marks.penalty):
        return report
    exercises = tuple(_marked(one, of(one, marks)) for one in report.exercises)
    total = sum((one.score or ZERO for one in exercises), ZERO)
    lost = any(one.score is None and not one.manual for one in exercises)
    flags = tuple(flag for flag in report.flags if flag.name != AWAITS or any(map(waiting, exercises)))
    return msgspec.structs.replace(
        report,
        status=Status.partly_graded if lost else Status.graded,
        score=max(ZERO, total - marks.penalty),
        exercises=exercises,
        flags=(*flags, *_flags(report, marks)),
    )


def difference(report: Report, marks: Marks) -> str:
    """For staff: how each answer differs from the text that was marked, as a unified diff; empty when none does."""
    parts: list[str] = []
    for one in report.exercises:
        mark = of(one, marks)
        if changed(one, mark):
            name = f"{one.notebook}/{one.id}"
            before, now = _lines(mark.answer or ""), _lines(one.answer)
            parts += difflib.unified_diff(before, now, f"{name} (marked)", f"{name} (now)", lineterm="")
    return "".join(f"{line}\n" for line in parts)


def _marked(one: ExerciseResult, mark: Mark) -> ExerciseResult:
    if not mark.given:
        return one
    score = mark.score if mark.score is not None else one.score or ZERO
    return msgspec.structs.replace(one, score=score + mark.extra)


def _flags(report: Report, marks: Marks) -> Iterator[Flag]:
    for one in report.exercises:
        if changed(one, of(one, marks)):
            yield Flag("marked_before_change", CHANGED, one.id)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in storable(text).strip("\n").splitlines()]
