"""otter-grader on the same submissions: an assignment of its own from the same tests, run without containers in one process.

Comes in: an assignment; as a program, an autograder's zip and notebooks. Goes out: that zip, and notebooks in which each test cell asks for
its test; as a program, one JSON line, how many were graded and how many got everything. Must not: be slower than otter-grader's users
would have it, so its start is paid once for a whole class.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from graders.coursework import Assignment, Role

# A test in otter-grader's format for exceptions; the cell runs in the student's names, as nbgrader would run it.
TEST = """\
OK_FORMAT = False

from otter.test_files import test_case

name = {name!r}
points = {points}


@test_case(points={points})
def test(env):
    exec({source!r}, env)
"""


def write_autograder(assignment: Assignment, home: Path) -> Path:
    """Let otter-grader make its zip of the assignment's tests; the path of that zip."""
    tests = home / "tests"
    tests.mkdir(parents=True)
    for name, (source, points) in _tests(assignment).items():
        (tests / f"{name}.py").write_text(TEST.format(name=name, points=points, source=source))
    made = home / "autograder.zip"
    command = [sys.executable, "-m", "otter", "generate", "-t", str(tests), "-o", str(made)]
    quiet = ["--no-config", "--no-requirements", "--no-environment"]
    subprocess.run([*command, *quiet], cwd=home, check=True, stdout=subprocess.DEVNULL)
    return made


def asking(assignment: Assignment, notebook: dict[str, Any]) -> dict[str, Any]:
    """A submission as otter-grader wants it: each test cell is empty, and otter-grader puts its check there."""
    made = copy.deepcopy(notebook)
    tests = _tests(assignment)
    for cell in made["cells"]:
        identity = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if identity in tests:
            cell["source"] = ""
            cell["metadata"]["otter"] = {"tests": [identity]}
    return made


def _tests(assignment: Assignment) -> dict[str, tuple[str, str]]:
    cells = [cell for cells in assignment.notebooks.values() for cell in cells]
    return {cell.id: (cell.source, f"{cell.points:f}") for cell in cells if cell.id and cell.role is Role.test}


def main(arguments: list[str]) -> None:
    """Grade notebooks one after the other, as `otter run` does, without starting Python anew for each."""
    from otter.api import grade_submission

    autograder, *notebooks = arguments
    found = [grade_submission(one, autograder, quiet=True) for one in notebooks]
    sys.stdout.write(
        json.dumps({"graded": len(found), "everything": sum(one.total == one.possible for one in found)}) + "\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
