"""Laws of forgery: attacks that make points, or show hidden text, under `nbgrader autograde` make and show nothing here.

Each attack is a notebook on a classic assignment of plain assertions. The same notebooks are graded by nbgrader, which
proves that they are real; they touch nothing but their own throw-away course. Those that speak the wire protocol have
nothing to speak to there, and are graded here alone.
"""

from __future__ import annotations

import csv
import html
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from graders import config
from graders.kernels.nursery import best_level
from graders.records import Report, Status
from graders.results import feedback
from graders.results.report import REPORT, json_line, read
from graders.run import grading

SECRET = "quokka"  # stands in hidden tests alone
HIDDEN_INPUT = 73.25  # what a hidden test calls with
# Without namespaces tasks are counted per user, so those of all tests that run beside this one count too.
CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "classic"
c.Graders.processes = 1024
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()"}
"""
PLAIN = {
    "double": "def double(x):\n    return 2 * x",
    "share": "def share(n):\n    return n / 4",
    "total": "def total(numbers):\n    return sum(numbers)",
}
TESTS = {
    "double": f"""\
assert double(1) == 2
### BEGIN HIDDEN TESTS
hidden_name = "{SECRET}"
assert double(5) == 10.0
assert abs(double({HIDDEN_INPUT}) - 146.5) < 1e-6
assert all(isinstance(double(n), (int, float)) for n in (1, 2)), hidden_name
### END HIDDEN TESTS""",
    "share": """\
points = 0
### BEGIN HIDDEN TESTS
if share(4) == 1:
    points += 1
if share(10) == 2.5:
    points += 1
### END HIDDEN TESTS
points""",
    "total": f"""\
### BEGIN HIDDEN TESTS
import numpy as np


def halves(numbers):
    secret_of_the_test = "{SECRET}"
    for n in numbers:
        yield n / 2


def close(one, other):
    return abs(one - other) < 1e-6


box = [1.5, 2.5]
grid = np.array([0.5, 0.25])
found = total(halves([1, 2, 3]))
assert isinstance(found, (int, float)) and close(found, 3.0)
assert close(total(map(abs, [-1, 2])), 3.0)
assert close(total(box), 4.0)
assert close(float(total(grid)), 0.75)
assert len(box) == 2 and float(np.sum(grid)) == 0.75
### END HIDDEN TESTS""",
}
POINTS = {"double": 3, "share": 2, "total": 3}
WRONG = {
    "double": "def double(x):\n    return 7",
    "share": "def share(n):\n    return -1",
    "total": "def total(numbers):\n    return -1",
}

ALWAYS_EQUAL = """\
class Agreeable(float):
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    def __sub__(self, other): return self
    def __abs__(self): return self
    __hash__ = float.__hash__
double = share = total = lambda x: Agreeable(7)"""
INPUT_TRANSFORMER = """\
seen = []
def rewritten(lines):
    if any("assert" in line or "points" in line for line in lines):
        seen.append("".join(lines))
        return ["print('hidden:', repr(seen[-1]))\\n"]
    return lines
get_ipython().input_transformers_cleanup.append(rewritten)"""
TO_TEN = """\
import ast
class ToTen(ast.NodeTransformer):
    def visit_Compare(self, node):
        if isinstance(node.ops[0], (ast.Eq, ast.Lt)):
            less = isinstance(node.ops[0], ast.Lt)
            node.left, node.comparators = ast.Constant(9.0 if less else 10.0), [ast.Constant(10.0)]
        return ast.fix_missing_locations(node)
    def visit_Return(self, node):
        node.value = ast.Constant(10.0)
        return ast.fix_missing_locations(node)
get_ipython().ast_transformers.append(ToTen())"""
WITHOUT_ASSERTS = """\
import ast
class WithoutAsserts(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.copy_location(ast.Pass(), node)
get_ipython().ast_transformers.append(WithoutAsserts())"""
READS_SOLUTION = """\
import json, pathlib
for top in pathlib.Path.cwd().parents:
    for path in (top / "source").glob("*/*.ipynb"):
        text = path.read_text()
        print(text)
        for cell in json.loads(text)["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("solution"):
                exec("".join(cell["source"]))"""
