"""Release an assignment: source/ -> release/ and the gradebook, through nbgrader's own converter.

Comes in: a course folder and a name. Goes out: the released folder, with downloads made of it. Must not: decide whether it may be
released; that is the gate's.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from graders.course import markers
from graders.course.assignments import made_here
from graders.course.downloads import downloads
from graders.course.files import read_files
from graders.course.parsing import parse
from graders.errors import CourseError


def generate(course: Path, course_id: str, name: str, db_url: str = "") -> None:
    """Let nbgrader write release/NAME and the gradebook's entries. Raises `CourseError` with nbgrader's own words.

    `db_url` names another gradebook than the course's.
    """
    _refuse_names(course / "source" / name)
    arguments = ["--force", "--create", *([f"--CourseDirectory.course_id={course_id}"] if course_id else [])]
    arguments += [f"--CourseDirectory.db_url={db_url}"] if db_url else []
    done = subprocess.run(
        [sys.executable, "-m", "graders.nbgrader_parts", name, *arguments],  # nbgrader changes the working directory
        cwd=course,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = [
            line for line in done.stderr.splitlines() if "ERROR" in line or "Error" in line
        ] or done.stderr.splitlines()
        raise CourseError(f"nbgrader could not release {name!r}:\n  " + "\n  ".join(lines[-8:]))
    for path in (course / "release" / name).rglob("*.py"):  # nbgrader copies them as they are
        text = path.read_text()
        if markers.has_solution(text):
            path.write_text(markers.stripped(text))
    for path in sorted((course / "release" / name).glob("*.ipynb")):
        for relative, data in downloads(path.stem, parse(path.read_bytes(), path.name)[0]).items():
            (path.parent / relative).parent.mkdir(exist_ok=True)
            (path.parent / relative).write_bytes(data)


def _refuse_names(source: Path) -> None:
    taken = [path for path in read_files(source) if made_here(path)] if source.is_dir() else []
    if taken:
        raise CourseError(
            f"{source / taken[0]} has a name that a release makes itself: downloads/, execution-record.json and those of other targets are kept "
            "out of what is graded. Wanted: another name. Next step: rename it, and what reads it."
        )
