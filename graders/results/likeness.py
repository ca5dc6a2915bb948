"""Groups of near-identical answers, for a person to look at; never a flag of a report, never a penalty.

Comes in: the reports of a class, and the assignment. Goes out: groups of students by exercise. Must not: compare what was
released, count names, layout or comments as a difference, or say who had it from whom.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel
from scipy.sparse.csgraph import connected_components

from graders.coursework import Assignment
from graders.exam.bindings import parse
from graders.records import Record, Report

_LEAST = 200  # characters that a student added: below that honest answers coincide
_ALIKE = 0.95  # share of characters in common, in order


class Group(Record):
    """Students whose answers to one exercise are near-identical. `likeness` (0 to 1) links the least alike of them."""

    exercise: str
    students: tuple[str, ...]
    likeness: float


def groups(assignment: Assignment, reports: Sequence[Report]) -> tuple[Group, ...]:
    """The groups of every exercise, the smallest first: what a whole class writes alike is the usual answer."""
    released = {identity: cell.released for identity, cell in assignment.answers_of().items()}
    found: list[Group] = []
    for identity in dict.fromkeys(one.id for report in reports for one in report.exercises):
        texts = {}
        for report in reports:
            for one in report.exercises:
                if one.id == identity and one.attempted:
                    texts[report.student] = own_part(one.answer, [released.get(cell, "") for cell in one.answers])
        found += _grouped(identity, {student: text for student, text in texts.items() if len(text) >= _LEAST})
    return tuple(sorted(found, key=lambda one: (len(one.students), one.exercise, one.students)))


def own_part(answer: str, released: Sequence[str]) -> str:
    """An answer without what was handed out, and without what is easily changed: names, layout, comments, docstrings."""
    given = {line for text in released for line in _plain(text)}
    return "\n".join(line for line in _plain(answer) if line not in given)


def _plain(text: str) -> list[str]:
    tree = parse(text)
    if tree is None:
        return [" ".join(line.split()).casefold() for line in text.splitlines() if line.strip()]
    return ast.unparse(_Plain(tree).visit(tree)).splitlines()


class _Plain(ast.NodeTransformer):
    """A program in which all its own variables and parameters are one, and without docstrings."""

    def __init__(self, tree: ast.Module) -> None:
        self._own = {
            node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        self._own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("v", node.ctx) if node.id in self._own else node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg("v")

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        lone = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if lone else self.generic_visit(node)


def _grouped(exercise: str, texts: Mapping[str, str]) -> list[Group]:
    students = sorted(texts)
    if len(students) < 2:
        return []
    written = [texts[student] for student in students]
    likeness = process.cdist(
        written, written, scorer=Indel.normalized_similarity, score_cutoff=_ALIKE, dtype=np.float32
    )
    _, labels = connected_components(likeness >= _ALIKE, directed=False)
    found = []
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        if len(members) > 1:
            between = likeness[np.ix_(members, members)]
            least = float(between[between >= _ALIKE].min())
            found.append(Group(exercise, tuple(students[one] for one in members), round(least, 3)))
    return found
