"""From what happened to points.

Comes in: an assignment, what the instructor's own run of it established, and one run of a submission. Goes out: one
`ExerciseResult` per graded cell in released order, with exact decimal points. Must not: read a file, start a process,
round a number, or call "could not be judged" zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graders.coursework import Assignment, Reference, Role
from graders.records import ExerciseResult, Flag, Outcome, Receipt, Report, Status
from graders.results import hints
from graders.results.judging import LOST_EXAMINER, Judge, clean, released_text, with_answers
from graders.results.points import ZERO
from graders.runs import Ended, Run

FORGED = "What the notebook's process sent during this test is nothing that a notebook sends. A person will look at it."


def score(
    assignment: Assignment,
    reference: Reference,
    run: Run,
    answers: Mapping[str, str],
    unjudged: Mapping[str, str] | None = None,
) -> tuple[ExerciseResult, ...]:
    """Judge every graded cell of `assignment`, in released order.

    `answers` holds the submitted text of answer and written cells by grade_id; a cell that is not there was deleted.
    `unjudged` gives, by notebook, a sentence why nothing in it could be judged; such exercises have no score.
    """
    judge = Judge(reference, run, answers, unjudged or {}, hints.names_of_tests(assignment), released_text(assignment))
    results: list[ExerciseResult] = []
    for name in assignment.notebooks:
        for cell, owned in with_answers(assignment, name):
            results.append(judge.manual(cell) if cell.role is not Role.test else judge.test(cell, owned))
    return tuple(results)


def assemble_report(
    assignment: Assignment,
    reference: Reference,
    run: Run,
    *,
    student: str,
    answers: Mapping[str, str],
    flags: Iterable[Flag] = (),
    unjudged: Mapping[str, str] | None = None,
    submitted: str | None = None,
    receipt: Receipt | None = None,
) -> Report:
    """Judge one run and put everything known about the submission into one record.

    `flags` are those of reading and planning; the flags of the run and of judging are added. See `score` for the rest.
    """
    exercises = score(assignment, reference, run, answers, unjudged)
    machine = [one for one in exercises if not one.manual]
    judged = [one for one in machine if one.score is not None]
    status = Status.graded if len(judged) == len(machine) else Status.partly_graded if judged else Status.not_graded
    lost = next((one.reason for one in machine if one.score is None), None)
    return Report(
        student=student,
        assignment=assignment.name,
        status=status,
        score=None if status is Status.not_graded else sum((one.score or ZERO for one in judged), ZERO),
        max_score=sum((one.max_score for one in exercises), ZERO),
        exercises=exercises,
        flags=tuple(dict.fromkeys((*flags, *run.flags, *flags_of(exercises, run)))),
        reason=lost if status is Status.not_graded else None,
        submitted=submitted,
        receipt=receipt,
    )


def flags_of(exercises: Iterable[ExerciseResult], run: Run) -> list[Flag]:
    """Why a person should look at these results."""
    exercises = list(exercises)
    flags = []
    for one in exercises:
        flags += [
            Flag(
                "broken_check",
                f"The check “{check.title}” is broken and gave no points. It is for the instructor.",
                one.id,
            )
            for check in one.checks
            if check.outcome is Outcome.broken
        ]
    flags += [Flag("examiner_lost", LOST_EXAMINER, test.id) for test in run.tests if test.ended is Ended.examiner_lost]
    flags += [Flag("protocol_broken", FORGED, test.id) for test in run.tests if test.ended is Ended.forged]
    if exercises and not any(one.attempted for one in exercises):
        flags.append(Flag("not_attempted", "Every answer is still as it was handed out."))
    if any(one.manual and (one.attempted or one.reason) for one in exercises):
        flags.append(Flag("awaits_marking", "Some answers are read and marked by a person, who has not done so yet."))
    return flags


def not_graded_report(
    student: str,
    assignment: Assignment,
    reason: str,
    *,
    flags: Iterable[Flag] = (),
    submitted: str | None = None,
    receipt: Receipt | None = None,
    arrived: Iterable[str] = (),
) -> Report:
    """A report that says why a submission has no score. `reason` is a sentence for student and staff."""
    points = sum((cell.points for cells in assignment.notebooks.values() for cell in cells), ZERO)
    return Report(
        student=student,
        assignment=assignment.name,
        status=Status.not_graded,
        score=None,
        max_score=points,
        flags=tuple(flags),
        reason=clean(reason),
        submitted=submitted,
        receipt=receipt,
        arrived=tuple(map(clean, arrived)),
    )
