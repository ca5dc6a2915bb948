"""Laws of what a submission earns, on a small course that is released, graded, stored and exported for real."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from notebook_samples import answer, dump, hidden, locked, notebook, with_answers

from graders import config
from graders.config import Settings
from graders.course.assignments import read_assignment, released_notebook
from graders.course.reference import run_solution
from graders.kernels.nursery import best_level
from graders.records import ExerciseResult, Outcome, Report, Status
from graders.results import feedback
from graders.results.database import default_url
from graders.results.folders import hash_files
from graders.results.report import REPORT, json_line, read
from graders.results.standings import statuses
from graders.run import grading, pipeline, releasing

ROOT = Path(__file__).resolve().parents[2]
# What a partial-credit test of 2 points may end in, and the points that this is.
NUMBERS = {
    "1": "1",
    "2.0": "2",
    "0": "0",
    "-0.0": "0",
    "np.float64(0.5)": "0.5",
    "np.float16(0.25)": "0.25",
    "np.int64(2)": "2",
    "np.array(1.5)": "1.5",
    "jnp.array(0.5)": "0.5",
    "jnp.array(1)": "1",
    "jnp.bfloat16(0.5)": "0.5",
    "__import__('decimal').Decimal('0.1')": "0.1",
}
NO_NUMBERS = [
    "float('nan')", "None", "True", "np.True_", "jnp.array(True)", "-0.5", "2.5", "np.nextafter(2, 3)", "float('inf')",
    "np.array(np.nan)", "(1,)", "[1]", "'1'", "b'1'", "1j", "np.array([1.0])", "{}", "print",
    "__import__('jax').random.key(0)", "10**5000", "[10**5000]", "np.datetime64('2020')", "__import__('decimal').Decimal('NaN')",
    "np.zeros(2, 'V3')",
]  # fmt: skip
WORTH = 2
WARNS = """\
import logging, sys, warnings
print("careful", file=sys.stderr)
warnings.warn("this name is old")
def calm(x):
    print("careful again", file=sys.stderr)
    logging.getLogger().error("a line of a log")
    warnings.warn("and old inside")
    return x + 1"""
KILLS = "import os\nkilled = 1\nos._exit(0)"
KILLS_INSIDE = "import os\ndef calm(x):\n    os._exit(0)"
HINT = "Add one to the first."
SMALL = notebook(
    locked("setup", "import numpy as np\nimport jax.numpy as jnp"),
    answer("first", "first = 1"),
    hidden("first-test", "assert first == 1", 1),
    answer("killed", "killed = 1"),
    hidden("killed-test", "assert killed == 1", 1),
    answer("calm", "def calm(x):\n    return x + 1"),
    hidden("calm-test", "assert calm(1) == 2", 1),
    answer("last", "last = first + 1"),
    hidden(
        "last-test",
        f"from graders.checks import check\nwith check('last', points=1, hint={HINT!r}):\n    assert last == 2",
        1,
    ),
)
CREDIT = notebook(
    locked("setup", "import numpy as np\nimport jax.numpy as jnp"),
    *(
        one
        for number in range(len(NUMBERS) + len(NO_NUMBERS))
        for one in (answer(f"v{number}", f"v{number} = {WORTH}"), hidden(f"v{number}-test", f"v{number}", WORTH))
    ),
)
VALUES = {text: f"v{number}" for number, text in enumerate([*NUMBERS, *NO_NUMBERS])}
CLASS = {
    "author": {"killed": "killed = 1", "calm": "def calm(x): return 1 + x", "first": "first = 1", "last": "last = 2"},
    "warns": {"first": "first = 1", "killed": "killed = 1", "calm": WARNS, "last": "last = 2"},
    "killed": {"first": "first = 1", "killed": KILLS, "calm": "def calm(x): return 1 + x", "last": "last = first + 1"},
    "kills": {"first": "first = 1", "killed": "killed = 1", "calm": KILLS_INSIDE, "last": "last = first + 1"},
    "off": {
        "first": "sum = first = 1",
        "killed": "killed = 1",
        "calm": "def calm(x): return x + 1",
        "last": "last = 1",
    },
}
BROKEN = {
    "cut": dump(SMALL)[:-40],
    "empty": b"",
    "page": b"<html>log in</html>",
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, small_course: Callable) -> Settings:
    """The course, released, with everything handed in and graded."""
    settings = small_course(tmp_path_factory.mktemp("small"), {"ps1": SMALL})
    releasing.release(settings, "ps1", best_level())
    blank = released_notebook(settings.course, "ps1", "nb")
    handed_in = {student: dump(with_answers(blank, cells)) for student, cells in CLASS.items()} | BROKEN
    for student, data in handed_in.items():
        submit(settings.course, student, "ps1", data)
    ready = grading.prepare(settings, "ps1", best_level())
    grading.grade_class(settings, ready, grading.students(settings.course, "ps1"), 1, False, lambda report: None)
    return settings


MARK = "update grade set manual_score = 0.25 where cell_id in (select id from base_cell where name = 'last-test')"
ROWS = (
    "select s.student_id, b.name, g.auto_score, g.extra_credit from grade g join submitted_notebook n on n.id = g.notebook_id "
    "join submitted_assignment s on s.id = n.assignment_id join base_cell b on b.id = g.cell_id order by 1, 2",
    "select s.student_id, b.name, c.auto_comment, c.manual_comment from comment c join submitted_notebook n "
    "on n.id = c.notebook_id join submitted_assignment s on s.id = n.assignment_id join base_cell b on b.id = c.cell_id "
    "order by 1, 2",
    "select student, assignment, status, reason, score, max_score from graders_status order by 1",
)


class Answered(NamedTuple):
    """A course that was graded through nbgrader's door, and what the door answered."""

    course: Path
    graded: dict[str, Any]
    returned: dict[str, Any]


