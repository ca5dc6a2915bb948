"""The law of an nbgrader course in mid-term: what nbgrader released and graded, graders goes on with."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from graders.kernels.nursery import best_level

pytestmark = pytest.mark.system

# Whatever waits for a person gets a point and a half
MARK = "update grade set manual_score = 1.5, needs_manual_grade = 0 where needs_manual_grade = 1"
GRADES = """select s.student_id, b.name, b.type, g.auto_score, g.manual_score from grade g join submitted_notebook n on n.id = g.notebook_id
join submitted_assignment s on s.id = n.assignment_id join base_cell b on b.id = g.cell_id order by 1, 2"""
# Its example holds a test that deletes a function of the notebook, so its tests cannot be sealed
SETTINGS = f"""
c = get_config()
c.CourseDirectory.course_id = "course101"
c.Graders.examine = "kernel"
c.Graders.isolation = {best_level()!r}
c.Graders.processes = 1024
"""


def run(course: Path, *arguments: str, status: int = 0) -> None:
    """Run a module of Python's in a course, as a person does."""
    path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/bin", "/bin"))
    environment = {"PATH": path, "HOME": str(course.parent), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=course, env=environment, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr


def grades(course: Path) -> list[tuple[object, ...]]:
    """Every grade of the gradebook: student, cell, its type, the machine's points and a person's."""
    with closing(sqlite3.connect(course / "gradebook.db")) as book:
        return book.execute(GRADES).fetchall()


def test_a_course_in_midterm_goes_on(tmp_path: Path) -> None:
    """nbgrader's own example, released, graded and marked without us: graders gives each test the same points, keeps every mark,
    and leaves task cells and written answers to a person."""
    example = Path(find_spec("nbgrader").submodule_search_locations[0]) / "docs/source/user_guide"
    course = tmp_path / "course101"
    for room in ("source", "submitted"):
        shutil.copytree(example / room, course / room, ignore=shutil.ignore_patterns("*.html", "ps1_autotest"))
    config = "c = get_config()\nc.CourseDirectory.course_id = 'course101'\nc.IncludeHeaderFooter.header = 'source/header.ipynb'\n"
    (course / "nbgrader_config.py").write_text(config)
    run(course, "nbgrader", "generate_assignment", "ps1")
    run(course, "nbgrader", "autograde", "ps1")
    with closing(sqlite3.connect(course / "gradebook.db")) as book, book:
        book.execute(MARK)
    before = grades(course)
    assert {row[2] for row in before if row[4] == 1.5} == {"GradeCell", "TaskCell"}
    (course / "course_config.py").write_text(SETTINGS)
    run(course, "graders.cli", "grade", "ps1", status=1)
    assert grades(course) == before
