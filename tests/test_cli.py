"""Laws of the command line: exit statuses, messages, the JSON contract, and that nothing is stored which was not graded."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graders import cli
from graders.kernels.nursery import best_level
from graders.results import journal

REPOSITORY = Path(__file__).parent.parent
SECRET = "heron"  # stands in hidden tests alone


def settings(**more: object) -> str:
    """A course_config.py."""
    lines = [f"c.Graders.{name} = {value!r}" for name, value in ({"isolation": best_level()} | more).items()]
    export = 'c.ExportApp.plugin_class = "graders.results.exporters.StatusExport"'
    return "\n".join(["c = get_config()", 'c.CourseDirectory.course_id = "course"', export, *lines, ""])


def cell(id: str, source: str, points: int | None = None, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """One cell with nbgrader's metadata."""
    marks = {"grade_id": id, "schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    cell_type = more.pop("cell_type", "code")
    marks |= more | ({} if points is None else {"points": points})
    made = {"cell_type": cell_type, "id": id, "metadata": {"nbgrader": marks}, "source": source}
    if kind:
        made["metadata"]["graders"] = {"kind": kind}
    return made | ({"execution_count": None, "outputs": []} if cell_type == "code" else {})


DOUBLE_TEST = f"""\
assert double(1) == 2
### BEGIN HIDDEN TESTS
from graders.checks import check, expect
{SECRET} = -3
with check("It doubles", points=1):
    expect(double(21), 42)
with check("Also below zero", points=2, hint="Try a negative number."):
    expect(double({SECRET}), -6)
### END HIDDEN TESTS
"""
FIVE_TEST = f"### BEGIN HIDDEN TESTS\nassert five == 5, '{SECRET}'\n### END HIDDEN TESTS\nassert five"
CELLS = [
    cell("double", "def double(v):\n    ### BEGIN SOLUTION\n    return 2 * v\n    ### END SOLUTION", solution=True),
    cell("double-test", DOUBLE_TEST, 3, grade=True, locked=True),
    cell("five", "### BEGIN SOLUTION\nfive = 5\n### END SOLUTION", solution=True),
    cell("five-test", FIVE_TEST, 2, "checkpoint", grade=True, locked=True),
    cell("why", "YOUR ANSWER HERE", 1, grade=True, solution=True, cell_type="markdown"),
]
RIGHT = {"double": "def double(v):\n    return v + v", "five": "five = 2 + 3", "why": "Since it is so."}
CLASS = {
    "student-01": RIGHT,
    "student-02": RIGHT | {"double": "def double(v):\n    return abs(v) * 2"},
    "student-04": {},
}
SCORES = {"student-01": 5, "student-02": 3, "student-03": None, "student-04": 0}


def notebook(cells: list[dict[str, Any]]) -> str:
    """A notebook of these cells."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


def hand_in(course: Path, student: str, answers: dict[str, str]) -> Path:
    """Put a submission of the released notebook with these answers below submitted/."""
    released = json.loads((course / "release/ps1/ps1.ipynb").read_text())
    for one in released["cells"]:
        id = one["metadata"].get("nbgrader", {}).get("grade_id")
        one["source"] = answers.get(id, one["source"])
        if id == "double":  # what it showed where the student saved it, and what nobody shows again
            html = {"output_type": "display_data", "data": {"text/html": "<b>loud</b>"}, "metadata": {}}
            one["outputs"] = [{"output_type": "stream", "name": "stdout", "text": f"{student} sees 4 & more"}, html]
    path = course / "submitted" / student / "ps1" / "ps1.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(released))
    return path


def graders(course: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a person would."""
    command = [sys.executable, "-m", "graders.cli", "--course", str(course), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A course with one graded class, and what `grade --json` said. Copy the folder, do not change it."""
    course = tmp_path_factory.mktemp("course")
    for name in ("ps1", "ps2"):
        (course / "source" / name).mkdir(parents=True)
        (course / "source" / name / f"{name}.ipynb").write_text(notebook(CELLS))
    (course / "course_config.py").write_text(settings(cell_timeout_s=10))
    shutil.copy(REPOSITORY / "nbgrader_config.py", course)
    released = graders(course, "release", "ps1")
    assert (released.returncode, released.stderr) == (0, "")
    assert "ps1: released; its solution passes all 2 checks" in released.stdout
    for student, answers in CLASS.items():
        hand_in(course, student, answers)
    broken = course / "submitted/student-03/ps1"
    broken.mkdir(parents=True)
    (broken / "ps1.ipynb").write_text('{"cells": [')
    return course, graders(course, "grade", "ps1", "--json", "--jobs", "2")


@pytest.fixture
def course(graded: tuple[Path, object], tmp_path: Path) -> Path:
    """A copy of the graded course."""
    return Path(shutil.copytree(graded[0], tmp_path / "course"))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: (exit status, stdout, stderr)."""

    def run(course: Path, *arguments: str) -> tuple[int, str, str]:
        status = cli.main(["--course", str(course), *arguments])
        return status, *capsys.readouterr()

    return run


def stored(course: Path, student: str) -> dict[str, Any]:
    """The stored report of a student."""
    found: dict[str, Any] = json.loads((course / "autograded" / student / "ps1" / "report.json").read_text())
    return found


Said = Callable[..., tuple[int, str, str]]


def test_json_is_one_object_a_line_and_nothing_else(
    graded: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """Every field of the contract, with these names and types; blank is null, points are numbers; status 1 for a person."""
    _, done = graded
    assert (done.returncode, done.stderr) == (1, "")
    lines = {one["student"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert {student: one["score"] for student, one in lines.items()} == SCORES
    for one in lines.values():
        wanted = {"student", "assignment", "status", "score", "max_score", "flags", "exercises"}
        assert wanted <= set(one) <= wanted | {"reason"}
        assert (one["assignment"], one["max_score"]) == ("ps1", 6)
    broken = lines["student-03"]
    assert (broken["status"], broken["score"], broken["exercises"]) == ("not_graded", None, [])
    assert "ps1.ipynb is not complete JSON" in broken["reason"]
    assert {one["status"] for one in lines.values()} == {"graded", "not_graded"}
    assert [flag["name"] for flag in lines["student-01"]["flags"]] == ["awaits_marking"]
    assert [flag["name"] for flag in lines["student-04"]["flags"]] == ["not_attempted"]
    assert lines["student-02"]["exercises"] == [
        {
            "id": "double-test",
            "notebook": "ps1",
            "kind": "exercise",
            "score": 1,
            "max_score": 3,
            "checks": [
                {"title": "It doubles", "outcome": "passed", "points": 1, "earned": 1, "hint": None},
                {
                    "title": "Also below zero",
                    "outcome": "failed",
                    "points": 2,
                    "earned": 0,
                    "hint": "Try a negative number.",
                },
            ],
        },
        {
            "id": "five-test",
            "notebook": "ps1",
            "kind": "checkpoint",
            "score": 2,
            "max_score": 2,
            "checks": [
                {"title": "The tests of this cell pass", "outcome": "passed", "points": 2, "earned": 2, "hint": None}
            ],
        },
        {"id": "why", "notebook": "ps1", "kind": "exercise", "score": None, "max_score": 1, "checks": []},
    ]
    assert SECRET not in done.stdout


def test_nbgrader_exports_the_same_scores_and_statuses(course: Path) -> None:
    """`nbgrader export` shows what we show: graded, not graded and missing, and blank where there is no score."""
    environment = os.environ | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}
    for arguments in (["db", "student", "add", "student-05"], ["export"]):
        command = [sys.executable, "-m", "nbgrader", *arguments]
        done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    with (course / "grades.csv").open(newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file) if row["assignment"] == "ps1"}
    assert {student: (row["status"], row["score"]) for student, row in rows.items()} == {
        "student-01": ("graded", "5.0"),
        "student-02": ("graded", "3.0"),
        "student-03": ("not_graded", ""),
        "student-04": ("graded", "0.0"),
        "student-05": ("missing", ""),
    }
    assert {float(row["max_score"]) for row in rows.values()} == {6.0}


def test_unchanged_submissions_are_not_run_again(course: Path, said: Said) -> None:
    """What is graded and unchanged is told and left alone; --again runs it, and a changed file is run by itself."""
    before = {student: stored(course, student)["receipt"]["started"] for student in CLASS}
    status, out, err = said(course, "grade", "ps1", "--json", "--student", "student-01", "--student", "student-04")
    assert (status, err) == (1, "")
    assert {one["student"]: one["score"] for one in map(json.loads, out.splitlines())} == {
        "student-01": 5,
        "student-04": 0,
    }
    assert {student: stored(course, student)["receipt"]["started"] for student in CLASS} == before
    hand_in(course, "student-02", RIGHT)
    status, out, _ = said(course, "grade", "ps1", "--json", "--student", "student-01", "--student", "student-02")
    assert {one["student"]: one["score"] for one in map(json.loads, out.splitlines())} == {
        "student-01": 5,
        "student-02": 5,
    }
    assert stored(course, "student-01")["receipt"]["started"] == before["student-01"]
    assert stored(course, "student-02")["receipt"]["started"] > before["student-02"]
    assert said(course, "grade", "ps1", "--again", "--student", "student-01")[0] == 1
    assert stored(course, "student-01")["receipt"]["started"] > before["student-01"]


def test_regrade_shows_who_changes_and_stores_nothing_by_itself(course: Path, said: Said) -> None:
    """P6: points that a new release changes are shown by student, exercise and check, with the reason; with --apply they are stored, and
    the journal keeps the old."""
    before = {student: stored(course, student) for student in SCORES}
    worth_more = DOUBLE_TEST.replace('("It doubles", points=1)', '("It doubles", points=3)')
    cells = [
        cell("double-test", worth_more, 5, grade=True, locked=True) if one["id"] == "double-test" else one
        for one in CELLS
    ]
    (course / "source/ps1/ps1.ipynb").write_text(notebook(cells))
    released = graders(course, "release", "ps1")
    assert released.returncode == 0
    [first, second] = [line.new["assignment_sha256"] for line in journal.lines(course) if line.act == "release"]
    concerned = f"ps1 changes: 4 have handed in, and 4 of them are graded as of {first[:12]} (student-01, student-02,"
    assert 0 <= released.stdout.index(concerned) < released.stdout.index(f"Its version is {second[:12]}")
    told = journal.lines(course)
    status, out, _ = said(course, "regrade", "ps1")
    assert out.startswith(
        "student-01: 5 of 6 → 7 of 8. The assignment was released anew.\n"
        "  double-test: 3 → 5\n"
        "    It doubles: passed (1 of 1) → passed (3 of 3)\n"
        "student-02: 3 of 6 → 5 of 8. The assignment was released anew.\n"
    )
    assert "student-04: 0 of 6 → 0 of 8." in out
    assert journal.lines(course) == told
    assert (status, {student: stored(course, student) for student in SCORES}) == (1, before)
    assert said(course, "regrade", "ps1", "--student", "student-01", "--apply")[0] == 1
    assert {student: stored(course, student)["score"] for student in SCORES} == SCORES | {"student-01": 7}
    [line] = journal.lines(course)[len(told) :]
    assert (line.act, line.student, line.why) == ("regrade", "student-01", "The assignment was released anew.")
    assert (line.old["score"], line.new["score"], line.old["max_score"], line.new["max_score"]) == (5, 7, 6, 8)
    assert said(course, "regrade", "ps1", "--student", "student-01")[:2] == (
        0,
        "Nobody's points or status would change.\n",
    )


def test_calm_results_end_with_zero_and_a_table(course: Path, said: Said) -> None:
    """Status 0 when nobody has to look; without --json there is a table that names student, status and score."""
    status, out, _ = said(course, "grade", "ps1", "--student", "student-04")
    assert status == 0
    assert all(word in out for word in ("student-04", "graded", "0 of 6", "not_attempted"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["grade", "ps2"], ["release/ps2", "has not been released", "graders release ps2"]),
        (["grade", "ps3"], ["no assignment 'ps3'", "source", "ps1, ps2"]),
        (["release", "ps3"], ["no assignment 'ps3'", "source", "ps1, ps2"]),
        (["grade", "ps1", "--target", "tpuu"], ["course_config.py", "no target tpuu", "Did you mean tpu?"]),
        (["grade", "ps1", "--student", "student-99"], ["'student-99'", "'ps1'", "submitted", "student-01"]),
        (["grade", "ps1", "--student", "student-*"], ["'student-*'", "'ps1'", "submitted", "student-01, student-02"]),
        (["record", "ps2"], ["release/ps2", "has not been released", "graders release ps2"]),
        (["evidence", "student-99"], ["'student-99'", "autograded", "student-01", "graders grade A"]),
        (["evidence", "../student-01"], ["'../student-01'", "cannot be the name of a folder"]),
        (["feedback", "ps2"], ["'ps2'", "Next step: graders grade ps2"]),
        (["overview", "ps2"], ["'ps2'", "Next step: graders grade ps2"]),
        (["review", "ps2"], ["'ps2'", "Next step: graders grade ps2"]),
        (["review", "ps1", "--accept", "student-01", "x"], ["'student-01'", "'x'", "Open there: none"]),
        (["review", "ps1", "--override", "student-01", "double-test", "2"], ["needs a reason", "--reason TEXT"]),
        (["review", "ps1", "--override", "student-01", "double-test", "x", "--reason", "y"], ["'x'", "no number"]),
        (["review", "ps1", "--rerun", "student-99"], ["'student-99'", "'ps1'"]),
        (["export", "--format", "csv", "ps3"], ["'ps3'", "ps1", "Next step: graders grade ps3"]),
        (["export", "--format", "csv", "--output", "."], ["cannot be written", "Name another file"]),
        (["simulate", "ps1"], ["tests/answers/ps1", "no known answers"]),
        (["verify", "no-such-report.json"], ["no-such-report.json", "cannot be read", "autograded/"]),
        (["demo"], ["source/performance-02", "clone of this project's repository"]),
    ],
)
def test_what_cannot_be_done_is_told(course: Path, said: Said, arguments: list[str], told: list[str]) -> None:
    """Status 2, nothing on stdout, and one message with what, where, and what to do, without a traceback."""
    status, out, err = said(course, *arguments)
    assert (status, out) == (2, "")
    assert f"graders {arguments[0]}: " in err
    assert "Traceback" not in err
    assert [word for word in told if word not in err] == [], err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (settings(cell_timout_s=3), ["c.Graders.cell_timout_s", "Did you mean cell_timeout_s?"]),
        (settings(nonsense=3), ["c.Graders.nonsense", "Known names:", "memory_bytes"]),
        (settings(isolation="walls"), ["isolation", "walls", "namespaces"]),
        (settings(memory_bytes=1), ["memory_bytes", "1"]),
        (settings(cell_timeout_s="long"), ["cell_timeout_s", "long"]),
        ("1 / 0", ["could not be run", "ZeroDivisionError"]),
        ("c = get_config(", ["could not be run", "SyntaxError"]),
        (None, ["is missing", "--course DIR", "course_id"]),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, said: Said, text: str | None, told: list[str]) -> None:
    """A wrong name or value is named with its file, and with what was probably meant."""
    if text is not None:
        (tmp_path / "course_config.py").write_text(text)
    for command in (["grade", "ps1"], ["release", "ps1"], ["doctor"] if text else ["feedback", "ps1"]):
        status, out, err = said(tmp_path, *command)
        assert (status, out) == (2, "")
        assert [word for word in [str(tmp_path / "course_config.py"), *told] if word not in err] == [], err


def test_debug_shows_the_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only --debug shows a traceback, after the message."""
    assert cli.main(["--debug", "--course", str(tmp_path), "grade", "ps1"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_no_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command, or with an unknown one, status 2 and the usage."""
    for arguments in ([], ["nonsense"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 2
    assert "usage: graders" in capsys.readouterr().err


def test_verify_tells_one_changed_byte(course: Path, said: Said) -> None:
    """Status 0 on what was signed; 2 with a message of its own on one changed byte of report, signature or submission."""
    report = course / "autograded/student-01/ps1/report.json"
    status, out, _ = said(course, "verify", str(report))
    assert status == 0
    assert all(word in out for word in ("student-01", "ps1", "graded", "is what was signed"))
    for path, told in (
        (report, "is not what was signed"),
        (report.with_name("report.json.sig"), "is not what was signed"),
        (course / "submitted/student-01/ps1/ps1.ipynb", "is not what was graded"),
    ):
        whole = path.read_bytes()
        for position in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
            status, out, err = said(course, "verify", str(report))
            assert (status, out) == (2, "")
            assert told in err
        path.write_bytes(whole)
    assert said(course, "verify", str(report))[0] == 0


def test_feedback_shows_no_hidden_line(course: Path, said: Said) -> None:
    """A page for every report, also of what could not be graded; titles and hints, and nothing of a hidden region."""
    status, out, _ = said(course, "feedback", "ps1")
    assert status == 0
    assert out.startswith("4 pages")
    pages = {student: (course / f"feedback/{student}/ps1/ps1.html").read_text() for student in SCORES}
    assert "Also below zero" in pages["student-02"]
    assert "Try a negative number." in pages["student-02"]
    assert "not complete JSON" in pages["student-03"]
    assert "student-02 sees 4 &amp; more" in pages["student-02"]
    assert "loud" not in pages["student-02"]
    for page in pages.values():
        for line in ("HIDDEN TESTS", SECRET, "expect(double(", "-6", "assert five == 5", "SOLUTION"):
            assert line not in page


def test_the_class_page_is_for_staff(course: Path, said: Said) -> None:
    """One page beside the reports, none in what is returned; it names who needs a person, and no hidden value."""
    assert said(course, "feedback", "ps1")[0] == 0
    status, out, _ = said(course, "overview", "ps1")
    page = (course / "autograded/ps1.html").read_text()
    assert (status, str(course / "autograded/ps1.html") in out) == (0, True)
    for told in ("not complete JSON", "Since it is so.", "Also below zero", "../feedback/student-02/ps1/ps1.html"):
        assert told in page
    assert SECRET not in page
    returned = [path.read_text() for path in (course / "feedback").rglob("*.html")]
    assert len(returned) == 4
    assert not [one for one in returned if "for staff" in one]


def test_flags_are_reviewed_and_the_journal_says_by_whom(course: Path, said: Said) -> None:
    """What waits is listed; it is accepted, overridden or run again, each with a line of who, when, old and new."""
    status, out, _ = said(course, "review", "ps1")
    assert status == 1
    assert "student-03  not_graded\n      ps1.ipynb is not complete JSON" in out
    assert "Written answers to mark in formgrader: 2." in out
    assert said(course, "review", "ps1", "--accept", "student-03", "not_graded")[0] == 0
    assert said(course, "review", "ps1")[1].startswith("No flag waits.")
    status, out, _ = said(
        course, "review", "ps1", "--override", "student-02", "double-test", "2.5", "--reason", "Half."
    )
    assert (status, "double-test: 1 → 2.5 of 3" in out) == (0, True)
    status, out, _ = said(course, "review", "ps1", "--rerun", "student-02", "--reason", "Is it so?")
    assert (status, out.splitlines()[-1]) == (0, "student-02: 4.5 of 6 → 4.5 of 6.")
    with (course / "scores.csv").open("w") as file:
        file.write(said(course, "export", "--format", "csv", "ps1")[1])
    with (course / "scores.csv").open(newline="") as file:
        assert {row["student"]: row["score"] for row in csv.DictReader(file)}["student-02"] == "4.5"
    lines = [json.loads(line) for line in (course / ".graders/journal.jsonl").read_text().splitlines()]
    lines = [one for one in lines if one["student"]]  # a release is noted too
    assert [(one["act"], one["student"], one["why"]) for one in lines] == [
        ("accept", "student-03", ""),
        ("override", "student-02", "Half."),
        ("rerun", "student-02", "Is it so?"),
    ]
    assert (lines[1]["old"]["score"], lines[1]["new"]["score"], lines[1]["exercise"]) == (1, 2.5, "double-test")
    assert lines[2]["old"]["score"] == 4.5
    assert {bool(one["who"] and one["time"]) for one in lines} == {True}


def test_exports_have_the_scores_of_nbgrader(course: Path, said: Said) -> None:
    """CSV, JSON, Canvas and Moodle: the score once it is judged, and blank, null or a dash where there is none."""
    wanted = {"student-01": "5", "student-02": "3", "student-03": "", "student-04": "0"}
    status, out, err = said(course, "export", "--format", "csv")
    table = {row["student"]: row for row in csv.DictReader(out.splitlines()) if row["assignment"] == "ps1"}
    assert (status, err, {student: row["score"] for student, row in table.items()}) == (0, "", wanted)
    assert (table["student-02"]["exercises"], table["student-02"]["checkpoints"]) == ("1", "2")
    data = {one["student"]: one["score"] for one in json.loads(said(course, "export", "--format", "json", "ps1")[1])}
    assert data == SCORES
    file = course / "scores" / "canvas.csv"
    assert said(course, "export", "ps1", "--format", "canvas", "--output", str(file)) == (0, "", "")
    canvas = {row["SIS Login ID"]: row["ps1"] for row in csv.DictReader(file.read_text().splitlines())}
    # two answers wait for a person, so nothing is final yet
    assert canvas == {"": "6", "student-01": "", "student-02": "", "student-03": "", "student-04": "0"}
    assert file.stat().st_mode & 0o007 == 0
    moodle = {
        row["Username"]: row for row in csv.DictReader(said(course, "export", "--format", "moodle")[1].splitlines())
    }
    assert {student: row["ps1"] for student, row in moodle.items()} == dict.fromkeys(wanted, "-") | {"student-04": "0"}
    assert moodle["student-01"]["ps1 status"] == "awaits_marking"


def test_doctor_says_what_holds(course: Path, said: Said) -> None:
    """Status 0 exactly if the demanded level can be had and nothing in any level is open."""
    (course / "course_config.py").write_text(settings(isolation="namespaces"))
    status, out, _ = said(course, "doctor")
    enough = best_level() == "namespaces"
    assert status == (0 if enough and "OPEN" not in out else 1)
    assert ("grading runs" if enough else "grading refuses to run") in out
    assert f"demands 'namespaces'; the best level here is '{best_level()}'" in out


@pytest.mark.parametrize("target", ["cpu", "tpu", "tpu-export", "tpu-compile"])
def test_doctor_says_whether_a_target_can_be_had(course: Path, said: Said, target: str) -> None:
    """Status 0 if it can; else 1 and the next step, and then a target with a chip is refused at once, before anybody is graded."""
    status, out, _ = said(course, "doctor", "--target", target)
    assert f"Target {target!r} " in out
    assert (status == 0) == ("can be had here." in out)
    assert (status == 1) == ("Next step: " in out)
    if "cannot be had here" in out and target != "tpu-compile":
        status, out, err = said(course, "grade", "ps1", "--target", target)
        assert (status, out) == (2, "")
        assert f"graders grade: Target {target!r} cannot be had here: " in err


def test_tests_in_the_kernel_are_said_to_be(course: Path, said: Said) -> None:
    """With examine = "kernel" the scores are the same, and report and receipt say where the tests ran."""
    (course / "course_config.py").write_text(settings(cell_timeout_s=10, examine="kernel"))
    _, out, _ = said(course, "grade", "ps1", "--json", "--jobs", "2")
    assert {one["student"]: one["score"] for one in map(json.loads, out.splitlines())} == SCORES
    for student in CLASS:
        report = stored(course, student)
        assert "examined_in_kernel" in [flag["name"] for flag in report["flags"]]
        assert report["receipt"]["examine"] == "kernel"


_WITHOUT = """
import sys
from graders import cli
from graders.kernels import seccomp, syscalls
from graders.run import demo
if __name__ == "__main__":
    syscalls.set_no_new_privileges()
    seccomp.forbid("unshare")
    demo.STUDENTS = 4
    sys.exit(cli.main(sys.argv[1:]))
"""


def without_namespaces(course: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where neither this process nor any that it starts can make a namespace."""
    script = course / "without.py"
    script.write_text(_WITHOUT)
    command = [sys.executable, str(script), "--course", str(course), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_grading_refuses_walls_that_cannot_be_had(course: Path) -> None:
    """Where namespaces are demanded and forbidden: status 2, a message with the way out, and nothing stored."""
    (course / "course_config.py").write_text(settings(isolation="namespaces"))
    shutil.rmtree(course / "autograded")
    gradebook = (course / "gradebook.db").read_bytes()
    done = without_namespaces(course, "grade", "ps1", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    told = ("'namespaces' could not be put up on this machine", "graders doctor", "c.Graders.isolation")
    assert [word for word in told if word not in done.stderr] == []
    assert not (course / "autograded").exists()
    assert (course / "gradebook.db").read_bytes() == gradebook
    released = without_namespaces(course, "release", "ps2")
    assert released.returncode == 2
    assert not (course / "release/ps2").exists()
    doctor = without_namespaces(course, "doctor")
    assert doctor.returncode == 1
    assert "grading refuses to run" in doctor.stdout


@pytest.mark.system
def test_the_demo_goes_on_without_namespaces_and_says_so(tmp_path: Path) -> None:
    """The demo's class is our own: it runs with the walls that there are, names them, and its scores are the known ones."""
    for name in ("source/performance-02", "tests/answers/performance-02"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    for name in ("course_config.py", "nbgrader_config.py"):
        shutil.copy(REPOSITORY / name, tmp_path)
    done = without_namespaces(tmp_path, "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it runs with 'process'" in done.stderr
    assert "Walls: process. 4 of 4 scores are the known ones." in done.stdout
    pages = [Path(line.strip()) for line in done.stdout.splitlines() if line.strip().endswith(".html")]
    assert len(pages) == 2
    assert all(page.is_file() for page in pages)
    assert not (tmp_path / "submitted").exists()
