"""Cells and notebooks as Jupyter writes them, for the tests of the course room."""

from __future__ import annotations

import json
import re
from typing import Any

REGION = re.compile(r"^[ \t]*### BEGIN (HIDDEN TESTS|SOLUTION)\n(.*?)^[ \t]*### END \1\n?", re.MULTILINE | re.DOTALL)


def cell(id: str, source: str, points: int | None = None, **marks: bool) -> dict[str, Any]:
    """A code cell with nbgrader's metadata."""
    meta: dict[str, Any] = {"grade_id": id, "schema_version": 3}
    meta |= {"grade": False, "solution": False, "locked": False, "task": False} | marks
    meta |= {} if points is None else {"points": points}
    return {
        "cell_type": "code",
        "id": id,
        "metadata": {"nbgrader": meta},
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def locked(id: str, source: str) -> dict[str, Any]:
    """A cell of the instructor that students may not change."""
    return cell(id, source, locked=True)


def answer(id: str, source: str) -> dict[str, Any]:
    """An answer cell; all of `source` is the solution, and the visible text names what is asked for."""
    return cell(id, f"# {id}\n### BEGIN SOLUTION\n{source}\n### END SOLUTION", solution=True)


def hidden(id: str, source: str, points: int, visible: str = "") -> dict[str, Any]:
    """A test cell; `source` is hidden, `visible` stands before it."""
    text = f"{visible}### BEGIN HIDDEN TESTS\n{source}\n### END HIDDEN TESTS"
    return cell(id, text, points, grade=True, locked=True)


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    """An nbformat 4 notebook."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": list(cells)}


def with_answers(made: dict[str, Any], answers: dict[str, str]) -> dict[str, Any]:
    """The same notebook with other texts in the cells of these grade_ids."""
    copy = json.loads(json.dumps(made))
    for one in copy["cells"]:
        grade_id = one["metadata"].get("nbgrader", {}).get("grade_id")
        one["source"] = answers.get(grade_id, one["source"])
    return copy


def dump(made: Any) -> bytes:
    """A notebook as bytes of UTF-8."""
    return json.dumps(made, ensure_ascii=False).encode()


def secret_lines(source: str) -> set[str]:
    """Lines between the markers of a source notebook, found by the markers alone; short ones say nothing."""
    inside = {line.strip() for found in REGION.finditer(source) for line in found.group(2).splitlines()}
    outside = {line.strip() for line in REGION.sub("", source).splitlines()}
    return {line for line in inside - outside if len(line) > 12}
