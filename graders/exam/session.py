"""Examine one submission: its cells in the candidate, its tests in the examiner, in released order.

Comes in: an `ExamPlan` and `Conditions`. Goes out: a `Run`. Must not: import jax, judge a result, or let one exercise's
death, loop or flood cost another exercise anything.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from graders.coursework import Role
from graders.exam import bindings, control, inkernel
from graders.exam.ownership import Names
from graders.exam.pair import Answer, Conditions, Pair
from graders.exam.plan import ExamPlan, NotebookPlan, Step
from graders.kernels.client import CellEnd, died
from graders.kernels.nursery import Nursery
from graders.runs import CellRun, Ended, Run, TestRun

_LOST_NAMES = "An earlier test, whose names this one needs, was lost. A person will look at it."
_LEAST_S = 0.1


def examine(plan: ExamPlan, conditions: Conditions, nursery: Nursery) -> Run:
    """Examine every notebook of a submission.

    Raises:
        IsolationError: the walls that `conditions` demand cannot be had.
        InfrastructureError: a process of ours failed.
    """
    deadline = time.monotonic() + conditions.submission_timeout_s
    runs = []
    for notebook in plan.notebooks:
        pair = Pair(plan, conditions, nursery)
        try:
            runs.append(Examination(notebook, conditions, pair, deadline).run())
        finally:
            pair.end()
    return _merge(runs)


def _merge(runs: Iterable[Run]) -> Run:
    runs = list(runs)
    phases: dict[str, float] = {}
    for run in runs:
        for name, seconds in run.phases_s.items():
            phases[name] = phases.get(name, 0.0) + seconds
    return Run(
        cells=tuple(cell for run in runs for cell in run.cells),
        tests=tuple(test for run in runs for test in run.tests),
        places=runs[0].places if runs else (),
        phases_s=phases,
        cpu_s=sum(run.cpu_s for run in runs),
        restarts=sum(run.restarts for run in runs),
        peak_bytes=max((run.peak_bytes for run in runs), default=0),
    )


class Examination:
    """One notebook. What a submission does to itself ends as a value in the `Run`."""

    def __init__(self, notebook: NotebookPlan, conditions: Conditions, pair: Pair, deadline: float) -> None:
        self._notebook = notebook
        self._conditions = conditions
        self._pair = pair
        self._deadline = deadline
        self._killers: set[int] = set()
        self._hung: set[int] = set()
        self._cells: dict[int, CellRun] = {}
        self._tests: list[TestRun] = []
        self._phases: dict[str, float] = {}
        self._restarts = 0
        self._after_hidden = False
        self._lost_names: set[str] = set()

    def run(self) -> Run:
        """Go through the steps in order."""
        with self._phase("start"):
            self._pair.start()
        for step in self._notebook.steps:
            if step.cell_type != "code":
                continue
            if step.role is Role.test:
                self._tests.append(self._test(step))
            else:
                self._cell(step)
        with self._phase("end"):
            self._pair.end()
        cells = tuple(self._cells[position] for position in sorted(self._cells))
        pair, phases = self._pair, self._phases
        return Run(cells, tuple(self._tests), (), pair.places, phases, pair.cpu_s, self._restarts, pair.peak_bytes)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = self._phases.get(name, 0.0) + time.monotonic() - begun

    def _over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _left(self) -> float:
        """Wall seconds that the next cell or test may take."""
        return min(self._conditions.cell_timeout_s, self._deadline - time.monotonic())

    def _execute(self, step: Step) -> tuple[CellEnd, bool]:
        """Run a cell; (how it ended, whether another cell is to blame for that)."""
        end = self._pair.run(step.source, max(_LEAST_S, self._left()))
        if end.ended is Ended.timeout:
            if not step.author:
                self._hung.add(step.position)
            if self._over():
                end = msgspec.structs.replace(end, ended=Ended.budget)
        if end.alive:
            return end, False
        blamed = self._culprit(step)
        self._killers.add(blamed)
        if blamed in self._cells:
            told = {"ended": end.ended, "reason": self._sentence(end.ended)}
            self._cells[blamed] = msgspec.structs.replace(self._cells[blamed], **told)
        return end, blamed != step.position

    def _culprit(self, step: Step) -> int:
        """The cell to blame for a death during `step`: a cell of the instructor does not kill, so then it is the
        student's last cell before it, which left something behind.
        """
        before = [one for one in self._ran(step.position) if not one.author and one.position not in self._killers]
        return before[-1].position if step.author and step.role is not Role.test and before else step.position

    def _ran(self, end: int) -> list[Step]:
        """The steps before `end` that run in the candidate."""
        tests = not self._conditions.sealed
        code = [one for one in self._notebook.steps[:end] if one.cell_type == "code"]
        return [one for one in code if tests or one.role is not Role.test]

    def _revive(self, before: Step) -> None:
        """A new candidate that has run the cells before `before`, but for those that killed one or never ended."""
        while not self._pair.alive:
            self._restarts += 1
            with self._phase("start"):
                self._pair.start()
            with self._phase("replay"):
                for step in self._ran(before.position):
                    left_out = step.position in self._killers | self._hung
                    if not left_out and not self._execute(step)[0].alive:
                        break

    def _cell(self, step: Step) -> None:
        if self._left() <= 0:
            self._cells[step.position] = self._cell_run(step, Ended.budget)
            return
        self._revive(step)
        with self._phase("cells"):
            end, blameless = self._execute(step)
        if blameless:
            self._cell(step)
            return
        self._cells[step.position] = self._cell_run(step, end.ended, end)

    def _cell_run(self, step: Step, ended: Ended, end: CellEnd | None = None) -> CellRun:
        return CellRun(
            position=step.position,
            id=step.id,
            ended=ended,
            outputs=tuple(one for one in end.outputs if not inkernel.shows_checks(one)) if end else (),
            problem=end.problem if end else None,
            reason=self._sentence(ended),
            after_hidden=self._after_hidden,
            seconds=end.seconds if end else 0.0,
            notebook=self._notebook.name,
        )

    def _test(self, step: Step) -> TestRun:
        identity = step.id or f"cell {step.position}"
        names = step.names or Names((), ())
        if self._left() <= 0:
            return TestRun(identity, Ended.budget, reason=self._sentence(Ended.budget))
        if self._pair.bereft():
            self._lose_names(step.position)
        if not self._lost_names.isdisjoint(names.earlier):
            return TestRun(identity, Ended.names_lost, reason=_LOST_NAMES)
        self._revive(step)
        if not self._conditions.sealed:
            return self._test_in_kernel(step)
        with self._phase("tests"):
            answer = self._pair.ask(control.Examine(identity, step.segments, names), max(_LEAST_S, self._left()))
        if answer.judged is None:
            self._lose_names(step.position + 1)
            return TestRun(identity, Ended.examiner_lost, output=answer.printed)
        self._lost_names -= _binds(step)
        hidden = any(one.hidden for one in step.segments)
        self._after_hidden = self._after_hidden or (hidden and answer.called)
        return self._test_run(answer, answer.judged.test)

    def _lose_names(self, end: int) -> None:
        """The examiner is lost, and with it what the tests before `end` have bound."""
        self._lost_names = {name for one in self._notebook.steps[:end] for name in _binds(one)}

    def _test_in_kernel(self, step: Step) -> TestRun:
        with self._phase("tests"):
            end, _ = self._execute(step)
        self._after_hidden = self._after_hidden or any(one.hidden for one in step.segments)
        return inkernel.test_run(step, end, self._sentence(end.ended, called=True))

    def _test_run(self, answer: Answer, test: TestRun) -> TestRun:
        lost = answer.judged is not None and answer.judged.candidate_lost is not None
        late = Ended.budget if self._over() else Ended.timeout
        # a channel that broke although the candidate lives was broken on purpose
        broken = Ended.forged if answer.exit is None else died(answer.exit)
        ended = late if answer.late else broken if lost else test.ended
        return msgspec.structs.replace(
            test, ended=ended, output=test.output + answer.printed, reason=self._sentence(ended, called=True)
        )

    def _sentence(self, ended: Ended, called: bool = False) -> str | None:
        """What a student reads about a cell or test that did not end by itself."""
        subject = "Your code, called by a test," if called else "This cell"
        limits = self._conditions
        return {
            Ended.timeout: f"{subject} did not finish within {limits.cell_timeout_s:g} s and was stopped.",
            Ended.memory: f"{subject} used more than {limits.limits.memory_bytes / 2**20:,.0f} MiB of memory and was stopped.",
            Ended.died: f"{subject} ended the Python process it ran in (os._exit, a crash, or a kill).",
            Ended.forged: f"{subject} spoke to the examination behind the notebook's back; the test was ended.",
            Ended.budget: f"The {limits.submission_timeout_s:g} s for the whole submission were used up before this was done.",
        }.get(ended)


def _binds(step: Step) -> frozenset[str]:
    """Names that a test leaves to later tests."""
    return _bound(step.source) if step.role is Role.test else frozenset()


@functools.lru_cache(maxsize=1000)
def _bound(source: str) -> frozenset[str]:
    tree = bindings.parse(source)  # 30 ms, and the same for every student
    return frozenset(bindings.bound(tree)) if tree else frozenset()
