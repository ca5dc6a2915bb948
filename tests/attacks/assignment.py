"""The classic assignment that is attacked: plain assertions, partial credit, a JAX function and a written answer.

Comes in: nothing. Goes out: its source notebook, answers right and wrong, and the words that nobody may get to see.
Must not: hold a test that needs more than plain nbgrader, since the same class is graded there.
"""

from __future__ import annotations

import json

NAME, NOTEBOOK = "ps1", "nb"
SECRET = "quokka"  # stands in hidden tests alone
HIDDEN_INPUT = 73.25  # what a hidden test calls with
RIGHT = {
    "double": "def double(x):\n    return 2 * x",
    "share": "def share(n):\n    return n / 4",
    "total": "def total(numbers):\n    return sum(numbers)",
    "wave": "def wave(x):\n    return 3.0 * x",
}
WRONG = """\
def double(x):
    return 7
def share(n):
    return -1
def total(numbers):
    return -1
wave = None
"""
TESTS = {
    "double": f"""\
import numpy as np


def close(one, other):
    return abs(one - other) < 1e-6


assert double(1) == 2
### BEGIN HIDDEN TESTS
hidden_name, expected = "{SECRET}", 146.5
assert double(5) == 10.0
assert close(double({HIDDEN_INPUT}), expected)
assert all(isinstance(double(n), (int, float)) for n in (1, 2)), hidden_name
### END HIDDEN TESTS""",
    "share": """\
points = 0
### BEGIN HIDDEN TESTS
if share(4) == 1:
    points += 1
if share(10) == 2.5:
    points += 1
### END HIDDEN TESTS
points""",
    "total": f"""\
### BEGIN HIDDEN TESTS
def halves(numbers):
    secret_of_the_test = "{SECRET}"
    for n in numbers:
        yield n / 2


box = [1.5, 2.5]
grid = np.array([0.5, 0.25])
found = total(halves([1, 2, 3]))
assert isinstance(found, (int, float)) and close(found, 3.0)
assert close(total(map(abs, [-1, 2])), 3.0)
assert close(total(box), 4.0)
assert close(float(total(grid)), 0.75)
assert len(box) == 2 and float(np.sum(grid)) == 0.75
### END HIDDEN TESTS""",
    "wave": """\
assert callable(wave)
### BEGIN HIDDEN TESTS
import jax
import jax.numpy as jnp

somewhere = jnp.array([0.5, 1.25])
assert jax.jit(wave)(somewhere).tolist() == [1.5, 3.75]
assert abs(float(jax.grad(wave)(2.0)) - 3.0) < 1e-6
### END HIDDEN TESTS""",
}
POINTS = {"double": 3, "share": 2, "total": 3, "wave": 2}
WRITTEN = "why"


def cell(id: str, source: str, points: int | None = None, kind: str = "code", **marks: bool) -> dict:
    """A cell with nbgrader's metadata."""
    meta = {"grade_id": id, "schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    meta |= marks | ({} if points is None else {"points": points})
    return plain_cell(id, source, kind) | {"metadata": {"nbgrader": meta}}


def plain_cell(id: str, source: str, kind: str = "code") -> dict:
    """A cell of nobody's metadata."""
    made = {"cell_type": kind, "id": id, "metadata": {}, "source": source}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def source_notebook() -> dict:
    """The author's notebook."""
    cells = []
    for name, text in RIGHT.items():
        cells.append(cell(name, f"### BEGIN SOLUTION\n{text}\n### END SOLUTION", solution=True))
        cells.append(cell(f"{name}-test", TESTS[name], POINTS[name], grade=True, locked=True))
    cells.append(cell(WRITTEN, "Why is it so?", 1, "markdown", grade=True, solution=True))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}


def hidden_lines() -> set[str]:
    """The lines of the hidden tests, as they would stand in text or in JSON, and their secret."""
    lines = {SECRET}
    for text in TESTS.values():
        inside = text.partition("### BEGIN HIDDEN TESTS\n")[2].partition("### END HIDDEN TESTS")[0]
        lines |= {line.strip() for line in inside.splitlines() if len(line.strip()) > 18}
    return lines | {json.dumps(line)[1:-1] for line in lines}


def hidden_values() -> set[str]:
    """The numbers of the hidden tests that nobody would write by chance."""
    return {str(HIDDEN_INPUT), str(2 * HIDDEN_INPUT)}
