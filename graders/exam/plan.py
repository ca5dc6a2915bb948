"""Seal a submission: from what was released and what was handed in, the steps of the examination in released order.

Comes in: an `Assignment` and a `Submission`. Goes out: an `ExamPlan`, one `NotebookPlan` a notebook. Must not: let a
student's text stand where the instructor's belongs; each repair is a flag in plain words.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Sequence

from graders.coursework import Assignment, ReleasedCell, Role, Submission, SubmittedCell
from graders.exam.ownership import Names, owners, plain_python
from graders.records import Flag, Record

_BEGIN = re.compile(r"^\s*#+\s*BEGIN HIDDEN TESTS\s*$", re.MULTILINE)
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
    """The steps of one notebook. `answers` are the submitted texts of answer and written cells by grade_id."""

    name: str
    steps: tuple[Step, ...]
    answers: dict[str, str]


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
    modules = [path.removesuffix(".py").partition("/")[0] for path in assignment.files if path.endswith(".py")]
    plans = []
    for name, cells in assignment.notebooks.items():
        handed_in = submission.notebooks.get(name)
        if handed_in is None:
            handed_in = tuple(SubmittedCell(cell.cell_type, cell.released, cell.id) for cell in cells)
        plans.append(_plan(name, cells, handed_in, flags, tuple(modules)))
    flags += _file_flags(assignment, submission)
    files = _files(assignment, submission)
    return ExamPlan(submission.student, assignment.name, tuple(plans), files, assignment.files, tuple(flags))


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
    known = {cell.id: cell for cell in cells if cell.id}
    groups = _groups(known, handed_in, flags)
    tests = _tests(cells, modules)
    answers: dict[str, list[str]] = {}
    steps: list[Step] = []

    def add(source: str, role: Role, cell_type: str, author: bool, id: str | None = None) -> None:
        parts = tests.segments.get(id or "", ()) if role is Role.test else ()
        owned = tests.names.get(id or "") if role is Role.test else None
        steps.append(Step(len(steps), cell_type, source, author, role, id, owned, parts))

    for text in groups[None][1]:
        add(text.source, Role.plain, text.cell_type, False)
    for identity, cell in known.items():
        own, extras = groups.get(identity, ([], []))
        if cell.role in (Role.answer, Role.written, Role.task):
            for text in own:
                answers.setdefault(identity, []).append(text.source)
                add(text.source, cell.role, cell.cell_type, False, identity)
        else:
            own_text = cell.source if cell.role is Role.test else cell.released
            add(own_text, cell.role, cell.cell_type, True, identity)
        for text in extras:
            add(text.source, Role.plain, text.cell_type, False)
    return NotebookPlan(name, tuple(steps), {identity: "\n".join(texts) for identity, texts in answers.items()})


Groups = dict[str | None, tuple[list[SubmittedCell], list[SubmittedCell]]]


def _groups(known: dict[str, ReleasedCell], handed_in: Sequence[SubmittedCell], flags: list[Flag]) -> Groups:
    """Submitted cells by the released cell they belong to: its own copies, and the student's cells that follow it."""
    groups: Groups = {None: ([], [])}
    anchor: str | None = None
    order: list[str] = []
    for text in handed_in:
        if text.id not in known:
            if text.source.strip():
                groups[anchor][1].append(text)
            continue
        cell = known[text.id]
        own, _ = groups.setdefault(text.id, ([], []))
        if own:
            flags.append(_repeated(cell))
        else:
            order.append(text.id)
            flags += _differences(cell, text)
        own.append(text)
        anchor = text.id
    flags += [
        _missing(cell) for identity, cell in known.items() if identity not in groups and cell.role is not Role.plain
    ]
    if order != [identity for identity in known if identity in groups]:
        flags.append(
            Flag("cells_reordered", "Cells stood in another order than released; they were run in the released order.")
        )
    return groups


def _repeated(cell: ReleasedCell) -> Flag:
    if cell.role in (Role.answer, Role.written):
        text = "This answer stood in several cells; they were run in order as one answer."
    else:
        text = "This cell of the instructor stood there more than once; it was run once."
    return Flag("cell_repeated", text, cell.id)


def _differences(cell: ReleasedCell, text: SubmittedCell) -> list[Flag]:
    flags = []
    if cell.role in (Role.test, Role.locked) and _squeeze(text.source) != _squeeze(cell.released):
        flags.append(
            Flag("locked_text_changed", "A cell of the instructor was changed; the released text was used.", cell.id)
        )
    if text.cell_type != cell.cell_type:
        flags.append(
            Flag("cell_type_changed", f"A {cell.cell_type} cell had become {text.cell_type}; it was restored.", cell.id)
        )
    return flags


def _missing(cell: ReleasedCell) -> Flag:
    if cell.role in (Role.answer, Role.written):
        return Flag("answer_missing", "The answer cell is not in the notebook, so there is no answer.", cell.id)
    return Flag("cell_restored", "A cell of the instructor was missing; it was put back in its place.", cell.id)


def _squeeze(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _files(assignment: Assignment, submission: Submission) -> dict[str, bytes]:
    """The student's own files, and the instructor's data as released. Python files of the assignment are the student's."""
    files = {
        path: data
        for path, data in submission.files.items()
        if not _hides_library(path) and not _in_the_way(path, assignment)
    }
    for path, data in assignment.files.items():
        if not (path.endswith(".py") and path in files):
            files[path] = data
    return files


def _hides_library(path: str) -> bool:
    return path.partition("/")[0].removesuffix(".py") in _LIBRARIES | sys.stdlib_module_names


def _in_the_way(path: str, assignment: Assignment) -> bool:
    """Whether a file stands where the instructor has a folder, or in a folder where the instructor has a file."""
    return any(one.startswith(f"{path}/") or path.startswith(f"{one}/") for one in assignment.files)


_LIBRARIES = {"numpy", "jax", "jaxlib", "scipy", "ml_dtypes", "IPython", "ipykernel", "graders"}


def _file_flags(assignment: Assignment, submission: Submission) -> list[Flag]:
    flags = []
    for path, data in submission.files.items():
        if _hides_library(path):
            flags.append(Flag("library_hidden", f"Your file {path} hides the library of that name; it was left out."))
        elif _in_the_way(path, assignment):
            flags.append(
                Flag("data_restored", f"Your file {path} stood where the instructor's data is; it was left out.")
            )
        elif path in assignment.files and not path.endswith(".py") and data != assignment.files[path]:
            flags.append(Flag("data_restored", f"The data file {path} was changed; the instructor's copy was used."))
    for path in assignment.answer_files:
        if path not in submission.files:
            text = f"{path} is not among the files that were handed in, so what it should hold counts as unanswered."
            flags.append(Flag("answer_missing", text, path))
    return flags
