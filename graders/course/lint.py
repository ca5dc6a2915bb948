"""Rules that the text of an assignment must keep so that its tests can be examined from outside.

Comes in: an `Assignment`. Goes out: findings. Must not: run a cell; every rule reads the author's source alone.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence

from graders.course import markers, marks, stability
from graders.coursework import ANSWERS, Assignment, ReleasedCell, Role, module_of
from graders.exam.bindings import bound, parse, read
from graders.exam.ownership import owners
from graders.findings import Finding, Level
from graders.records import Record

_SHELL = {"get_ipython", "display", "In", "Out", "exit", "quit", "_", "__", "___", "_i", "_ih", "_oh"}
_ANYWHERE = {"seal: no Python", "seal: nowhere", "seal: unknown to students"}  # true of tests in the kernel too
_COMPARING = re.compile(r"(expect|assert_\w+|assert[A-Z]\w*|allclose|isclose|array_equal|array_equiv)$")


def lint(assignment: Assignment, sealed: bool = True) -> list[Finding]:
    """Everything that can be said about an assignment without running it; `sealed` is whether tests run apart."""
    found = marks.repeated_ids(assignment)
    texts = {path: data.decode(errors="replace") for path, data in assignment.files.items() if path.endswith(".py")}
    for path, text in (texts | {path: one.source for path, one in assignment.answer_files.items()}).items():
        found += markers.of_text(text, path, "")
    for cells in assignment.notebooks.values():
        for cell in cells:
            found += markers.of_cell(cell)
        found += [
            one for one in seal(cells, assignment.modules(), assignment.answer_files) if sealed or one.rule in _ANYWHERE
        ]
        for cell in _tests(cells):
            found += marks.points(cell)
            found += stability.unstable(cell)
    return found


class _Known(Record):
    """What the cells before a test bind: roles of those that bind a name, and whether `import *` hides what there is."""

    binders: dict[str, set[Role]]
    shown: set[str]
    anything: bool


def seal(cells: Sequence[ReleasedCell], modules: Iterable[str], answer_files: Iterable[str] = ()) -> list[Finding]:
    """What cannot work, or proves nothing, once tests run in a process of their own. Cells of one notebook, in order.

    `modules` are names of the assignment's Python files, `answer_files` those that students complete.
    """
    names = owners(cells, modules)
    answered = {module_of(path) for path in answer_files}
    binders: dict[str, set[Role]] = {}
    shown: set[str] = set()
    anything = False
    found: list[Finding] = []
    for position, cell in enumerate(cells):
        shown |= set(re.findall(r"\w+", cell.released))
        tree = parse(cell.source) if cell.cell_type == "code" else None
        if tree is None:
            found += _not_python(cell)
            continue
        if cell.role is Role.test and cell.id:
            known = _Known({name: set(roles) for name, roles in binders.items()}, shown, anything)
            candidate = set(names[cell.id].candidate)
            found += [
                *_unreachable(cell, tree, candidate, known),
                *_judged_with(cell, tree, candidate, known),
                *_taken_away(cell, tree, known),
                *_needed_later(cell, tree, cells[position + 1 :], known),
            ]
        anything = anything or "import *" in ast.unparse(tree)
        for name in bound(tree):
            binders.setdefault(name, set()).add(Role.answer if name in answered else cell.role)
    return found


def _tests(cells: Iterable[ReleasedCell]) -> list[ReleasedCell]:
    return [cell for cell in cells if cell.role is Role.test and cell.cell_type == "code"]


def _line(tree: ast.AST, name: str) -> int | None:
    """The first line that names `name`."""
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    return min(lines, default=None)


def _not_python(cell: ReleasedCell) -> list[Finding]:
    text = "this test cell is not Python, so it cannot run. Mend its syntax."
    return [marks.say("no Python", cell, None, text)] if _tests([cell]) else []


def _unreachable(cell: ReleasedCell, tree: ast.Module, candidate: set[str], known: _Known) -> list[Finding]:
    """Names that a test reads and that are nowhere, are the notebook shell's, or that no student can know of."""
    found = []
    wanted = [name for name in read(tree) if not hasattr(builtins, name) or name in _SHELL]
    for name in wanted:
        line = _line(tree, name)
        if name in _SHELL and name not in known.binders:
            what = (
                "a magic or shell command" if name == "get_ipython" and line and name not in cell.source else repr(name)
            )
            text = (
                f"this test uses {what}, which exists in a notebook's shell only; a test runs outside of it. "
                "Write it in plain Python, with what it needs in this cell."
            )
            found.append(marks.say("shell", cell, line, text))
        elif name not in known.binders and not known.anything:
            text = (
                f"this test reads {name!r}, which no cell before it binds. Define it in this cell before it is used, or "
                "ask for it in an answer cell above."
            )
            found.append(marks.say("nowhere", cell, line, text))
        elif name in candidate and name not in known.shown | set(re.findall(r"\w+", cell.released)):
            text = (
                f"this test reads {name!r}, which only the solution binds: no text that students receive up to here names it, "
                "so nobody could write it. Name it in the task or in the answer cell's visible text."
            )
            found.append(marks.say("unknown to students", cell, line, text))
    return found


