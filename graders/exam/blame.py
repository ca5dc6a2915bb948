"""Which cell is to blame when a candidate dies, and which cells are not run again in the next one.

Comes in: cells that ran, and an experiment. Goes out: cells. Must not: let an honest cell pay for one that kills late, by a
thread, a timer or a callback.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from graders.coursework import Role
from graders.exam.plan import Step

_MOST_TRIED = 8  # cells that are tried alone after one death; an experiment takes some tenths of a second
_LATER_S, _LONGEST_S = 0.5, 10.0

Dies = Callable[[Sequence[Step], float], bool]
"""Whether a new candidate dies that runs the author's cells and these, at once or within so many seconds of the last."""


class Blame:
    """What is known about the cells of one notebook."""

    def __init__(self) -> None:
        self._killers: set[int] = set()
        self._hung: set[int] = set()
        self._begun: dict[int, float] = {}

    def begins(self, step: Step) -> None:
        """A cell begins to run."""
        self._begun[step.position] = time.monotonic()

    def hung(self, step: Step) -> None:
        """A cell that did not end by itself is not run again, unless it is the author's."""
        if not step.author:
            self._hung.add(step.position)

    def left_out(self, step: Step) -> bool:
        """Whether a new candidate does without this cell."""
        return step.position in self._killers | self._hung

    def against(self, step: Step) -> None:
        """Blame this cell: no other candidate runs it."""
        self._killers.add(step.position)

    def at(self, step: Step, before: Sequence[Step], dies: Dies) -> Step:
        """The cell that killed the candidate while `step` ran. A cell of the instructor does not kill."""
        students = self._students(before)
        if not step.author and (not students or dies([step], 0.0)):
            return step
        if step.role is Role.test:
            return self.late(before, dies) or step
        return self.late(before, dies, step) or (students[-1] if step.author and students else step)

    def late(self, before: Sequence[Step], dies: Dies, during: Step | None = None) -> Step | None:
        """The cell among `before` that kills a while after it ended, or the next cell (`during`); None when none does.

        It is found by running each alone, which an experiment with all of them comes before.
        """
        students, now, then = self._students(before), time.monotonic(), [during] if during else []
        ago = {one.position: min(_LONGEST_S, now - self._begun.get(one.position, now) + _LATER_S) for one in students}
        if not students or not dies([*students, *then], ago[students[-1].position]):
            return None
        for one in students[::-1][:_MOST_TRIED]:
            if dies([one, *then], ago[one.position]):
                return one
        return None

    def _students(self, steps: Sequence[Step]) -> list[Step]:
        return [one for one in steps if not one.author and not self.left_out(one)]