@pytest.fixture(scope="module")
def through_nbgrader(course: Settings, tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """The same class, marked by a person, then graded and returned as formgrader's buttons do it."""
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    home = tmp_path_factory.mktemp("nbgrader") / "course"
    shutil.copytree(course.course, home, ignore=shutil.ignore_patterns("autograded", "feedback"))
    with closing(sqlite3.connect(home / "gradebook.db")) as book, book:
        book.execute(MARK)
    shutil.copy(ROOT / "course_config.py", home / "doors.py")
    with (home / "course_config.py").open("a") as file:
        file.write(
            f"c.Graders.isolation = {best_level()!r}\nload_subconfig('doors.py')\nc.CourseDirectory.course_id = 'small'\n"
        )
    given = config.read_config(home)
    api = NbGraderAPI(CourseDirectory(root=str(home), config=given), config=given)
    return Answered(home, api.autograde("ps1", "*"), api.generate_feedback("ps1"))


def submit(course: Path, student: str, assignment: str, data: bytes) -> None:
    """Hand in one notebook file."""
    folder = course / "submitted" / student / assignment
    folder.mkdir(parents=True)
    (folder / "nb.ipynb").write_bytes(data)


def report_of(course: Settings, student: str) -> Report:
    """The stored report of one student."""
    return read(course.course / "autograded" / student / "ps1" / REPORT)


def scores(report: Report) -> dict[str, Decimal | None]:
    """Points by exercise."""
    return {one.id.removesuffix("-test"): one.score for one in report.exercises}


@pytest.fixture(scope="module")
def credit_report(tmp_path_factory: pytest.TempPathFactory, small_course: Callable) -> Report:
    """One examination of a submission whose partial-credit tests end in each of the values."""
    settings = small_course(tmp_path_factory.mktemp("credit"), {"credit": CREDIT})
    assignment = read_assignment(settings.course, "credit", released=False)
    conditions = pipeline.conditions_of(settings, "ps1", best_level())
    cells = {name: f"{name} = {text}" for text, name in VALUES.items()}
    files = {"nb.ipynb": dump(with_answers(CREDIT, cells))}
    with pipeline.new_zygote() as zygote:
        course = pipeline.Course(assignment, run_solution(assignment, conditions, zygote), conditions)
        return pipeline.grade(pipeline.Job("student-01", files, (), hash_files(files)), course, zygote).report


@pytest.fixture(scope="module")
def credit(credit_report: Report) -> dict[str, ExerciseResult]:
    """The exercises of the partial-credit assignment, by the value that its tests ended in."""
    found = {one.id: one for one in credit_report.exercises}
    return {text: found[f"{name}-test"] for text, name in VALUES.items()}


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_counts_by_value(text: str, credit: dict[str, ExerciseResult]) -> None:
    """A partial-credit test gives the number that it ends in, whatever type carries the number."""
    exercise = credit[text]
    assert exercise.score == Decimal(NUMBERS[text])
    assert exercise.checks[0].outcome is not Outcome.broken


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_of_points_gives_none(
    text: str, credit: dict[str, ExerciseResult], credit_report: Report
) -> None:
    """A partial-credit test that ends in anything but a number from 0 to its points is broken, flagged, and earns 0."""
    exercise = credit[text]
    assert (exercise.score, exercise.checks[0].outcome) == (0, Outcome.broken)
    flagged = [flag.cell for flag in credit_report.flags if flag.name == "broken_check"]
    assert exercise.id in flagged


def test_partial_credit_adds_up(credit: dict[str, ExerciseResult], credit_report: Report) -> None:
    """The total is the exact sum of the numbers that count."""
    assert credit_report.score == sum(map(Decimal, NUMBERS.values()))


def test_warnings_cost_nothing(course: Settings) -> None:
    """A right answer that writes warnings and log lines to stderr, in its cell and when called, earns full marks."""
    report = report_of(course, "warns")
    assert (report.status, report.score, report.max_score) == (Status.graded, 4, 4)


@pytest.mark.parametrize(("student", "exercise"), [("killed", "killed"), ("kills", "calm")])
def test_a_killed_candidate_costs_one_exercise(course: Settings, student: str, exercise: str) -> None:
    """A candidate that dies, in a cell or when called by a test, costs that exercise, with a reason; the others stand."""
    report = report_of(course, student)
    assert report.status is Status.graded
    assert scores(report) == {"first": 1, "killed": 1, "calm": 1, "last": 1} | {exercise: 0}
    assert [one.id for one in report.exercises if one.reason] == [f"{exercise}-test"]
    assert report.receipt.restarts == 1


@pytest.mark.parametrize("student", BROKEN)
def test_a_broken_file_is_not_graded_in_report_and_line(course: Settings, student: str) -> None:
    """A file that cannot be read is `not_graded`, with a sentence and without a score, in the report and its line."""
    report = report_of(course, student)
    assert (report.status, report.score) == (Status.not_graded, None)
    assert report.reason.startswith("nb.ipynb is ")
    line = json.loads(json_line(report))
    assert (line["status"], line["score"], line["reason"]) == ("not_graded", None, report.reason)
    assert line["exercises"] == []


def test_a_broken_file_is_not_graded_in_the_gradebook(course: Settings) -> None:
    """The gradebook holds the status and the reason of what could not be graded, and the others as graded."""
    found = {one.student: (one.status, one.reason) for one in statuses(course.course) if one.assignment == "ps1"}
    reasons = {student: report_of(course, student).reason for student in BROKEN}
    graded = dict.fromkeys(CLASS, ("graded", None))
    assert found == graded | {student: ("not_graded", reason) for student, reason in reasons.items()}


def test_a_broken_file_is_blank_in_the_export(course: Settings) -> None:
    """`nbgrader export` leaves the score of what could not be graded blank, beside status and reason; never 0."""
    path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/bin", "/bin"))
    (course.course / "home").mkdir()
    environment = {"PATH": path, "HOME": str(course.course / "home"), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "nbgrader", "export"]
    done = subprocess.run(command, cwd=course.course, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with (course.course / "grades.csv").open() as stream:
        rows = {row["student_id"]: row for row in csv.DictReader(stream) if row["assignment"] == "ps1"}
    exported = {student: (row["score"], row["raw_score"], row["status"]) for student, row in rows.items()}
    assert {student: exported[student] for student in BROKEN} == dict.fromkeys(BROKEN, ("", "", "not_graded"))
    assert all(rows[student]["reason"].startswith("nb.ipynb is ") for student in BROKEN)
    points = {"author": 4, "warns": 4, "killed": 3, "kills": 3, "off": 3}
    assert {student: float(exported[student][0]) for student in CLASS} == points


def test_an_earlier_score_stands_in_the_gradebook(course: Settings, tmp_path: Path) -> None:
    """Who hands in something unreadable after a good notebook keeps the points, and report and gradebook say why."""
    home = tmp_path / "course"
    shutil.copytree(course.course, home)
    settings = config.load(home)
    (home / "submitted" / "killed" / "ps1" / "nb.ipynb").write_bytes(BROKEN["cut"])
    ready = grading.prepare(settings, "ps1", best_level())
    grading.grade_class(settings, ready, ["killed"], 1, False, lambda report: None)
    report = report_of(settings, "killed")
    assert (report.status, report.score) == (Status.not_graded, None)
    assert [flag.name for flag in report.flags] == ["earlier_stands"]
    [row] = [one for one in statuses(home) if one.student == "killed"]
    assert (row.status, row.score) == ("graded", 3)
    assert row.reason == f"A later hand-in could not be graded: {report.reason}"
    [page] = [
        page
        for found, names in grading.stored(home, "ps1")
        if found == report
        for page in feedback.write(home, found, names)
    ]
    assert "3 of 4 points" in page.read_text()


def test_what_is_unchanged_is_charged_anew(course: Settings, tmp_path: Path) -> None:
    """A due date and an extension that are given after grading count on the next run, and no cell runs again for them."""
    from nbgrader.api import Gradebook

    home = tmp_path / "course"
    shutil.copytree(course.course, home)
    (home / "submitted" / "author" / "ps1" / "timestamp.txt").write_text("2026-11-12 14:05:00 UTC\n")
    with (home / "course_config.py").open("a") as file:
        file.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    settings = config.load(home)
    ready = grading.prepare(settings, "ps1", best_level())
    told: list[Report] = []

    def grade() -> Decimal | None:
        grading.grade_class(settings, ready, ["author"], 1, False, told.append)
        return told[-1].score

    assert (grade(), grade()) == (4, 4)
    with Gradebook(default_url(home), settings.course_id) as book:
        book.update_or_create_assignment("ps1", duedate="2026-11-12 12:05:00 UTC")
        assert (grade(), grade()) == (0, 0)
        book.grant_extension("ps1", "author", hours=3)
        assert grade() == 4
    assert len({one.receipt.started for one in told if one.receipt}) == 1


def test_nbgraders_door_gives_the_same_reports(course: Settings, through_nbgrader: Answered) -> None:
    """What formgrader's button stores for each student is our report: points, checks, hints, flags, reasons."""
    for student in (*CLASS, *BROKEN):
        found, wanted = (
            msgspec.structs.replace(
                one, receipt=None, exercises=tuple(msgspec.structs.replace(each, seconds=0.0) for each in one.exercises)
            )
            for one in (
                read(home / "autograded" / student / "ps1" / REPORT)
                for home in (through_nbgrader.course, course.course)
            )
        )
        assert found == wanted


def test_nbgraders_door_writes_the_same_notebooks_and_pages(course: Settings, through_nbgrader: Answered) -> None:
    """Graded notebooks are the same to the byte, and the pages that the other button writes are ours."""
    for student in CLASS:
        name = f"autograded/{student}/ps1/nb.ipynb"
        assert (through_nbgrader.course / name).read_bytes() == (course.course / name).read_bytes()
    pages = {one.parent.parent.name: one.read_text() for one in through_nbgrader.course.glob("feedback/*/ps1/nb.html")}
    assert set(pages) == {*CLASS, *BROKEN}
    assert HINT in pages["off"]
    assert all("assert " not in page for page in pages.values())


def test_nbgraders_door_fills_the_gradebook_alike(course: Settings, through_nbgrader: Answered) -> None:
    """Scores, comments and statuses are the same rows, and what a person gave stays."""
    with (
        closing(sqlite3.connect(course.course / "gradebook.db")) as ours,
        closing(sqlite3.connect(through_nbgrader.course / "gradebook.db")) as theirs,
    ):
        for query in ROWS:
            assert theirs.execute(query).fetchall() == ours.execute(query).fetchall() != []
        assert theirs.execute("select count(*) from grade where manual_score = 0.25").fetchone() == (len(CLASS),)


def test_nbgraders_door_tells_who_has_no_score(through_nbgrader: Answered) -> None:
    """The button answers with an error when somebody could not be graded; its log has everybody, and the reasons."""
    assert through_nbgrader.graded["success"] is False
    for student in BROKEN:
        assert f"{student}: not graded. nb.ipynb is " in through_nbgrader.graded["log"]
    assert "author: graded, 3.25 of 4 points." in through_nbgrader.graded["log"]
    assert through_nbgrader.returned["success"] is True


def test_the_graded_notebook_shows_flags_and_hints(through_nbgrader: Answered) -> None:
    """Whoever opens it in formgrader reads first what to look at, and under a failed check what the student is told."""
    first, *others = json.loads((through_nbgrader.course / "autograded/off/ps1/nb.ipynb").read_text())["cells"]
    assert "builtin_hidden" in first["outputs"][0]["text"]
    assert f"the student reads: {HINT}" in json.dumps([one.get("outputs") for one in others])
