"""The law of a gradebook on PostgreSQL: every command does there what it does on SQLite."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from postgres import Server, server

from graders.course.simulate import notebook_with
from graders.kernels.nursery import best_level

pytestmark = pytest.mark.system
ROOT = Path(__file__).resolve().parents[2]
CLASS = {
    "student-01": {"why": "Because of the mask."},
    "student-02": {"total": "total = 1", "why": "Null \0 character."},
    "student-03": {},
}


def graders(course: Path, *words: str, status: int = 0) -> str:
    """What a command says, when it ends as it should."""
    command = [sys.executable, "-m", "graders.cli", *words]
    done = subprocess.run(command, cwd=course, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def make(home: Path, url: str) -> Path:
    """The small course with its gradebook there, and three hand-ins; one is no notebook."""
    course = Path(shutil.copytree(ROOT / "tests/submissions/course", home / "course"))
    with (course / "course_config.py").open("a") as file:
        file.write(
            f"c.Graders.isolation = {best_level()!r}\n" + (f"c.CourseDirectory.db_url = {url!r}\n" if url else "")
        )
    (course / "nbgrader_config.py").write_text('c = get_config()\nload_subconfig("course_config.py")\n')
    graders(course, "release", "ps1")
    for student, cells in CLASS.items():
        place = course / "submitted" / student / "ps1"
        shutil.copytree(course / "release/ps1", place)
        released = json.loads((place / "lesson.ipynb").read_text())
        source = json.loads((course / "source/ps1/lesson.ipynb").read_text())
        answers = {
            one["metadata"]["nbgrader"]["grade_id"]: one["source"]
            for one in source["cells"]
            if "nbgrader" in one["metadata"]
        }
        (place / "lesson.ipynb").write_text(json.dumps(notebook_with(released, answers | cells)) if cells else "{")
    return course


def walk(course: Path) -> list[object]:
    """All that stores or reads marks, one after the other, and what it says."""
    graders(course, "grade", "ps1", "--json", status=1)
    told = [graders(course, "review", "ps1", "--override", "student-02", "total-test", "1", "--reason", "Seen.")]
    told.append(graders(course, "grade", "ps1", "--json", status=1))
    told.append(graders(course, "regrade", "ps1"))
    graders(course, "feedback", "ps1")
    graders(course, "overview", "ps1")
    told += [graders(course, "export", "--format", one) for one in ("csv", "json", "canvas", "moodle")]
    subprocess.run([sys.executable, "-m", "nbgrader", "export"], cwd=course, check=True, capture_output=True)
    told.append(sorted((course / "grades.csv").read_text().splitlines()))
    graders(course, "forget", "student-01", "--yes", status=1)  # the exported file still names them
    return [*told, graders(course, "export", "--format", "json")]


def test_every_command_does_the_same_there(tmp_path: Path, postgres_server: Server) -> None:
    """Released, graded, marked, graded again, exported and forgotten, a class has the same points and sentences on both."""
    ours = make(tmp_path / "postgresql", postgres_server.create("walk"))
    found = walk(ours)
    assert not (ours / "gradebook.db").exists()
    assert found == walk(make(tmp_path / "sqlite", ""))
    scores = {one["student"]: (one["status"], one["score"]) for one in json.loads(found[4])}
    assert scores == {"student-01": ("graded", 5), "student-02": ("graded", 3), "student-03": ("not_graded", None)}


def test_a_server_that_ended_is_told(tmp_path: Path) -> None:
    """Whoever grades or exports while the server is down reads what, where and what next, and no password; later it goes on."""
    with server() as one:
        course = make(tmp_path, one.create("walk").replace("graders@", "graders:secret@"))
        graders(course, "grade", "ps1", "--json", status=1)
    for words in (("grade", "ps1", "--json"), ("export", "--format", "csv"), ("review", "ps1"), ("release", "ps1")):
        said = graders(course, *words, status=2)
        assert "postgresql+psycopg://graders:***@/walk" in said
        assert "Next step:" in said
        assert "secret" not in said
        assert len(said.splitlines()) == 1