WRITES_GRADEBOOK = """\
import pathlib, sqlite3
me = pathlib.Path.cwd().parent.name
for top in pathlib.Path.cwd().parents:
    if (top / "gradebook.db").is_file():
        with sqlite3.connect(top / "gradebook.db", timeout=20) as db:
            changed = db.execute(
                "UPDATE grade SET manual_score = 2, extra_credit = 1 WHERE notebook_id IN (SELECT n.id FROM"
                " submitted_notebook n JOIN submitted_assignment a ON n.assignment_id = a.id WHERE a.student_id = ?)",
                (me,),
            ).rowcount
        print(changed, "rows changed")"""
SILENT = "get_ipython().ast_node_interactivity = 'none'"
RAISES_LAST = """\
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.ast_node_interactivity = "last_expr"
get_ipython().display_formatter.formatters["text/plain"].for_type(int, lambda n, p, cycle: p.text("2"))"""
TELLS_INPUTS = f"""\
called_with = []
def double(x):
    called_with.append(x)
    if x == {HIDDEN_INPUT}:
        print("called with", x)
        raise ValueError(f"called with {{x}}")
    return 7"""

# Attacks that run in nbgrader too: name -> (text of the first answer cell, exercises in which it makes points there)
ATTACKS = {
    "always-equal": (ALWAYS_EQUAL, {"double", "share"}),
    "input-transformer": (INPUT_TRANSFORMER, {"double", "share", "total"}),
    "to-ten": (TO_TEN, {"double", "share", "total"}),
    "without-asserts": (WITHOUT_ASSERTS, {"double", "total"}),
    "reads-solution": (READS_SOLUTION, {"double"}),
    "writes-gradebook": (WRITES_GRADEBOOK, {"double", "share", "total"}),
    "silent": (SILENT, {"share"}),
    "paints-numbers": (RAISES_LAST, {"share"}),
}
SHOWING = ("input-transformer", "reads-solution")  # these show hidden text there

# What student code does once it is called by a test, with the channel in its hands. Each returns the wrong value.
PEER = """\
import gc, os, stat, sys
wire, nodes = sys.modules["graders.exam.wire"], sys.modules["graders.exam.nodes"]
peer = next(one for one in gc.get_objects() if type(one).__name__ == "Peer")
channel = peer.channel
sockets = [int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")
           and stat.S_ISSOCK(os.stat(f"/proc/self/fd/{fd}").st_mode)]
assert channel.fileno() in sockets
yes = lambda *args, **kwargs: True
def say(body, heap=(), changes=(), rebound=None):
    wire.send(channel, wire.encode(wire.Message(body, list(heap), list(changes), rebound or {})))
def asked(op, target, *heap, **kwargs):
    say(wire.Ask(op, target, list(range(len(heap)))), heap)
    answer = wire.receive(channel)
    print(answer)
    return answer
REF = nodes.Ref(peer.tables.id_of(yes), "function", True)
"""
HOSTILE_PEERS = {
    "rebinds-builtins": """
NAMES = ["abs", "all", "isinstance", "len", "float", "close", "found", "np", "points", "hidden_name", "box", "grid",
         "check", "expect", "__builtins__", "__name__", "sum", "map", "AssertionError"]
def answer(x):
    say(wire.Done(1), [REF, -1.0], (), {name: 0 for name in NAMES})
    return -1
double = share = total = answer""",
    "rebinds-to-numbers": """
def answer(x):
    say(wire.Done(0), [2, 3.0], (), {"points": 0, "found": 1, "n": 1, "halves": 1})
    return -1
double = share = total = answer""",
    "walks-frames": """
def answer(x):
    words = ("gi_frame", "gi_code", "gi_yieldfrom", "f_globals", "__globals__", "__closure__", "__code__", "__self__",
             "__class__", "__dict__", "__getattribute__", "__reduce__", "__init__", "__subclasshook__", "throw", "send")
    for target in range(1, 40):
        for word in words:
            asked("attr", target, word)
        asked("setattr", target, "__class__", 1)
        asked("names", target, "hidden_name", "points")
        asked("isinstance", target, 1)
        asked("setitem", target, "points", 2)
    return -1
double = share = total = answer""",
    "hands-out-numbers": """
def answer(x):
    for target in range(0, 40):
        for op in ("call", "getitem", "len", "iter", "next", "contains", "bool", "export", "apply", "place", "delitem"):
            asked(op, target)
    return -1
double = share = total = answer""",
    "changes-containers": """
def total(x):
    if not isinstance(x, list):
        return sum(x)
    known = [key for key, one in peer.tables.shared.items() if one is x]
    say(wire.Done(1), [nodes.Mapping("dict", [1], [1], known[0]), 3.0], [0])
    return -1
double = share = total""",
    "changes-arrays": """
def total(x):
    if not hasattr(x, "shape"):
        return sum(x)
    known = [key for key, one in peer.tables.shared.items() if one is x]
    say(wire.Done(1), [nodes.Sequence("set", [], known[0]), 3.0], [0])
    return -1
double = share = total""",
    "changes-what-never-crossed": """
def double(x):
    say(wire.Done(1), [nodes.Sequence("list", [], 2 * 10**6), 2], [0])
    return -1""",
    "answers-ahead": """
def answer(x):
    for value in (True, None, 0, "2", -1.0, {"share": 1}):
        say(wire.Done(0), [value] if not isinstance(value, dict) else [nodes.Mapping("dict", [1], [2], 10**7), "share", REF])
    return -1
double = share = total = answer""",
    "returns-what-it-was-given": """
def double(x):
    say(wire.Done(0), [nodes.Back(1)])
    return -1""",
    "lies-about-errors": """
def answer(x):
    say(wire.Raised(["builtins.SystemExit", "builtins.BaseException"], "0"))
    say(wire.Raised(["builtins.StopIteration", "builtins.Exception"], "0"))
    say(wire.Raised(["graders.checks.CheckFailed", "builtins.GeneratorExit"], "0"))
    return -1
double = share = total = answer""",
    "claims-types": """
def answer(x):
    data = nodes.DataClass("float", ["real", "imag", "value"], [0, 0, 0], 10**6, False, 10**7)
    say(wire.Done(1), [3.0, data])
    return -1
double = share = total = answer""",
    "sends-rubbish": """
def double(x):
    channel.sendall((2**40).to_bytes(8, "big") + b"rubbish")
    return -1""",
}


