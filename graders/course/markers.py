"""Markers of solutions and hidden tests: the exact ones, and the near misses that nbgrader would not see.

Comes in: one cell or Python file. Goes out: findings. Must not: guess what the author meant, only say what does not match.
"""

from __future__ import annotations

import difflib
import re

from graders.coursework import ANSWERS, ReleasedCell, Role
from graders.findings import Finding, Level

REGIONS = ("SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
_EXACT = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)")
_ALONE = re.compile(r"^\s*#+ (BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)\s*$")
_PLACES = {
    "SOLUTION": set(ANSWERS),
    "HIDDEN TESTS": {Role.test},
    "MARK SCHEME": {Role.written, Role.task},
}
_WORDS = {"SOLUTION": "an answer cell", "HIDDEN TESTS": "a test cell", "MARK SCHEME": "a written answer or a task"}
_LONGEST = 40
_ALIKE = 0.78  # `BEGIN HIDDEN TEST` has 0.97, `BEGIN SOLUTIONS` 0.96, `# Hidden facts` is left alone


def of_cell(cell: ReleasedCell) -> list[Finding]:
    """What is wrong with the markers of one cell."""
    place = cell.id or f"number {cell.position}"
    found = of_text(cell.source, cell.notebook, place, cell.cell_type == "code")
    for number, kind, region in _markers(cell.source):
        if kind == "BEGIN" and cell.role not in _PLACES[region]:
            text = (
                f"BEGIN {region} stands in {_a(cell.role)}, and nbgrader takes it out of {_WORDS[region]} alone. "
                f"Mark the cell as {_WORDS[region]}, or move the region:"
            )
            found.append(_finding("misplaced", cell.notebook, place, number, text, cell.source))
    return found


def of_text(source: str, notebook: str, place: str, code: bool = True) -> list[Finding]:
    """Near misses, markers that share a line with something else, and regions that do not open or close."""
    found = []
    opened: tuple[int, str] | None = None
    exact = {number for number, _, _ in _markers(source)}
    for number, line in enumerate(source.splitlines(), 1):
        meant = None if number in exact else near_miss(line)
        if meant:
            text = f"{line.strip()!r} is no marker, so what follows is not hidden by it. Write ### {meant}, or other words:"
            found.append(_finding("near miss", notebook, place, number, text, source))
        elif number in exact and code and not _ALONE.match(line):
            text = f"{line.strip()!r}: a marker stands alone on its line, as a comment, such as ### BEGIN SOLUTION:"
            found.append(_finding("not alone", notebook, place, number, text, source))
    for number, kind, region in _markers(source):
        if kind == "BEGIN" and opened:
            text = f"BEGIN {region} opens inside BEGIN {opened[1]} of line {opened[0]}. Close that one first:"
            found.append(_finding("not closed", notebook, place, number, text, source))
        if kind == "END" and (opened is None or opened[1] != region):
            text = f"END {region} closes nothing: no BEGIN {region} stands open above it. Write the BEGIN, or remove the line:"
            found.append(_finding("not opened", notebook, place, number, text, source))
        opened = (number, region) if kind == "BEGIN" else None
    if opened:
        text = f"BEGIN {opened[1]} is never closed. Write ### END {opened[1]} after its last line:"
        found.append(_finding("not closed", notebook, place, opened[0], text, source))
    return found


def near_miss(line: str) -> str | None:
    """The marker that a comment line almost is, or None.

    Only a line that says nothing else counts: `# the end of the solution is below` is prose.
    """
    text = line.strip()
    if len(text) > _LONGEST or not re.match(r"#|<!--|(?i:begin|end)[\s_-]", text):
        return None
    words = re.sub(r"[^A-Z ]", " ", re.sub(r"[_-]", " ", text.upper())).split()
    if not 2 <= len(words) <= 4:
        return None
    opening = difflib.get_close_matches(words[0], ["BEGIN", "START", "END", "STOP"], 1, _ALIKE)
    rest = " ".join(words[1:])
    alike = difflib.get_close_matches(rest, [*REGIONS, "HIDDEN", "HIDDEN TEST CASES"], 1, _ALIKE)
    if not opening or not alike:
        return None
    region = "HIDDEN TESTS" if alike[0].startswith("HIDDEN") else alike[0]
    return f"{'BEGIN' if opening[0] in ('BEGIN', 'START') else 'END'} {region}"


def stripped(source: str) -> str:
    """A Python file as students receive it: each region of a solution gives way to a line that says where to write."""
    kept: list[str] = []
    marks = {number: kind for number, kind, region in _markers(source) if region == "SOLUTION"}
    inside = False
    for number, line in enumerate(source.splitlines(), 1):
        if marks.get(number) == "BEGIN":
            indent = line[: len(line) - len(line.lstrip())]
            kept += [f"{indent}# YOUR CODE HERE", f"{indent}raise NotImplementedError()"]
        elif number not in marks and not inside:
            kept.append(line)
        inside = marks.get(number, "BEGIN" if inside else "END") == "BEGIN"
    return "\n".join(kept) + "\n"


def has_solution(source: str) -> bool:
    """Whether a Python file has a region that students are to write."""
    return any(region == "SOLUTION" for _, _, region in _markers(source))


def regions(source: str) -> tuple[list[str], list[str]]:
    """Lines inside solution and hidden regions, and lines outside; marker lines are neither."""
    inside: list[str] = []
    outside: list[str] = []
    marks = {number: kind for number, kind, _ in _markers(source)}
    where = outside
    for number, line in enumerate(source.splitlines(), 1):
        if number in marks:
            where = inside if marks[number] == "BEGIN" else outside
        else:
            where.append(line)
    return inside, outside


def _markers(source: str) -> list[tuple[int, str, str]]:
    """Line number, BEGIN or END, and region, wherever nbgrader would see a marker."""
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        found += [(number, one[1], one[2]) for one in _EXACT.finditer(line)]
    return found


def _a(role: Role) -> str:
    names = {Role.answer: "an answer cell", Role.test: "a test cell", Role.written: "a written answer"}
    return names.get(role, f"a {role.value} cell")


def _finding(rule: str, notebook: str, place: str, line: int, text: str, source: str) -> Finding:
    return Finding(f"leaks: marker {rule}", Level.error, notebook, place, line, f"{text}\n{_quote(source, line)}")


def _quote(source: str, line: int) -> str:
    """The line in question with two on either side."""
    lines = source.splitlines()
    first = max(0, line - 3)
    return "\n".join(f"    {text}" for text in lines[first : line + 2])
