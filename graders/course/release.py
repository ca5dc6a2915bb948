"""Release an assignment: source/ -> release/ and the gradebook, through nbgrader's own converter.

Comes in: a course folder and a name. Goes out: the released folder. Must not: release what its own solution cannot pass,
or what would show a student a line of a solution or of a hidden test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from graders.errors import CourseError
from graders.records import Assignment, ReleasedCell, Role

_REGION = re.compile(r"^[ \t]*#+ BEGIN (HIDDEN TESTS|SOLUTION)[^\n]*\n(.*?)^[ \t]*#+ END \1", re.MULTILINE | re.DOTALL)


def generate(course: Path, course_id: str, name: str) -> None:
    """Let nbgrader write release/NAME and the gradebook's entries. Raises `CourseError` with nbgrader's own words."""
    # In a process of its own: nbgrader changes the working directory, and it looks for alembic on PATH.
    here = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": os.pathsep.join(filter(None, (here, os.environ.get("PATH", ""))))}
    arguments = ["--force", "--create", *([f"--CourseDirectory.course_id={course_id}"] if course_id else [])]
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", name, *arguments],
        cwd=course,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = [
            line for line in done.stderr.splitlines() if "ERROR" in line or "Error" in line
        ] or done.stderr.splitlines()
        raise CourseError(f"nbgrader could not release {name!r}:\n  " + "\n  ".join(lines[-8:]))


def leaks(assignment: Assignment) -> list[str]:
    """Sentences about every line of a solution or hidden test that the released text still holds."""
    found = []
    for name, cells in assignment.notebooks.items():
        shown = {line.strip() for cell in cells for line in cell.released.splitlines()}
        for cell in cells:
            where = f"{name}, cell {cell.id or cell.position}"
            found += [
                f"{where}: the released notebook holds the line {line!r}"
                for line in sorted(_secret_lines(cell) & shown)
            ]
    return found


def _secret_lines(cell: ReleasedCell) -> set[str]:
    """Lines that stand in a solution or hidden region of a cell and nowhere outside one."""
    if cell.role not in (Role.answer, Role.written, Role.test):
        return set()
    inside = {line.strip() for found in _REGION.finditer(cell.source) for line in found.group(2).splitlines()}
    outside = {line.strip() for line in _REGION.sub("", cell.source).splitlines()}
    return {line for line in inside - outside if len(line) > 12}