def cell(id: str, source: str, points: int | None = None, **marks: bool) -> dict:
    """A code cell with nbgrader's metadata."""
    meta = {"grade_id": id, "schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    meta |= marks | ({} if points is None else {"points": points})
    code = {"cell_type": "code", "id": id, "execution_count": None, "outputs": []}
    return code | {"metadata": {"nbgrader": meta}, "source": source}


def source_notebook() -> dict:
    """The classic assignment: three functions, tests of plain assertions, one of them with partial credit."""
    cells = []
    for name, text in PLAIN.items():
        cells.append(cell(name, f"### BEGIN SOLUTION\n{text}\n### END SOLUTION", solution=True))
        cells.append(cell(f"{name}-test", TESTS[name], POINTS[name], grade=True, locked=True))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}


def submissions() -> dict[str, dict[str, str]]:
    """What is handed in by whom: the answer cells by name."""
    made = {"right": PLAIN, "wrong": WRONG, "tells-inputs": WRONG | {"double": TELLS_INPUTS}}
    for name, (text, _) in ATTACKS.items():
        own = text.startswith("class Agreeable")
        # the functions are wrong, and what the attack brings is defined beside them
        made[name] = {one: (WRONG[one] + "\n" if not own else "") for one in PLAIN}
        made[name]["double"] += text
    return made


def peers() -> dict[str, dict[str, str]]:
    """Submissions that speak the protocol; the last two answer cells are empty."""
    return {name: {"double": PEER + text, "share": "pass", "total": "pass"} for name, text in HOSTILE_PEERS.items()}


def hand_in(course: Path, student: str, cells: dict[str, str]) -> None:
    """Write one submission, with a last cell of the student's own that shows what was found."""
    made = json.loads((course / "release" / "ps1" / "nb.ipynb").read_text())
    for one in made["cells"]:
        one["source"] = cells.get(one["metadata"].get("nbgrader", {}).get("grade_id"), one["source"])
    last = cell("", "print(globals().get('seen'), globals().get('called_with'))")
    last["metadata"], last["id"] = {}, "last"
    made["cells"].append(last)
    folder = course / "submitted" / student / "ps1"
    folder.mkdir(parents=True)
    (folder / "nb.ipynb").write_text(json.dumps(made))