def _judged_with(cell: ReleasedCell, tree: ast.Module, candidate: set[str], known: _Known) -> list[Finding]:
    """Names of locked cells in this test: an error where they decide, a warning where they are only read."""
    locked = {name for name in candidate if known.binders.get(name, set()) & {Role.locked, Role.plain}}
    locked -= {name for name in locked if known.binders[name] & set(ANSWERS)}
    answered = {name for name in candidate if known.binders.get(name, set()) & set(ANSWERS)}
    deciding = {name: line for name, line in _deciding(tree, answered) if name in locked}
    found = []
    for name in sorted(locked):
        where = "is bound by a locked cell, which runs in the student's process and can be replaced there"
        if name in deciding:
            text = f"this test judges with {name!r}, which {where}. Define {name} in this test cell instead."
            found.append(marks.say("forged", cell, deciding[name], text))
        else:
            text = f"this test reads {name!r}, which {where}. That is right if {name} is what is judged; else define it here."
            found.append(marks.say("locked read", cell, _line(tree, name), text, Level.warning))
    return found


def _deciding(tree: ast.Module, answered: set[str]) -> list[tuple[str, int]]:
    """Names that are called, or stand in a wanted value: the right side of a comparison, or its side without an answer."""
    parts: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            parts += [node.func] if isinstance(node.func, ast.Name) else []
            if _COMPARING.search(ast.unparse(node.func)):
                parts += [*node.args[1:2], *(one.value for one in node.keywords if one.arg in ("wanted", "desired"))]
        elif isinstance(node, ast.Compare):
            left = _loads(node.left)
            right = {name for one in node.comparators for name in _loads(one)}
            parts += [node.left] if right & answered and not left & answered else []
            parts += node.comparators
    return [(name, part.lineno) for part in parts for name in _loads(part) if isinstance(part, ast.expr)]


def _loads(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _taken_away(cell: ReleasedCell, tree: ast.Module, known: _Known) -> list[Finding]:
    """An answer's name that a test deletes or binds anew: in the student's process it stays as it is."""
    deleted = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Delete)
        for target in node.targets
        for name in _loads(target)
        if isinstance(target, ast.Name)
    }
    found = []
    for name in sorted(deleted | bound(tree)):
        if Role.answer not in known.binders.get(name, set()):
            continue
        gone = name in deleted
        text = (
            f"this test {'deletes' if gone else 'binds'} {name!r}, a name of an answer. That does not reach the student's "
            f"process: functions there still see their own {name}. "
            + ("Test what the answer does instead, " if gone else "Take another name, ")
            + 'or set c.Graders.examine = "kernel" for this course.'
        )
        found.append(marks.say("taken away", cell, _line(tree, name), text, Level.error if gone else Level.warning))
    return found


def _needed_later(cell: ReleasedCell, tree: ast.Module, later: Sequence[ReleasedCell], known: _Known) -> list[Finding]:
    """Names that a test binds and a later cell that is no test reads: tests do not run where that cell runs."""
    own = bound(tree) - set(known.binders)
    found = []
    for other in later:
        text = parse(other.source) if other.cell_type == "code" and other.role is not Role.test else None
        if text is None:
            continue
        for name in sorted(own & set(read(text))):
            told = (
                f"this test binds {name!r}, which cell {other.id or f'number {other.position}'} needs; a test does not run in the "
                f"student's process, so the name is missing there. Bind {name} in that cell, or in a locked cell before it."
            )
            found.append(marks.say("needed later", cell, _line(tree, name), told))
        own -= bound(text)
    return found
