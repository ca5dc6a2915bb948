"""What happened in one examination, as records: before anybody judges it.

Comes in: nothing. Goes out: how cells and tests ended, and the checks as the examiner saw them. Must not: hold behaviour
beyond the name of a cell.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum

from graders.compilations import Compilation
from graders.records import Flag, Outcome, Place, Record


def name_of(position: int) -> str:
    """The name of a cell, by its place in the plan: `cell 1` is the first. The code of a cell bears it in the candidate."""
    return f"cell {position + 1}"


class Ended(str, Enum):
    """How the run of one cell or one test ended. The first two are ordinary; the others cost the exercise."""

    ok = "ok"
    error = "error"
    timeout = "timeout"
    died = "died"
    memory = "memory"
    budget = "budget"
    examiner_lost = "examiner_lost"
    names_lost = "names_lost"
    forged = "forged"


class Problem(Record):
    """An exception as text: class name, message and a plain-text traceback. Staff only unless a rule says otherwise."""

    name: str
    message: str
    traceback: str = ""


class CellRun(Record):
    """What happened when the candidate ran one code cell.

    `outputs` are nbformat 4 output dictionaries. `after_hidden` is true once a hidden test has called student code: what
    such a cell prints may quote hidden tests, so it is for staff only. `reason` is a sentence when `ended` is not ok/error.
    """

    position: int
    id: str | None
    ended: Ended
    outputs: tuple[dict[str, object], ...] = ()
    problem: Problem | None = None
    reason: str | None = None
    after_hidden: bool = False
    seconds: float = 0.0
    notebook: str = ""


class RawCheck(Record):
    """One `with check(...)` block as the examiner saw it, before scoring."""

    title: str
    points: Decimal
    outcome: Outcome
    hint: str | None = None
    misconception: str | None = None
    message: str | None = None
    expected: str | None = None
    actual: str | None = None


class TestRun(Record):
    """What happened when the examiner ran one test cell.

    `value` is the text of the last expression, `number` its exact value when it is a finite real number.
    `output` is what the test and the student code called by it printed: staff only.
    """

    __test__ = False  # a record, not a pytest class

    id: str
    ended: Ended
    checks: tuple[RawCheck, ...] = ()
    problem: Problem | None = None
    value: str | None = None
    number: Decimal | None = None
    output: str = ""
    reason: str | None = None
    seconds: float = 0.0


class Run(Record):
    """One examination, as it happened: candidate cells and tests in released order.

    `cpu_s` is of all its processes; `peak_bytes` is the most resident memory of its candidate.
    """

    cells: tuple[CellRun, ...]
    tests: tuple[TestRun, ...]
    flags: tuple[Flag, ...] = ()
    places: tuple[Place, ...] = ()
    phases_s: dict[str, float] = {}  # noqa: RUF012  (msgspec copies defaults)
    cpu_s: float = 0.0
    restarts: int = 0
    peak_bytes: int = 0
    compilation: Compilation | None = None
    compile_s: dict[str, float] = {}  # noqa: RUF012  (the same)