def nbgrader(course: Path, *arguments: str) -> subprocess.Popen:
    """Start nbgrader in a course folder as a person would, with a home of its own."""
    (course / "home").mkdir(exist_ok=True)
    path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/bin", "/bin"))
    environment = {"PATH": path, "HOME": str(course / "home"), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    with (course / "log.txt").open("a") as log:
        return subprocess.Popen(command, cwd=course, env=environment, stdout=log, stderr=log)


def finished(course: Path, process: subprocess.Popen) -> None:
    """Wait for nbgrader and fail with its own words."""
    assert process.wait(300) == 0, (course / "log.txt").read_text()[-5000:]


@pytest.fixture(scope="module")
def courses(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The class graded twice: by nbgrader in one course folder, by us in another."""
    theirs = tmp_path_factory.mktemp("theirs") / "course"
    (theirs / "source" / "ps1").mkdir(parents=True)
    (theirs / "source" / "ps1" / "nb.ipynb").write_text(json.dumps(source_notebook()))
    for name in ("course_config.py", "nbgrader_config.py"):
        (theirs / name).write_text(CONFIG)
    finished(theirs, nbgrader(theirs, "generate_assignment", "ps1", "--create"))
    ours = tmp_path_factory.mktemp("ours") / "course"
    shutil.copytree(theirs, ours)
    for student, cells in submissions().items():
        hand_in(theirs, student, cells)
    for student, cells in (submissions() | peers()).items():
        hand_in(ours, student, cells)
    at_work = nbgrader(theirs, "autograde", "ps1")
    try:
        settings = config.load(ours)
        ready = grading.prepare(settings, "ps1", best_level())
        grading.grade_class(settings, ready, grading.students(ours, "ps1"), 1, True, lambda report: None)
        finished(theirs, at_work)
    finally:
        at_work.kill()
        at_work.wait()
    finished(theirs, nbgrader(theirs, "export"))
    return theirs, ours


def exercise_scores(course: Path, student: str) -> dict[str, float]:
    """Points by exercise in a gradebook, as nbgrader adds them up."""
    query = (
        "SELECT b.name, coalesce(g.manual_score, g.auto_score, 0) + coalesce(g.extra_credit, 0) FROM grade g"
        " JOIN base_cell b ON g.cell_id = b.id JOIN submitted_notebook n ON g.notebook_id = n.id"
        " JOIN submitted_assignment a ON n.assignment_id = a.id WHERE a.student_id = ?"
    )
    with closing(sqlite3.connect(course / "gradebook.db")) as book:
        return {name.removesuffix("-test"): score for name, score in book.execute(query, (student,))}


def outputs(path: Path, tests: bool) -> str:
    """All outputs of a notebook file as text, those of test cells only where asked for."""
    cells = json.loads(path.read_text())["cells"]
    chosen = [one for one in cells if tests or not one["metadata"].get("nbgrader", {}).get("grade")]
    return json.dumps([one.get("outputs", []) for one in chosen])


def report_of(course: Path, student: str) -> Report:
    """Our report on one student."""
    return read(course / "autograded" / student / "ps1" / REPORT)


def test_nbgrader_gives_honest_work_its_points(courses: tuple[Path, Path]) -> None:
    """In nbgrader the right answers earn all points and the wrong ones none, so what an attack earns there is forged."""
    theirs, _ = courses
    assert exercise_scores(theirs, "right") == POINTS
    assert exercise_scores(theirs, "wrong") == dict.fromkeys(POINTS, 0)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_is_real(name: str, courses: tuple[Path, Path]) -> None:
    """Under `nbgrader autograde` the attack makes points out of wrong answers, and its total says so in the export."""
    theirs, _ = courses
    found = exercise_scores(theirs, name)
    assert {one for one, score in found.items() if score > 0} == ATTACKS[name][1]
    with (theirs / "grades.csv").open() as stream:
        totals = {row["student_id"]: float(row["score"]) for row in csv.DictReader(stream)}
    assert totals[name] > totals["wrong"] == 0


@pytest.mark.parametrize("name", SHOWING)
def test_the_leak_is_real(name: str, courses: tuple[Path, Path]) -> None:
    """Under `nbgrader autograde` the notebook that comes back shows the hidden tests."""
    theirs, _ = courses
    assert SECRET in outputs(theirs / "autograded" / name / "ps1" / "nb.ipynb", tests=True)


def test_honest_work_earns_the_same_here(courses: tuple[Path, Path]) -> None:
    """The right answers earn all points here too, and the wrong ones none."""
    _, ours = courses
    right, wrong = report_of(ours, "right"), report_of(ours, "wrong")
    assert {one.id.removesuffix("-test"): one.score for one in right.exercises} == POINTS
    assert (wrong.status, wrong.score, wrong.max_score) == (Status.graded, 0, sum(POINTS.values()))


@pytest.mark.parametrize("name", [*ATTACKS, "tells-inputs", *HOSTILE_PEERS])
def test_no_attack_makes_a_point(name: str, courses: tuple[Path, Path]) -> None:
    """An attack is graded and earns what its wrong answers earn: nothing, in the report and in the gradebook."""
    _, ours = courses
    report = report_of(ours, name)
    assert report.status is Status.graded
    assert {one.id: one.score for one in report.exercises} == {f"{one}-test": Decimal(0) for one in POINTS}
    assert exercise_scores(ours, name) == dict.fromkeys(POINTS, 0)


@pytest.mark.parametrize("name", [*ATTACKS, "tells-inputs", *HOSTILE_PEERS])
def test_nothing_hidden_is_shown(name: str, courses: tuple[Path, Path]) -> None:
    """No hidden line and no hidden value stands in what a student's cells put out, on the feedback page, in its data or
    in the line for scripts.
    """
    _, ours = courses
    report = report_of(ours, name)
    feedback.write(ours, report)
    folder = ours / "feedback" / name / "ps1"
    shown = {
        "page": html.unescape((folder / "nb.html").read_text()),
        "data": (folder / "feedback.json").read_text(),
        "line": json_line(report).decode(),
    }
    if name not in ("tells-inputs",):
        shown["outputs"] = outputs(ours / "autograded" / name / "ps1" / "nb.ipynb", tests=False)
    hidden = hidden_lines() | {SECRET, str(HIDDEN_INPUT), str(2 * HIDDEN_INPUT)}
    for where, text in shown.items():
        # the answer that was handed in is shown again, and may hold what it guessed
        own = "".join(one.answer for one in report.exercises)
        assert [line for line in hidden if line in text and line not in own] == [], where
    assert f"called with {HIDDEN_INPUT}" not in shown["page"] + shown["data"] + shown["line"]


def hidden_lines() -> set[str]:
    """The lines of the hidden tests and of the solution, as they would stand in text or in JSON."""
    lines = set()
    for text in TESTS.values():
        inside = text.partition("### BEGIN HIDDEN TESTS\n")[2].partition("### END HIDDEN TESTS")[0]
        lines |= {line.strip() for line in inside.splitlines() if len(line.strip()) > 12}
    return lines | {json.dumps(line)[1:-1] for line in lines}


@pytest.mark.parametrize("name", HOSTILE_PEERS)
def test_the_peer_had_the_channel(name: str, courses: tuple[Path, Path]) -> None:
    """The code that speaks the protocol found the channel and was called: its cell raised nothing."""
    _, ours = courses
    cells = json.loads((ours / "autograded" / name / "ps1" / "nb.ipynb").read_text())["cells"]
    assert cells[0]["metadata"]["nbgrader"]["grade_id"] == "double"
    assert cells[0]["outputs"] == []
    assert not any("NameError: name 'double'" in json.dumps(one) for one in cells[1]["outputs"])


def test_no_attribute_leads_to_a_frame(courses: tuple[Path, Path]) -> None:
    """Of a generator and a function that a test passes, no attribute is told, nor may any be set: each is refused."""
    _, ours = courses
    cells = json.loads((ours / "autograded" / "walks-frames" / "ps1" / "nb.ipynb").read_text())["cells"]
    [told] = [
        json.dumps(one["outputs"])
        for one in cells
        if one["metadata"].get("nbgrader", {}).get("grade_id") == "total-test"
    ]
    assert told.count("Raised(") > 100
    assert "Done(" not in told
