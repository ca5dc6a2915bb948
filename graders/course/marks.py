"""Rules about what carries points: each cell has an id of its own, and the points of its checks are those of the cell.

Comes in: cells. Goes out: findings. Must not: run a cell.
"""

from __future__ import annotations

import ast
from decimal import Decimal

from graders.coursework import Assignment, ReleasedCell, Role
from graders.exam.bindings import parse
from graders.findings import Finding, Level


def say(rule: str, cell: ReleasedCell, line: int | None, text: str, level: Level = Level.error) -> Finding:
    """A finding of this room about one cell."""
    return Finding(f"seal: {rule}", level, cell.notebook, cell.id or f"number {cell.position}", line, text)


def points(cell: ReleasedCell) -> list[Finding]:
    """Points of checks against those of the cell, where the text alone says what they are."""
    tree = parse(cell.source)
    calls = [] if tree is None else [one for one in _checks(tree) if one is not None]
    if tree is None or not calls or len(calls) != len(_checks(tree)):
        return []
    total = sum(calls, Decimal(0))
    text = f"the checks of this cell are worth {total} points and the cell {cell.points}. Make the two the same."
    return [say("points", cell, None, text)] if total != cell.points else []


def _checks(tree: ast.Module) -> list[Decimal | None]:
    """Points of the checks that the cell opens at its own level; None for one that only a run can tell."""
    found: list[Decimal | None] = []
    plain = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        calls = [one.context_expr for one in node.items] if isinstance(node, ast.With) else []
        for call in calls:
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "check":
                given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "points")]
                literal = given[0] if given else ast.Constant(1)
                known = isinstance(literal, ast.Constant) and isinstance(literal.value, (int, float))
                direct = known and id(node) in plain
                found.append(Decimal(str(literal.value)) if direct and isinstance(literal, ast.Constant) else None)
    return found


def repeated_ids(assignment: Assignment) -> list[Finding]:
    """Graded and answer cells without an id, or with one that another cell of the assignment has."""
    first: dict[str, ReleasedCell] = {}
    found = []
    for cell in (cell for cells in assignment.notebooks.values() for cell in cells):
        if cell.id is None:
            if cell.role is not Role.plain:
                text = f"this {cell.role.value} cell has no grade_id. Give it one in JupyterLab's “Create Assignment” panel."
                found.append(say("no id", cell, None, text))
            continue
        other = first.setdefault(cell.id, cell)
        if other is not cell:
            text = (
                f"the grade_id {cell.id!r} is also that of cell {other.position} of {other.notebook}. "
                "Ids are unique over all notebooks of an assignment: rename one."
            )
            found.append(say("repeated id", cell, None, text))
    return found
