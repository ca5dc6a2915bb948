"""Examine one submission: its cells in the candidate, its tests in the examiner, in released order.

Comes in: an `ExamPlan` and `Conditions`. Goes out: a `Run`. Must not: import jax, judge a result, or let one exercise's
death, loop or flood cost another exercise anything.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Sequence

import msgspec

from graders.coursework import Role
from graders.exam import bindings, control, inkernel, testcode
from graders.exam.cells import Cells
from graders.exam.compiling import Compiling
from graders.exam.ownership import Names
from graders.exam.pair import Answer, Conditions, Pair
from graders.exam.plan import ExamPlan, NotebookPlan, Step
from graders.exam.sentences import LOST_NAMES, sentence, translating
from graders.kernels.client import died
from graders.kernels.nursery import Nursery
from graders.runs import Ended, Run, TestRun


def examine(plan: ExamPlan, conditions: Conditions, nursery: Nursery) -> Run:
    """Examine every notebook of a submission.

    Raises:
        IsolationError: the walls that `conditions` demand cannot be had.
        InfrastructureError: a process of ours failed.
    """
    if not conditions.target.topology:
        return _merge(_runs(plan, conditions, nursery, None))
    with Compiling(conditions.target.topology, conditions.isolation, conditions.limits, nursery) as compiling:
        run = _merge(_runs(plan, conditions, nursery, compiling))
        compilation = compiling.finish()
    phases = run.phases_s | {"compile": compilation.wall_s}
    return msgspec.structs.replace(run, compilation=compilation, phases_s=phases, cpu_s=run.cpu_s + compiling.cpu_s)


def _runs(plan: ExamPlan, conditions: Conditions, nursery: Nursery, compiling: Compiling | None) -> list[Run]:
    deadline = time.monotonic() + conditions.submission_timeout_s
    runs = []
    for notebook in plan.notebooks:
        pair = Pair(plan, conditions, nursery)
        try:
            runs.append(Examination(notebook, conditions, pair, deadline, compiling).run())
        finally:
            pair.end()
    return runs


def _merge(runs: Sequence[Run]) -> Run:
    return Run(
        cells=tuple(cell for run in runs for cell in run.cells),
        tests=tuple(test for run in runs for test in run.tests),
        places=runs[0].places if runs else (),
        phases_s=_summed(run.phases_s for run in runs),
        cpu_s=sum(run.cpu_s for run in runs),
        restarts=sum(run.restarts for run in runs),
        peak_bytes=max((run.peak_bytes for run in runs), default=0),
        compile_s=_summed(run.compile_s for run in runs),
    )


def _summed(figures: Iterable[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in figures:
        for name, seconds in one.items():
            total[name] = total.get(name, 0.0) + seconds
    return total


class Examination:
    """One notebook. What a submission does to itself ends as a value in the `Run`."""

    def __init__(
        self,
        notebook: NotebookPlan,
        conditions: Conditions,
        pair: Pair,
        deadline: float,
        compiling: Compiling | None = None,
    ) -> None:
        self._notebook = notebook
        self._conditions = conditions
        self._pair = pair
        self._compiling = compiling
        self._cells = Cells(notebook, conditions, pair, deadline)
        self._tests: list[TestRun] = []
        self._lost_names: set[str] = set()

    def run(self) -> Run:
        """Go through the steps in order."""
        cells, pair = self._cells, self._pair
        with cells.phase("start"):
            pair.start()
        for step in self._notebook.steps:
            if step.cell_type != "code":
                continue
            if step.role is Role.test:
                self._tests.append(self._test(step))
            else:
                cells.run(step)
        with cells.phase("end"):
            compile_s = pair.compiled()
            pair.end()
        ran = tuple(cells.runs[position] for position in sorted(cells.runs))
        return Run(
            cells=ran,
            tests=tuple(self._tests),
            places=pair.places,
            phases_s=cells.phases,
            cpu_s=pair.cpu_s,
            restarts=cells.restarts,
            peak_bytes=pair.peak_bytes,
            compile_s=compile_s,
        )

    def _test(self, step: Step) -> TestRun:
        identity = step.id or f"cell {step.position}"
        names = step.names or Names((), ())
        if self._cells.over:
            return TestRun(identity, Ended.budget, reason=sentence(Ended.budget, self._conditions))
        if self._pair.bereft():
            self._lose_names(step.position)
        if not self._lost_names.isdisjoint(names.earlier):
            return TestRun(identity, Ended.names_lost, reason=LOST_NAMES)
        self._cells.revive(step)
        if not self._conditions.sealed:
            return self._test_in_kernel(step)
        code = tuple(testcode.packed(identity, one) for one in step.segments)
        with self._cells.phase("tests"):
            answer = self._pair.ask(control.Examine(identity, step.segments, names, code), self._cells.left_s())
        if answer.judged is None:
            self._lose_names(step.position + 1)
            ended = self._cells.late if answer.late and translating(answer.stack) else Ended.examiner_lost
            reason = sentence(ended, self._conditions, called=True, stack=answer.stack)
            return TestRun(identity, ended, output=answer.printed, reason=reason)
        if answer.lost and not answer.late and answer.exit and self._cells.accuse_late(step):
            return self._test(step)
        self._lost_names -= _binds(step)
        if self._compiling is not None:
            self._compiling.add(identity, answer.judged.programs)
        hidden = any(one.hidden for one in step.segments)
        self._cells.after_hidden = self._cells.after_hidden or (hidden and answer.called)
        return self._test_run(answer, answer.judged.test)

    def _lose_names(self, end: int) -> None:
        """The examiner is lost, and with it what the tests before `end` have bound."""
        self._lost_names = {name for one in self._notebook.steps[:end] for name in _binds(one)}

    def _test_in_kernel(self, step: Step) -> TestRun:
        with self._cells.phase("tests"):
            end, _ = self._cells.execute(step)
        self._cells.after_hidden = self._cells.after_hidden or any(one.hidden for one in step.segments)
        return inkernel.test_run(step, end, sentence(end.ended, self._conditions, called=True, stack=end.stack))

    def _test_run(self, answer: Answer, test: TestRun) -> TestRun:
        # a channel that broke although the candidate lives was broken on purpose
        broken = Ended.forged if answer.exit is None else died(answer.exit)
        ended = self._cells.late if answer.late else broken if answer.lost else test.ended
        reason = sentence(ended, self._conditions, called=True, stack=answer.stack)
        return msgspec.structs.replace(test, ended=ended, output=test.output + answer.printed, reason=reason)


def _binds(step: Step) -> frozenset[str]:
    """Names that a test leaves to later tests."""
    return _bound(step.source) if step.role is Role.test else frozenset()


@functools.lru_cache(maxsize=1000)
def _bound(source: str) -> frozenset[str]:
    tree = bindings.parse(source)  # 30 ms, and the same for every student
    return frozenset(bindings.bound(tree)) if tree else frozenset()
