"""Seal a submission: from what was released and what was handed in, the steps of the examination in released order.

Comes in: an `Assignment` and a `Submission`. Goes out: an `ExamPlan`, one `NotebookPlan` a notebook. Must not: let a
student's text stand where the instructor's belongs; each repair is a flag in plain words.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from graders.course import repairs
from graders.course.alignment import binds, squeeze
from graders.coursework import ANSWERS, Assignment, ReleasedCell, Role, Submission, SubmittedCell
from graders.exam import habits
from graders.exam.belongings import belongings
from graders.exam.bindings import bound, parse, plain_python
from graders.exam.grouping import TOP, Group, grouped
from graders.exam.ownership import Names, owners
from graders.records import Flag, Record, Shown

_BEGIN = re.compile(r"^\s*#+\s*BEGIN HIDDEN TESTS\s*$", re.MULTILINE)
_MOST_COMPARED = 500  # cells that are read as Python to find out what is defined in them
_END = re.compile(r"^\s*#+\s*END HIDDEN TESTS\s*$", re.MULTILINE)


class Segment(Record):
    """A stretch of a test that runs as one: the visible text, or a hidden region."""

    source: str
    hidden: bool
    line: int


class Step(Record):
    """One cell of the examination. `author` says whose text `source` is; `names` and `segments` are a test's."""

    position: int
    cell_type: str
    source: str
    author: bool
    role: Role
    id: str | None = None
    names: Names | None = None
    segments: tuple[Segment, ...] = ()


class NotebookPlan(Record):
    """The steps of one notebook. `answers` are the submitted texts of answer and written cells by grade_id, `shown` what they showed."""

    name: str
    steps: tuple[Step, ...]
    answers: dict[str, str]
    shown: dict[str, Shown] = {}  # noqa: RUF012  (msgspec copies defaults)


class ExamPlan(Record):
    """What will be done with one submission. `files` is all that the candidate's private folder gets."""

    student: str
    assignment: str
    notebooks: tuple[NotebookPlan, ...]
    files: dict[str, bytes]
    course_files: dict[str, bytes]
    flags: tuple[Flag, ...]


def seal(assignment: Assignment, submission: Submission) -> ExamPlan:
    """Make the plan. Notebooks that were not handed in are planned as released: nothing in them was attempted."""
    flags = list(submission.flags)
    plans = []
    for name, cells in assignment.notebooks.items():
        handed_in = submission.notebooks.get(name)
        if handed_in is None:
            handed_in = tuple(SubmittedCell(cell.cell_type, cell.released, cell.id) for cell in cells)
        plans.append(_plan(name, cells, handed_in, flags, assignment.modules()))
    files, notes = belongings(assignment, submission)
    return ExamPlan(
        submission.student,
        assignment.name,
        tuple(plans),
        files,
        assignment.files,
        tuple(dict.fromkeys([*flags, *notes])),
    )


def answers(assignment: Assignment, sealed: ExamPlan) -> dict[str, str]:
    """The text of each answer that was handed in, by its grade_id, or by its path where it is a file."""
    found = {identity: text for one in sealed.notebooks for identity, text in one.answers.items()}
    missing = {flag.cell for flag in sealed.flags if flag.name == "answer_missing"}
    files = [path for path in assignment.answer_files if path in sealed.files and path not in missing]
    return found | {path: sealed.files[path].decode(errors="replace") for path in files}


def segments(source: str) -> tuple[Segment, ...]:
    """Split a test at its hidden regions; one segment when the parts do not stand alone as Python."""
    plain = plain_python(source)
    cuts = sorted([(m.end(), True) for m in _BEGIN.finditer(plain)] + [(m.end(), False) for m in _END.finditer(plain)])
    parts, start, hidden = [], 0, False
    for end, opens in [*cuts, (len(plain), False)]:
        text = plain[start:end]
        if text.strip():
            parts.append(Segment(text, hidden, plain.count("\n", 0, start)))
        start, hidden = end, opens
    try:
        for part in parts:
            ast.parse(part.source)
    except SyntaxError:
        return (Segment(plain, bool(cuts), 0),)
    return tuple(parts)


class Tests(Record):
    """What follows from the author's cells alone, for every test of a notebook: its names and its segments."""

    names: dict[str, Names]
    segments: dict[str, tuple[Segment, ...]]


@functools.lru_cache(maxsize=64)
def _tests(cells: tuple[ReleasedCell, ...], modules: tuple[str, ...]) -> Tests:
    tests = [cell for cell in cells if cell.role is Role.test and cell.cell_type == "code" and cell.id]
    return Tests(owners(cells, modules), {cell.id or "": segments(cell.source) for cell in tests})


