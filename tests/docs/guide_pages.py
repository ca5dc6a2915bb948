"""The guides as data: their fenced blocks with what stands behind the fence, and the notebook that they describe."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDES = ("students", "instructors", "tas", "trust", "cases", "architecture", "day")
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKS = {
    "locked": {"locked": True},
    "answer": {"solution": True},
    "test": {"grade": True, "locked": True},
    "written": {"grade": True, "solution": True},
}


class Block(NamedTuple):
    """One fenced block: its language, the words behind it (`status=1` as a pair, `browser` alone), and its text."""

    language: str
    words: dict[str, str]
    text: str
    line: int

    @property
    def commands(self) -> list[str]:
        """Its lines."""
        return [line for line in self.text.splitlines() if line.strip()]


def blocks(guide: str) -> list[Block]:
    """The fenced blocks of a guide, in order."""
    page = (DOCS / f"{guide}.md").read_text()
    return [
        Block(
            found[1],
            {name: value for name, _, value in (word.partition("=") for word in found[2].split())},
            found[3],
            page.count("\n", 0, found.start()) + 1,
        )
        for found in FENCE.finditer(page)
    ]


def rows(guide: str, heading: str) -> list[list[str]]:
    """The table below a heading row that begins so: the cells of each line as text."""
    lines = (DOCS / f"{guide}.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading}"))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def notebook() -> dict[str, Any]:
    """The notebook whose cells stand in the guide for instructors."""
    found = blocks("instructors")
    more = {one.words["metadata"]: json.loads(one.text) for one in found if "metadata" in one.words}
    cells = [_cell(one, more.get(one.words["cell"], {})) for one in found if "cell" in one.words]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}


def _cell(block: Block, more: dict[str, Any]) -> dict[str, Any]:
    id = block.words["cell"]
    marks = {"grade_id": id, "schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    marks |= MARKS[block.words["type"]]
    marks |= {"points": int(block.words["points"])} if "points" in block.words else {}
    made = {"id": id, "metadata": {"nbgrader": marks} | more, "source": block.text.rstrip("\n")}
    code = {"cell_type": "code", "execution_count": None, "outputs": []}
    return made | ({"cell_type": "markdown"} if block.language == "markdown" else code)
