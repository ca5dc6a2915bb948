"""The words of the gate: what it found in an assignment, and what became of the wrong answers that it tried.

Comes in: nothing. Goes out: frozen records that the course room, the runs and the page share. Must not: import anything but
the record library and `records`, or decide what refuses a release beyond what a level says.
"""

from __future__ import annotations

from enum import Enum

from graders.records import Record


class Level(str, Enum):
    """`error` refuses the release; `warning` asks a person to look."""

    error = "error"
    warning = "warning"


class Finding(Record):
    """One sentence about one place. `rule` is its group and name, as in `seal: forged helper`; `line` counts from 1 in the cell."""

    rule: str
    level: Level
    notebook: str
    cell: str
    line: int | None
    text: str

    @property
    def group(self) -> str:
        """The group of rules it belongs to."""
        return self.rule.partition(":")[0]

    @property
    def where(self) -> str:
        """Notebook, cell and line, as far as there are any."""
        line = f", line {self.line}" if self.line else ""
        return ", ".join(filter(None, (self.notebook, f"cell {self.cell}" if self.cell else ""))) + line


class CheckFigures(Record):
    """What one check did to the wrong answers of its exercise. `alone` counts those that no other check noticed."""

    exercise: str
    title: str
    killed: int
    alone: int


class Survivor(Record):
    """A wrong answer that got full marks. `reason` says why it is no wrong answer, when the course explains it."""

    exercise: str
    cell: str
    what: str
    diff: str
    reason: str = ""


class ExerciseFigures(Record):
    """How many wrong answers of one exercise were tried, and how many of them lost points."""

    exercise: str
    tried: int
    killed: int
    equivalent: int


class Gate(Record):
    """What the gate came to. `ran` says for each group what was looked at, in words; `score` is None without mutants."""

    assignment: str
    sha256: str
    started: str
    ran: dict[str, str]
    findings: tuple[Finding, ...] = ()
    exercises: tuple[ExerciseFigures, ...] = ()
    checks: tuple[CheckFigures, ...] = ()
    survivors: tuple[Survivor, ...] = ()

    @property
    def refused(self) -> tuple[Finding, ...]:
        """The findings for which a release is refused."""
        return tuple(one for one in self.findings if one.level is Level.error)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings at which a person should look."""
        return tuple(one for one in self.findings if one.level is Level.warning)

    @property
    def score(self) -> float | None:
        """Killed mutants per mutant that is really wrong: those explained as equivalent are left out."""
        wrong = sum(one.tried - one.equivalent for one in self.exercises)
        return sum(one.killed for one in self.exercises) / wrong if wrong else None