def _plan(
    name: str,
    cells: tuple[ReleasedCell, ...],
    handed_in: Sequence[SubmittedCell],
    flags: list[Flag],
    modules: tuple[str, ...],
) -> NotebookPlan:
    groups = grouped(cells, handed_in, flags)
    tests = _tests(cells, modules)
    answers: dict[str, list[str]] = {}
    shown: dict[str, Shown] = {}
    steps: list[Step] = []

    def add(source: str, role: Role, cell_type: str, author: bool, id: str | None = None) -> None:
        parts = tests.segments.get(id or "", ()) if role is Role.test else ()
        owned = tests.names.get(id or "") if role is Role.test else None
        steps.append(Step(len(steps), cell_type, source, author, role, id, owned, parts))

    for text in groups[TOP].extras:
        add(text.source, Role.plain, text.cell_type, False)
    for place, cell in enumerate(cells):
        group = groups.get(place, Group([], []))
        if cell.id is None and place not in groups and _is_missed(cell, handed_in):
            add(cell.released, Role.plain, cell.cell_type, True)
            flags.append(repairs.set_up_missing(cell))
        elif cell.id is None or cell.role in (*ANSWERS, Role.task):
            for text in repairs.without_untouched_copies(cell, group.own) if cell.id else group.own:
                if cell.id:
                    answers.setdefault(cell.id, []).append(text.source)
                    shown |= {cell.id: text.shown} if text.shown else {}
                add(text.source, cell.role, cell.cell_type, False, cell.id)
        else:
            own_text = cell.source if cell.role is Role.test else cell.released
            add(own_text, cell.role, cell.cell_type, True, cell.id)
        for text in group.extras:
            add(text.source, Role.plain, text.cell_type, False)
    flags += _defined_below(cells, steps)
    code = [step for step in steps if step.cell_type == "code"]
    flags += habits.notes((one.source for one in code if not one.author), (cell.source for cell in cells))
    kept = _without_undoing_stubs(cells, steps, flags)
    return NotebookPlan(name, kept, {identity: "\n".join(texts) for identity, texts in answers.items()}, shown)


def _is_missed(cell: ReleasedCell, handed_in: Sequence[SubmittedCell]) -> bool:
    """S3: whether an open code cell of the author's is gone and nothing handed in binds any of its names instead."""
    tree = parse(cell.released) if cell.cell_type == "code" else None
    names = bound(tree) if tree else set()
    if not names or len(handed_in) > _MOST_COMPARED:
        return False
    trees = (parse(one.source) for one in handed_in if one.cell_type == "code")
    return not any(tree and names & bound(tree) for tree in trees)


def _without_undoing_stubs(cells: Sequence[ReleasedCell], steps: Sequence[Step], flags: list[Flag]) -> tuple[Step, ...]:
    """S11: the steps without stubs that define again what a student's cell above them has defined."""
    known = {cell.id: cell for cell in cells if cell.role is Role.answer}
    asked = Counter(name for cell in known.values() for name in binds(cell.released) | binds(cell.source))
    kept: list[Step] = []
    defined = set[str]()
    for step in steps:
        cell = known.get(step.id) if step.id else None
        names = binds(step.source) if step.cell_type == "code" and not step.author else set()
        if cell and names and repairs.untouched(cell, SubmittedCell(step.cell_type, step.source)):
            # a name that two exercises ask for may be meant to be defined anew
            if names <= defined and all(asked[name] == 1 for name in names):
                flags.append(repairs.answered_above(cell))
                continue
        else:
            defined |= names
        kept.append(msgspec.structs.replace(step, position=len(kept)))
    return tuple(kept)


def _defined_below(cells: Sequence[ReleasedCell], steps: Sequence[Step]) -> list[Flag]:
    """S10: names that a test reads, that nothing above it binds but a stub, and that a new cell below it does."""
    stubs = {cell.id: squeeze(cell.released) for cell in cells if cell.id and cell.role is Role.answer}
    found = [
        set[str]()
        if step.cell_type != "code" or squeeze(step.source) == stubs.get(step.id or "")
        else binds(step.source)
        for step in steps
    ]
    below = Counter(name for step, names in zip(steps, found, strict=True) if step.role is Role.plain for name in names)
    flags, above = [], set[str]()
    for step, names in zip(steps, found, strict=True):
        if step.role is Role.plain:
            below.subtract(names)
        wanted = set(step.names.candidate) - above if step.names else set()
        if late := {name for name in wanted if below[name] > 0}:
            flags.append(repairs.defined_below(step.id, late))
        above |= names
    return flags
