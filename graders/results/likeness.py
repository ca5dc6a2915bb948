"""Answers that are like one another: near-identical ones, for a person to look at, and written ones, to be marked together.

Comes in: the reports of a class, and the assignment. Goes out: groups of students by exercise. Must not: raise a flag or take a
point, compare what was released, count names, layout or comments as a difference, or say who had it from whom.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from graders.coursework import Assignment
from graders.exam.bindings import parse
from graders.records import Record, Report

_LEAST = 200  # characters that a student added: below that honest answers coincide
_ALIKE = 0.95  # share of characters in common, in order
_TOGETHER = 0.75  # share of words in common, in order, of written answers that one reading may mark
_BAGS = 64  # into which characters or words are counted


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


@lru_cache(maxsize=1000)  # what was released is asked for with each answer
def _plain(text: str) -> tuple[str, ...]:
    try:
        tree = _tree(text)
        if tree is not None:
            return tuple(ast.unparse(_without_names(tree)).splitlines())
    except RecursionError:
        pass  # such as a sum of thousands of terms: compared as text
    return tuple(" ".join(line.split()).casefold() for line in text.splitlines() if line.strip())


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)  # IPython's reading of a cell takes as long again
    except (SyntaxError, ValueError, MemoryError):
        return parse(text)


def _without_names(tree: ast.Module) -> ast.Module:
    """A program in which all its own variables and parameters are one, and without docstrings."""
    nodes = list(ast.walk(tree))
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in own:
            node.id = "v"
        elif isinstance(node, ast.arg):
            node.arg = "v"
        for name in ("body", "orelse", "finalbody"):
            if isinstance(inner := getattr(node, name, None), list):
                setattr(node, name, [one for one in inner if not _is_text(one)])
    return tree


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def together(texts: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Written answers by student, as groups that say nearly the same; the largest first, who is alone last."""
    words = {student: tuple(re.findall(r"\w+|[^\w\s]", text.casefold())) for student, text in texts.items()}
    found = [members for members, _ in _clusters(words, _TOGETHER)]
    grouped = {student for members in found for student in members}
    alone = [(student,) for student in sorted(texts) if student not in grouped]
    return tuple(sorted(found, key=lambda one: (-len(one), one))) + tuple(alone)


def _grouped(exercise: str, texts: Mapping[str, str]) -> list[Group]:
    return [Group(exercise, members, round(least, 3)) for members, least in _clusters(texts, _ALIKE)]


def _clusters(texts: Mapping[str, Sequence[str]], alike: float) -> Iterator[tuple[tuple[str, ...], float]]:
    """Those who hang together by a likeness of at least `alike`, two or more, with the least that links them."""
    same: dict[Sequence[str], list[str]] = {}
    for student in sorted(texts):
        same.setdefault(texts[student], []).append(student)
    if not same:
        return
    written = list(same)
    first, second = _candidates(written, alike)
    likeness = process.cpdist(
        [written[one] for one in first], [written[one] for one in second], scorer=Indel.normalized_similarity
    )
    linked = likeness >= alike
    first, second, likeness = first[linked], second[linked], likeness[linked]
    graph = coo_array((likeness, (first, second)), shape=(len(written), len(written)))
    count, labels = connected_components(graph, directed=False)
    least = np.ones(count)
    np.minimum.at(least, labels[first], likeness)
    members: list[list[str]] = [[] for _ in range(count)]
    for label, text in zip(labels, written, strict=True):
        members[label] += same[text]
    yield from ((tuple(sorted(group)), float(least[label])) for label, group in enumerate(members) if len(group) > 1)


def _candidates(written: Sequence[Sequence[str]], alike: float) -> tuple[Any, Any]:
    """The pairs that can be so alike at all. What two texts have in common in order is at most what they have in common in any
    order, and counting that is quick: for a class of 2,000 it leaves a hundredth of the pairs."""
    bags = np.zeros((len(written), _BAGS))
    for row, text in enumerate(written):
        for token, number in Counter(text).items():
            bags[row, hash(token) % _BAGS] += number
    sizes = bags.sum(1)
    apart = cdist(bags, bags, "cityblock") / np.maximum(sizes[:, None] + sizes, 1)
    first, second = np.nonzero(np.triu(1 - apart >= alike - 1e-9, 1))
    return first, second
