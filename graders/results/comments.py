"""What formgrader and nbgrader's own feedback show under an answer cell.

Comes in: judged exercises. Goes out: one text for each answer cell. Must not: hold what only staff may see, because
nbgrader shows comments to students.
"""

from __future__ import annotations

from collections.abc import Iterable

from graders.records import CheckResult, ExerciseResult, Outcome
from graders.results.hints import student_reads
from graders.results.numbers import plain

NO_RESPONSE = "No response."  # nbgrader's own words


def comments_of(exercises: Iterable[ExerciseResult]) -> dict[tuple[str, str], str | None]:
    """The comment for each answer cell, by notebook and grade_id; None clears an old one."""
    texts: dict[tuple[str, str], list[str]] = {}
    for one in exercises:
        for id in one.answers:
            told = texts.setdefault((one.notebook, id), [])
            text = _text(one)
            if text and text not in told:
                told.append(text)
    return {key: "\n\n".join(told) or None for key, told in texts.items()}


def _text(one: ExerciseResult) -> str | None:
    if not one.attempted:
        return NO_RESPONSE
    if one.manual:
        return None
    lines = [line for line in (one.reason, one.advice) if line]
    lines += [_line(check) for check in one.checks if check.outcome is not Outcome.passed]
    head = "Not judged." if one.score is None else f"{plain(one.score)} of {plain(one.max_score)} points."
    return "\n".join((f"{one.id}: {head}", *lines)) if lines else None


def _line(check: CheckResult) -> str:
    hint = student_reads(check)
    return f"- {check.title}: {check.outcome.value.replace('_', ' ')}." + (f" {hint}" if hint else "")
