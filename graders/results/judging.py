"""One exercise at a time: from the runs of its cells to its result.

Comes in: what is the same for all exercises of a submission, then one graded cell after the other. Goes out:
`ExerciseResult`s. Must not: look at other submissions, or decide what a student reads under a check (hints does).
"""

from __future__ import annotations

from collections.abc import Mapping

from graders.coursework import Assignment, Reference, ReleasedCell, Role
from graders.records import CheckResult, ExerciseResult, Outcome
from graders.results import hints, jaxerrors
from graders.results.points import ORDINARY, ZERO, judge_checks
from graders.runs import CellRun, Ended, Problem, Run, TestRun, name_of

LEAK = jaxerrors.BY_CLASS["UnexpectedTracerError"]
NOT_JUDGED = "This exercise could not be judged. The fault is not yours, and it does not count as zero points."
ANSWER_MISSING = "The cell for this answer is not in the notebook that was handed in."
LOST_EXAMINER = "The tests stopped working on what your code handed to them. A person will look at it."


def with_answers(assignment: Assignment, notebook: str) -> list[tuple[ReleasedCell, tuple[ReleasedCell, ...]]]:
    """Pair each graded cell of one notebook with the answers that it judges.

    Those are the file that it names, or else the answer cells since the previous test; a second test of the same
    answers gets the same ones.
    """
    pairs: list[tuple[ReleasedCell, tuple[ReleasedCell, ...]]] = []
    fresh: list[ReleasedCell] = []
    latest: tuple[ReleasedCell, ...] = ()
    for cell in assignment.notebooks[notebook]:
        if cell.role is Role.answer:
            fresh.append(cell)
        elif cell.role is Role.test and cell.file in assignment.answer_files:
            pairs.append((cell, (assignment.answer_files[cell.file],)))
        elif cell.role is Role.test:
            latest, fresh = tuple(fresh) or latest, []
            pairs.append((cell, latest))
        elif cell.role in (Role.written, Role.task):
            pairs.append((cell, (cell,)))
    return pairs


def released_text(assignment: Assignment) -> str:
    """Everything that students receive in the notebooks of `assignment`, as one text."""
    return "\n".join(cell.released for cells in assignment.notebooks.values() for cell in cells)


def unchanged(cell: ReleasedCell, answers: Mapping[str, str]) -> bool:
    """Whether an answer is missing or still the released text, white space apart."""
    submitted = answers.get(cell.id or "")
    return submitted is None or submitted.split() == cell.released.split()


class Judge:
    """What is the same for every exercise of one submission."""

    def __init__(
        self,
        reference: Reference,
        run: Run,
        answers: Mapping[str, str],
        unjudged: Mapping[str, str],
        test_names: frozenset[str],
        released: str,
    ) -> None:
        self.reference = reference
        self.answers = answers
        self.unjudged = unjudged
        self.test_names = test_names
        self.released = released
        self.cells = run.cells
        self.tests = {test.id: test for test in run.tests}

    def manual(self, cell: ReleasedCell) -> ExerciseResult:
        """A written answer or a task: a person marks it, so it has no score yet."""
        id = cell.id or ""
        missing = cell.role is Role.written and id not in self.answers
        return ExerciseResult(
            id=id,
            notebook=cell.notebook,
            kind=cell.kind,
            score=None,
            max_score=cell.points,
            outcome=cell.outcome,
            manual=True,
            attempted=cell.role is Role.task or not unchanged(cell, self.answers),
            reason=ANSWER_MISSING if missing else None,
            answers=(id,),
            answer=clean(self.answers.get(id, "")),
        )

    def test(self, cell: ReleasedCell, owned: tuple[ReleasedCell, ...]) -> ExerciseResult:
        """A test cell: the points of the checks that passed."""
        here = [run for run in self.cells if run.notebook in ("", cell.notebook)]
        mine = [run for run in here if run.id in {answer.id for answer in owned}]
        test, own = self.tests.get(cell.id or ""), [run for run in mine if run.ended not in ORDINARY]
        reason = _why(test) or next((_why(run) for run in own), None)
        if test is None and reason is None:
            reason = next(filter(None, map(_why, reversed(here))), None)
        lost = self.unjudged.get(cell.notebook)
        if lost is None and test is None and reason is None:
            lost = NOT_JUDGED
        checks = judge_checks(cell, self.reference, None if lost else test)
        earned = min(sum((check.earned for check in checks), ZERO), cell.points)
        done = lost is None and earned == cell.points
        ids = tuple(answer.id or "" for answer in owned)
        blank = bool(owned) and all(unchanged(answer, self.answers) for answer in owned)
        return ExerciseResult(
            id=cell.id or "",
            notebook=cell.notebook,
            kind=cell.kind,
            score=None if lost else earned,
            max_score=cell.points,
            checks=checks,
            outcome=cell.outcome,
            attempted=not blank or earned > 0,
            reason=lost or (None if done else reason),
            advice=None if lost or done else self._advice(here, mine, None if own else test, checks),
            answers=ids,
            answer=clean("\n\n".join(self.answers.get(id, "") for id in ids)),
            seconds=round(sum(run.seconds for run in mine) + (test.seconds if test else 0.0), 3),
        )

    def _advice(
        self, here: list[CellRun], mine: list[CellRun], test: TestRun | None, checks: tuple[CheckResult, ...]
    ) -> str | None:
        """What to do about the error that the answer raised, else about the first one that its tests met.

        `here` are the cells of the notebook, `mine` those of the answer.
        """
        for run in mine:
            if made := _leaked_from(run.problem, here[: here.index(run)]):
                return f"{LEAK} It was made in {_place(made)}, and failed here."
            source = self.answers.get(run.id or "", "")
            found = hints.advice_for_cell(run.problem, source, self.test_names) if run.problem else None
            if found:
                return found
        if any(_leaked_from(run.problem, mine) for run in here if run not in mine):
            return f"{LEAK} A later cell failed on it."
        if test is None:
            return None
        told = (hints.problem_in(check.message) for check in checks if check.outcome is Outcome.failed)
        problem = test.problem or next(filter(None, told), None)
        if made := _leaked_from(problem, here):
            return f"{LEAK} It was made in {_place(made)}."
        return hints.advice_for_test(problem, self.released) if problem else None


def _leaked_from(problem: Problem | None, cells: list[CellRun]) -> CellRun | None:
    """Which of these cells kept the traced value that this is about."""
    name = jaxerrors.leaked_from(problem) if problem else None
    return next((one for one in cells if name_of(one.position) == name), None)


def _place(cell: CellRun) -> str:
    return f"the cell {cell.id}" if cell.id else f"{name_of(cell.position)} of your notebook"


def _why(run: CellRun | TestRun | None) -> str | None:
    """The sentence for a cell or test that was stopped or lost; None for one that ended by itself."""
    if run is None or run.ended in ORDINARY:
        return None
    return (
        run.reason
        or {
            Ended.timeout: "This code ran longer than its time limit, so it was stopped.",
            Ended.died: "This code ended the Python process that it ran in.",
            Ended.memory: "This code used more memory than it may, so it was stopped.",
            Ended.budget: "The time for the whole submission was used up before this exercise was finished.",
            Ended.examiner_lost: LOST_EXAMINER,
            Ended.forged: "This code spoke to the examination behind the notebook's back; the test was ended.",
            Ended.names_lost: "An earlier test, whose names this one needs, was lost. A person will look at it.",
        }[run.ended]
    )


def clean(text: str) -> str:
    """Half an emoji is no Unicode text and cannot be written as JSON."""
    return text.encode("utf-8", "replace").decode("utf-8")
