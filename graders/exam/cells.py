"""The cells of one notebook, run in a candidate that is replaced when one of them ends it.

Comes in: a `NotebookPlan`, a `Pair`, a deadline. Goes out: a `CellRun` for each cell. Must not: run a test but where tests run in
the kernel, or let a cell that kills or never ends cost another cell anything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from graders.coursework import Role
from graders.errors import InfrastructureError
from graders.exam import inkernel
from graders.exam.blame import Blame
from graders.exam.pair import Conditions, Pair
from graders.exam.plan import NotebookPlan, Step
from graders.exam.sentences import sentence
from graders.kernels.client import CellEnd
from graders.runs import CellRun, Ended, name_of

_LEAST_S = 0.1


class Cells:
    """What became of the cells so far. `after_hidden` says that a hidden test has called student code."""

    def __init__(self, notebook: NotebookPlan, conditions: Conditions, pair: Pair, deadline: float) -> None:
        self._notebook = notebook
        self._conditions = conditions
        self._pair = pair
        self._deadline = deadline
        self._blame = Blame()
        self.runs: dict[int, CellRun] = {}
        self.phases: dict[str, float] = {}
        self.restarts = 0
        self.after_hidden = False

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the wall seconds of what stands below under a name."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - begun

    @property
    def over(self) -> bool:
        """Whether the time of the submission is used up."""
        return time.monotonic() >= self._deadline

    @property
    def late(self) -> Ended:
        """Which time it is that something used up."""
        return Ended.budget if self.over else Ended.timeout

    def left_s(self) -> float:
        """Wall seconds that the next cell or test may take."""
        return max(_LEAST_S, min(self._conditions.cell_timeout_s, self._deadline - time.monotonic()))

    def run(self, step: Step) -> None:
        """Run a cell, in a new candidate if there is none."""
        if self.over:
            self.runs[step.position] = self._told(step, Ended.budget)
            return
        self.revive(step)
        with self.phase("cells"):
            end, blameless = self.execute(step)
        if blameless:
            self.run(step)
            return
        self.runs[step.position] = self._told(step, end.ended, end)

    def execute(self, step: Step) -> tuple[CellEnd, bool]:
        """Run a cell in the candidate that is there; (how it ended, whether another cell is to blame for that)."""
        self._blame.begins(step)
        end = self._pair.run(step.source, self.left_s(), name_of(step.position))
        if end.ended is Ended.timeout:
            self._blame.hung(step)
            if self.over:
                end = msgspec.structs.replace(end, ended=Ended.budget)
        if end.alive:
            return end, False
        blamed = step
        if end.ended in (Ended.died, Ended.memory):
            blamed = self._blame.at(step, self._ran(step.position), self._dies)
        self._accuse(blamed, end.ended, end.stack)
        return end, blamed is not step

    def revive(self, before: Step) -> None:
        """A new candidate that has run the cells before `before`, but for those that killed one or never ended.

        Raises:
            InfrastructureError: it dies although no cell kills.
        """
        while not self._pair.alive:
            self.restarts += 1
            self._start()
            with self.phase("replay"):
                for step in self._ran(before.position):
                    if not self._blame.left_out(step) and not self.execute(step)[0].alive:
                        break
                else:
                    if not self._pair.lives(0.0) and not self.accuse_late(before):
                        raise InfrastructureError("A candidate ended by itself, and none of its cells did that.")

    def accuse_late(self, before: Step) -> bool:
        """Find the cell before `before` that ended the candidate after it was done; whether there is one."""
        blamed = self._blame.late(self._ran(before.position), self._dies)
        if blamed is not None:
            self._accuse(blamed, Ended.died)
        return blamed is not None

    def _accuse(self, blamed: Step, ended: Ended, stack: str = "") -> None:
        """Say at the cell that was blamed, if it ran before, how it ended the candidate."""
        self._blame.against(blamed)
        if blamed.position in self.runs:
            told = {"ended": ended, "reason": sentence(ended, self._conditions, stack=stack)}
            self.runs[blamed.position] = msgspec.structs.replace(self.runs[blamed.position], **told)

    def _dies(self, suspects: Sequence[Step], within_s: float) -> bool:
        """Whether a new candidate dies that runs the author's cells and these, at once or so many seconds after the last began."""
        if self.over:
            return False
        self._start()
        with self.phase("replay"):
            begun = time.monotonic()
            for step in self._ran(suspects[-1].position + 1):
                if step.author or step in suspects:
                    begun = time.monotonic()
                    if not self._pair.run(step.source, self.left_s(), name_of(step.position)).alive:
                        return True
            lives = self._pair.lives(min(self.left_s(), begun + within_s - time.monotonic()))
            self._pair.end_candidate()
        return not lives

    def _start(self) -> None:
        with self.phase("start"):
            self._pair.start()

    def _ran(self, end: int) -> list[Step]:
        """The steps before `end` that run in the candidate."""
        tests = not self._conditions.sealed
        code = [one for one in self._notebook.steps[:end] if one.cell_type == "code"]
        return [one for one in code if tests or one.role is not Role.test]

    def _told(self, step: Step, ended: Ended, end: CellEnd | None = None) -> CellRun:
        return CellRun(
            position=step.position,
            id=step.id,
            ended=ended,
            outputs=tuple(one for one in end.outputs if not inkernel.shows_checks(one)) if end else (),
            problem=end.problem if end else None,
            reason=sentence(ended, self._conditions, stack=end.stack if end else ""),
            after_hidden=self.after_hidden,
            seconds=end.seconds if end else 0.0,
            notebook=self._notebook.name,
        )
