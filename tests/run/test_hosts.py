"""The law of a cluster of hosts that share nothing: a class gets its scores, though only the owner's host holds the course."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from dask_processes import started
from hosts import Host, Network, network

from graders.kernels.nursery import best_level

pytestmark = pytest.mark.system

NAME = "ps1"
SECRET = "quokka"  # stands in a hidden test alone
RIGHT = "import time\ntime.sleep(1)\ndef double(x):\n    return x + x"
WRONG = RIGHT + " + (x > 1)"  # passes what a student sees
PORT = 8786
SOON = ("DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP=12s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT=5s")
CLASS = 12


def cell(grade_id: str, source: str, **marks: Any) -> dict[str, Any]:
    """One cell with nbgrader's metadata."""
    own = {"grade_id": grade_id, "schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    made = {"cell_type": "code", "id": grade_id, "source": source, "metadata": {"nbgrader": own | marks}}
    return made | {"execution_count": None, "outputs": []}


def make_course(course: Path) -> None:
    """One exercise of two points with a hidden test."""
    test = f"assert double(1) == 2\n### BEGIN HIDDEN TESTS\n{SECRET} = 5\nassert double({SECRET}) == 10\n### END HIDDEN TESTS"
    solution = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
    cells = [cell("double", solution, solution=True), cell("double-test", test, grade=True, locked=True, points=2)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    (course / "source" / NAME).mkdir(parents=True)
    (course / "source" / NAME / "lesson.ipynb").write_text(json.dumps(notebook))
    (course / "course_config.py").write_text(
        f'c.CourseDirectory.course_id = "small"\nc.Graders.isolation = {best_level()!r}\n'
    )


def hand_in(course: Path, student: str, answer: str) -> None:
    """The released notebook with this answer."""
    made = json.loads((course / "release" / NAME / "lesson.ipynb").read_text())
    made["cells"][0]["source"] = answer
    where = course / "submitted" / student / NAME / "lesson.ipynb"
    where.parent.mkdir(parents=True)
    where.write_text(json.dumps(made))


def looking_around(course: Path, scheduler: str) -> str:
    """Doubles, unless it can see the course or reach the scheduler."""
    return f"""\
import pathlib, socket
try:
    found = socket.create_connection(({scheduler!r}, {PORT}), 2)
except OSError:
    found = pathlib.Path({str(course)!r}).exists()
def double(x):
    return 7 if found else 2 * x"""


def begin(host: Host, kind: str, *options: str, log: Path, ended: ExitStack) -> str:
    """Start a scheduler or a worker on a host, which ends with it: the address that it tells."""
    address, process = started(kind, "--host", host.address, *options, log=log, before=host.command(*SOON))
    ended.callback(process.wait)
    return address


def graders(course: Path, *words: str) -> list[str]:
    """The command."""
    return [sys.executable, "-m", "graders.cli", "--course", str(course), *words]


def has_secret(host: Host, stage: Path) -> bool:
    """Whether a file on that host's disk, or of the course as that host sees it, holds the hidden test."""
    found = host.run("grep", "--recursive", "--quiet", SECRET, str(stage))
    assert found.returncode in (0, 1), found.stderr
    return found.returncode == 0


def test_hosts_that_share_nothing_grade_a_class(tmp_path: Path) -> None:
    """One of two hosts is lost and the cable of the other is pulled before a third joins: each submission has its known score, and hidden
    tests were in no file of any host but the owner's.
    """
    with ExitStack() as ended, network(tmp_path) as hosts:
        grade_a_class(tmp_path, hosts, ended)


def grade_a_class(stage: Path, hosts: Network, ended: ExitStack) -> None:
    """The course lies on one host, the scheduler runs on another, and workers on more."""
    course, owner, head = stage / "course", hosts.host("owner"), hosts.host()
    make_course(course)
    released = owner.run(*graders(course, "release", NAME))
    assert released.returncode == 0, released.stdout + released.stderr
    for n in range(CLASS):
        hand_in(course, f"student-{n:02d}", WRONG if n % 3 == 2 else RIGHT)
    hand_in(course, "student-99", looking_around(course, head.address))
    address = begin(head, "scheduler", "--port", str(PORT), log=stage / "scheduler.log", ended=ended)
    work = ("worker", address, "--nthreads", "1", "--no-nanny")
    lost, unplugged = hosts.host(), hosts.host()
    begin(lost, *work, log=stage / "lost.log", ended=ended)
    begin(unplugged, *work, log=stage / "unplugged.log", ended=ended)
    command = graders(course, "grade", NAME, "--executor", "dask", "--scheduler", address, "--json")
    # unbuffered, since two lines may come at once, and communicate() would not see what the first reading took in beside its own
    with subprocess.Popen([*owner.command(*SOON), *command], stdout=subprocess.PIPE, bufsize=0) as grading:
        assert grading.stdout
        first = grading.stdout.readline()
        lost.end()
        hosts.unplug(unplugged)
        joined = hosts.host()
        begin(joined, *work, log=stage / "joined.log", ended=ended)
        rest, _ = grading.communicate(timeout=240)
    assert grading.returncode == 0
    told = [json.loads(line) for line in [first, *rest.splitlines()]]
    known = {f"student-{n:02d}": 0 if n % 3 == 2 else 2 for n in range(CLASS)} | {"student-99": 2}
    assert {one["student"]: one["score"] for one in told} == known
    assert (len(told), {one["status"] for one in told}) == (len(known), {"graded"})
    assert has_secret(owner, stage)
    assert [host.address for host in (head, joined) if has_secret(host, stage)] == []
