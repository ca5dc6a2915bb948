"""The lesson of these tests: one exercise that is judged by its test, one answer in words that a person marks.

Comes in: nothing. Goes out: a source notebook, and what a student makes of the released one. Must not: hold anything but text.
"""

from __future__ import annotations

import json
from typing import Any

NAME = "ps1"
SECRET = "quokka"  # stands in a hidden test alone


def _cell(kind: str, grade_id: str, source: str, points: int | None = None, **marks: bool) -> dict[str, Any]:
    meta = {
        "grade_id": grade_id,
        "schema_version": 3,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
    }
    nbgrader = meta | marks | ({} if points is None else {"points": points})
    made = {"cell_type": kind, "id": grade_id, "metadata": {"nbgrader": nbgrader}, "source": source}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def source() -> str:
    """The instructor's notebook."""
    solution = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
    test = f"assert double(1) == 2\n### BEGIN HIDDEN TESTS\n{SECRET} = 5\nassert double({SECRET}) == 10\n### END HIDDEN TESTS"
    cells = [
        _cell("code", "double", solution, solution=True),
        _cell("code", "double-test", test, 2, grade=True, locked=True),
        _cell("markdown", "why", "Your words.", 3, grade=True, solution=True),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells})


def answered(released: str, answers: dict[str, str]) -> str:
    """The released notebook with other texts in the cells of these grade_ids."""
    made = json.loads(released)
    for cell in made["cells"]:
        cell["source"] = answers.get(cell["metadata"]["nbgrader"]["grade_id"], cell["source"])
    return json.dumps(made)
