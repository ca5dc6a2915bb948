"""A throw-away course with one released assignment in a real nbgrader gradebook."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from nbgrader_runs import nbgrader


def graded_cell(id: str, cell_type: str, source: str, points: int | None = None, **more: bool) -> dict:
    """One cell with nbgrader's metadata."""
    marks = {"grade_id": id, "schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    marks |= more | ({} if points is None else {"points": points})
    cell = {"cell_type": cell_type, "id": id, "metadata": {"nbgrader": marks}, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if cell_type == "code" else {})


SOURCE = {
    "cells": [
        graded_cell("a", "code", "### BEGIN SOLUTION\nx = 1\n### END SOLUTION", solution=True),
        graded_cell("a-test", "code", "assert x == 1", 4, grade=True, locked=True),
        graded_cell("b", "code", "### BEGIN SOLUTION\ny = 1\n### END SOLUTION", solution=True),
        graded_cell("b-test", "code", "assert y == 1", 2, grade=True, locked=True),
        graded_cell("w", "markdown", "YOUR ANSWER HERE", 3, grade=True, solution=True),
        graded_cell("k", "markdown", "Do something.", 1, locked=True, task=True),
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "course"
c.ExportApp.plugin_class = "graders.results.exporters.StatusExport"
"""


@pytest.fixture(scope="session")
def released_course(tmp_path_factory) -> Path:
    """A course in which nbgrader itself released `ps1`; copy it, do not change it."""
    return release(tmp_path_factory.mktemp("released"), CONFIG)


@pytest.fixture(scope="session")
def released_on_postgres(tmp_path_factory, postgres_server) -> Path:
    """The same with its gradebook in the database `released` of a PostgreSQL server."""
    url = postgres_server.create("released")
    return release(tmp_path_factory.mktemp("released"), CONFIG + f"c.CourseDirectory.db_url = {url!r}\n")


def release(course: Path, config: str) -> Path:
    """Let nbgrader release `ps1`."""
    (course / "source" / "ps1").mkdir(parents=True)
    (course / "source" / "ps1" / "nb.ipynb").write_text(json.dumps(SOURCE))
    (course / "nbgrader_config.py").write_text(config)
    (course / "course_config.py").write_text(config)
    nbgrader(course, "generate_assignment", "ps1")
    return course


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.system)])
def course(request, tmp_path) -> Iterator[Path]:
    """A copy of the released course for one test, on each kind of database."""
    if request.param == "sqlite":
        yield Path(shutil.copytree(request.getfixturevalue("released_course"), tmp_path / "course"))
        return
    released, server = request.getfixturevalue("released_on_postgres"), request.getfixturevalue("postgres_server")
    copy, name = Path(shutil.copytree(released, tmp_path / "course")), f"course-{uuid4().hex}"
    assert not (copy / "gradebook.db").exists()
    server.create(name, like="released")
    for file in ("nbgrader_config.py", "course_config.py"):
        (copy / file).write_text((copy / file).read_text().replace(server.url("released"), server.url(name)))
    yield copy
    server.drop(name)
