"""Laws of `graders evidence`: one folder and one page a student, with nothing in it that a hidden test has said or passed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from graders import cli, config
from graders.course.assignments import read_assignment, released_notebook
from graders.course.simulate import notebook_with
from graders.errors import GradersError, SubmissionError
from graders.kernels.nursery import best_level
from graders.run import evidence, grading, releasing

TEXT, VALUE = "quetzal", 7919  # the words of a hidden test, and what it calls student code with
CONFIG = f"""\
c = get_config()
c.CourseDirectory.course_id = "small"
c.Graders.isolation = {best_level()!r}
"""


def cell(id: str, source: str, points: int | None = None, outcome: str | None = None, **marks: bool) -> dict[str, Any]:
    """A code cell with nbgrader's metadata."""
    meta = {"grade": False, "solution": False, "locked": False, "task": False} | marks
    meta |= {"grade_id": id, "schema_version": 3} | ({} if points is None else {"points": points})
    made = {"cell_type": "code", "metadata": {"nbgrader": meta, "graders": {"outcome": outcome}}, "source": source}
    return made | {"id": id, "execution_count": None, "outputs": []}


TEST = f"""\
assert double(1) == 2
### BEGIN HIDDEN TESTS
from graders.checks import check, expect
with check("It doubles", hint="Try a prime."):
    expect(double({VALUE}), {2 * VALUE})
assert double(0) == 0, "{TEXT}"
### END HIDDEN TESTS"""
CELLS = [
    cell("setup", "import json\nseen = []", locked=True),
    cell("double", "def double(x):\n    ### BEGIN SOLUTION\n    return x + x\n    ### END SOLUTION", solution=True),
    cell("double-test", TEST, 1, "doubling", grade=True, locked=True),
    cell(
        "evidence", "evidence = {'calls': len(seen), 'seen': seen, 'double': str(double)[:9]}\nprint(json.dumps(evidence))",
        locked=True,
    ),
]  # fmt: skip
LISTENS = "def double(x):\n    seen.append(x)\n    print('called with', x)\n    return x + x"
CLASS = {
    "student-01": LISTENS,
    "student-02": "def double(x):\n    return 3 * x\n\nshow = print\ndef print(record):\n    show('<script>', record)",
    "student-03": None,
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with a graded class. Copy the folder, do not change it."""
    home = tmp_path_factory.mktemp("course")
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": CELLS}
    (home / "source" / "ps").mkdir(parents=True)
    (home / "source" / "ps" / "nb.ipynb").write_text(json.dumps(made))
    for name in ("course_config.py", "nbgrader_config.py"):
        (home / name).write_text(CONFIG)
    settings = config.load(home)
    releasing.release(settings, "ps")
    for student, answer in CLASS.items():
        folder = home / "submitted" / student / "ps"
        folder.mkdir(parents=True)
        text = json.dumps(notebook_with(released_notebook(home, "ps", "nb"), {"double": answer or ""}))
        (folder / "nb.ipynb").write_text(text if answer else text[:200])
    grading.grade_class(settings, grading.prepare(settings, "ps"), list(CLASS), 1, False, lambda _: None)
    return home


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Path:
    """A copy of the graded course."""
    return Path(shutil.copytree(graded, tmp_path / "course"))


def exported(course: Path, student: str) -> tuple[dict[str, Any], str, dict[str, str]]:
    """A portfolio as its JSON, its page and all its files."""
    page = evidence.export(config.load(course), student)
    files = {path.relative_to(page.parent).as_posix(): path.read_text() for path in page.parent.rglob("*.*")}
    return json.loads(files["portfolio.json"]), files["portfolio.html"], files


def outputs(notebook: str, id: str) -> str:
    """What stands below a cell."""
    cells = json.loads(notebook)["cells"]
    one = next(one for one in cells if one["metadata"].get("nbgrader", {}).get("grade_id") == id)
    return json.dumps(one["outputs"])


def test_a_portfolio_holds_notebook_record_receipt_and_scores(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`graders evidence STUDENT` makes one folder below evidence/, and says where its page is; it changes no grade."""
    before = {path: path.read_bytes() for path in (course / "autograded").rglob("*.*")}
    assert cli.main(["--course", str(course), "evidence", "student-01"]) == 0
    folder = course / "evidence" / "student-01"
    assert str(folder / "portfolio.html") in capsys.readouterr().out
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    assert found == {"portfolio.html", "portfolio.json", "ps/nb.ipynb"}
    told = json.loads((folder / "portfolio.json").read_text())
    [one] = told["assignments"]
    assert (one["assignment"], one["score"], one["notebooks"]) == ("ps", 1, ["ps/nb.ipynb"])
    assert one["receipt"]["assignment_sha256"] == read_assignment(course, "ps").sha256
    assert len(one["signed_report_sha256"]) == 64
    assert one["evidence"] == [
        {"notebook": "nb", "record": {"calls": 0, "seen": [], "double": "<function"}, "reason": None}
    ]
    scores = {"exercises": {"score": 1, "max_score": 1}, "checkpoints": None}
    assert told["outcomes"] == [{"outcome": "doubling", "mastery": "practised"} | scores]
    assert "It doubles: 1 of 1" in outputs((folder / "ps/nb.ipynb").read_text(), "double-test")
    assert {path: path.read_bytes() for path in (course / "autograded").rglob("*.*")} == before


def test_nothing_of_a_hidden_test_is_in_it(course: Path) -> None:
    """A student whose function notes and prints what it is called with gets none of it, though staff see that it worked;
    no file holds a word, a value or an error of the hidden test.
    """
    staff = (course / "autograded" / "student-01" / "ps" / "nb.ipynb").read_text()
    assert str(VALUE) in outputs(staff, "evidence")
    assert TEXT in staff
    for student in ("student-01", "student-02"):
        _, _, files = exported(course, student)
        everything = "".join(files.values())
        for secret in (TEXT, str(VALUE), str(2 * VALUE), str(3 * VALUE), "HIDDEN TESTS", "Traceback", "CheckFailed"):
            assert secret not in everything
    assert "Try a prime." in outputs(files["ps/nb.ipynb"], "double-test")
    assert "assert double(1) == 2" in files["ps/nb.ipynb"]


def test_what_a_notebook_says_of_itself_is_text(course: Path) -> None:
    """What is no JSON record is left out with a reason, and a submission that was not graded is shown with its own."""
    told, page, _ = exported(course, "student-02")
    assert told["assignments"][0]["evidence"][0]["reason"] == "What the evidence cell printed is not one JSON object."
    assert "<script" not in page
    told, page, files = exported(course, "student-03")
    assert (told["assignments"][0]["status"], told["assignments"][0]["score"]) == ("not_graded", None)
    assert "is not complete JSON" in page
    assert set(files) == {"portfolio.html", "portfolio.json"}


def test_only_what_was_graded_is_run_again(course: Path) -> None:
    """A submission that changed after grading, or an assignment that did, is named and its notebook left out."""
    path = course / "submitted" / "student-01" / "ps" / "nb.ipynb"
    own = path.read_text()
    path.write_text(own + " ")
    told, page, files = exported(course, "student-01")
    assert told["assignments"][0]["signed_report_sha256"] is None
    assert "no longer what was signed" in page
    assert "ps/nb.ipynb" not in files
    path.write_text(own)
    for room in ("source", "release"):
        book = course / room / "ps" / "nb.ipynb"
        book.write_text(book.read_text().replace("import json", "import json, math"))
    told, page, files = exported(course, "student-01")
    assert len(told["assignments"][0]["signed_report_sha256"]) == 64
    assert "released anew" in page
    assert "ps/nb.ipynb" not in files


def test_a_student_without_a_report_has_no_portfolio(course: Path) -> None:
    """Somebody of whom nothing is graded, and a name that is no folder's, are refused and leave no folder."""
    with pytest.raises(GradersError, match=r"'student-99'.*student-01, student-02, student-03.*graders grade A"):
        evidence.export(config.load(course), "student-99")
    with pytest.raises(SubmissionError, match="cannot be the name of a folder"):
        evidence.export(config.load(course), "../student-01")
    assert not (course / "evidence").exists()
