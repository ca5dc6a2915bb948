"""Laws of the exchange: nbgrader's own commands understand what we put there, and a page reaches its student alone."""

from __future__ import annotations

import json
import os
import stat
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fullness import room_for
from hand_ins import course

from graders import cli
from graders.config import Settings
from graders.course.assignments import read_handed_out
from graders.errors import CourseError, FullError
from graders.records import Receipt, Report, Status
from graders.results import receipts, report
from graders.results.folders import handed_in, hash_submission
from graders.run import collecting, exchange, handingin, returning, submissions


def notebook(answer: str, test: str = "assert five == 5") -> str:
    """A notebook with one answer and a checkpoint that judges it."""
    marks = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    cells: list[dict[str, Any]] = [
        {"nbgrader": marks | {"grade_id": "five", "solution": True}},
        {
            "nbgrader": marks | {"grade_id": "five-test", "grade": True, "locked": True, "points": 1},
            "graders": {"kind": "checkpoint"},
        },
    ]
    made = [
        {
            "cell_type": "code",
            "id": f"c{place}",
            "metadata": one,
            "source": text,
            "outputs": [],
            "execution_count": None,
        }
        for place, (one, text) in enumerate(zip(cells, (answer, test), strict=True))
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


STUB = "# YOUR CODE HERE\nraise NotImplementedError()"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A course whose assignment is in an exchange, as nbgrader's release_assignment leaves it."""
    for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)  # nbgrader reads settings where it is started
    made = course(tmp_path / "desk")
    place = tmp_path / "desk/ex/small"
    for name in ("inbound", "outbound/ps1"):
        (place / name).mkdir(parents=True)
    (place / "inbound").chmod(0o733)
    (place.parent).chmod(0o777)
    (place / "outbound/ps1/ps1.ipynb").write_text(notebook(STUB))
    return made


def laptop(settings: Settings, student: str, files: dict[str, str]) -> Path:
    """The folder of a student's work, with nbgrader's settings beside it."""
    folder = settings.course.parent / student / "ps1"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"c.Exchange.root = {str(settings.course / 'ex')!r}", f"c.CourseDirectory.student_id = {student!r}"]
    lines += [f"c.Exchange.cache = {str(folder.parent / 'cache')!r}"]
    (folder.parent / "nbgrader_config.py").write_text("\n".join(["c = get_config()", *lines]))
    for path, text in files.items():
        (folder / path).write_text(text)
    return folder


def graded(settings: Settings, student: str) -> None:
    """A stored report of what lies in `submitted/`."""
    receipts.publish(settings.course)
    digest = hash_submission(handed_in(settings.course, student, "ps1"))
    receipt = Receipt("", "", "cpu", "sealed", "process", (), digest, "", "", 0, "", 0.0, 0.0, {})
    made = Report(student, "ps1", Status.graded, Decimal(1), Decimal(1), receipt=receipt)
    report.write(settings.course, made, {"ps1": {}}, receipts.sign)


def fetched(folder: Path) -> list[str]:
    """What nbgrader's own fetch_feedback brings a student."""
    from nbgrader.exchange.default import ExchangeFetchFeedback

    app = exchange.configured(folder.parent, "small")
    app.coursedir.assignment_id = "ps1"
    fetch = ExchangeFetchFeedback(coursedir=app.coursedir, parent=app, assignment_dir=str(folder.parent))
    fetch.start()
    return [path.read_text() for path in (folder / "feedback").rglob("*.html")]


def test_a_page_comes_back_to_whoever_handed_in_and_to_nobody_else(settings: Settings) -> None:
    """Two students hand in, one under another file name; each fetches one page, their own, by nbgrader's own code."""
    folders = {
        "student-01": laptop(settings, "student-01", {"ps1.ipynb": notebook("five = 5")}),
        "student-02": laptop(settings, "student-02", {"ps1 (1).ipynb": notebook("five = 4")}),
    }
    made = {student: handingin.hand_in(folder, "small") for student, folder in folders.items()}
    assert [one.taken for one in collecting.collect(settings, "ps1").students] == [True, True]
    for student, handed in made.items():
        assert hash_submission(handed_in(settings.course, student, "ps1")) == handed.sha256
        graded(settings, student)
    assert {one.why for one in returning.release_feedback(settings, "ps1")} == {None}
    for student, folder in folders.items():
        own = (settings.course / f"feedback/{student}/ps1/ps1.html").read_text()
        assert fetched(folder) == [own]
    place = settings.course / "ex/small/feedback"
    assert stat.S_IMODE(place.stat().st_mode) == 0o711
    assert {stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()} == {0o644}


def test_what_finds_no_room_in_the_exchange_is_not_handed_in(settings: Settings) -> None:
    """On a full disk a hand-in says so and leaves nothing that would be collected, or be taken for handed in; then it works."""
    folder = laptop(settings, "student-01", {"ps1.ipynb": notebook("five = 5"), "rows.csv": "1\n" * 10_000})
    before = sorted(Path(settings.course / "ex").rglob("*"))
    with room_for(5000), pytest.raises(CourseError, match=r"was not handed in: .*File too large"):
        handingin.hand_in(folder, "small")
    assert sorted(Path(settings.course / "ex").rglob("*")) == before
    handingin.hand_in(folder, "small")
    assert [one.taken for one in collecting.collect(settings, "ps1").students] == [True]


def test_what_finds_no_room_is_not_collected(settings: Settings) -> None:
    """A disk that is full ends the collection with a sentence, the earlier submission stands, and the next collection takes it."""
    for text in ("five = 4", "five = 5"):
        folder = laptop(settings, "student-01", {"ps1.ipynb": notebook(text), "rows.csv": text * 10_000})
        handingin.hand_in(folder, "small")
        if text == "five = 4":
            collecting.collect(settings, "ps1")
    stands = hash_submission(handed_in(settings.course, "student-01", "ps1"))
    with room_for(5000), pytest.raises(FullError, match=r"bytes are free there"):
        collecting.collect(settings, "ps1")
    assert hash_submission(handed_in(settings.course, "student-01", "ps1")) == stands
    assert [one.taken for one in collecting.collect(settings, "ps1").students] == [True]


@pytest.mark.parametrize(
    ("secret", "why"), [("a", "others could guess it"), (None, "did not come through the exchange")]
)
def test_a_secret_that_others_could_guess_opens_nothing(settings: Settings, secret: str | None, why: str) -> None:
    """Where a submission has no secret of nbgrader's, its page stays out of the exchange, and that is said."""
    folder = handed_in(settings.course, "student-01", "ps1")
    folder.mkdir(parents=True)
    (folder / "ps1.ipynb").write_text(notebook("five = 5"))
    if secret:
        (folder / "submission_secret.txt").write_text(secret)
    graded(settings, "student-01")
    assert why in str(returning.release_feedback(settings, "ps1")[0].why)
    assert list((settings.course / "ex/small/feedback").iterdir()) == []


def test_a_page_about_an_earlier_submission_is_not_given_for_a_later_one(settings: Settings) -> None:
    """What was handed in since the grading gets no page until it is graded; the one that was graded gets its own."""
    folder = laptop(settings, "student-01", {"ps1.ipynb": notebook("five = 5")})
    handingin.hand_in(folder, "small")
    collecting.collect(settings, "ps1")
    graded(settings, "student-01")
    (folder / "ps1.ipynb").write_text(notebook("five = 6"))
    handingin.hand_in(folder, "small")
    assert collecting.collect(settings, "ps1").students[0].taken
    assert returning.release_feedback(settings, "ps1")[0].why is None
    assert len(fetched(folder)) == 1


def test_a_question_reaches_the_report_as_text(settings: Settings) -> None:
    """`--query` lies in the submission, costs the work nothing, and becomes one flag without control characters."""
    folder = laptop(settings, "student-01", {"ps1.ipynb": notebook("five = 5")})
    handingin.hand_in(folder, "small", "Is it <b>right</b>?\n\x1b[31m\u202eReally?")
    assert [path.name for path in folder.iterdir()] == ["ps1.ipynb"]
    collecting.collect(settings, "ps1")
    job = submissions.read_job(
        settings.course, "student-01", read_handed_out(settings.course / "ex/small/outbound/ps1")
    )
    assert [one.name for one in job.notes] == ["second_look"]
    assert job.notes[0].text == "A second look was asked for: “Is it <b>right</b>? [31m Really?”"
    assert set(job.files) == {"ps1.ipynb"}


@pytest.mark.parametrize("query", ["", "  ", "x" * 2_001, "é" * 1_001])
def test_a_question_has_some_words_and_not_too_many(settings: Settings, query: str) -> None:
    """Without words, or with more than 2,000 bytes, nothing is handed in."""
    folder = laptop(settings, "student-01", {"ps1.ipynb": notebook("five = 5")})
    with pytest.raises(CourseError, match="Nothing was handed in"):
        handingin.hand_in(folder, "small", query)
    assert list((settings.course / "ex/small/inbound").iterdir()) == []


@pytest.mark.parametrize(
    ("files", "status", "told"),
    [
        ({"ps1.ipynb": notebook("five = 5")}, 0, "Found: 1 of 1 answer.\n"),
        ({"ps1.ipynb": notebook(STUB)}, 1, "Found: 0 of 1 answer, 1 checkpoint unanswered.\n"),
        ({"ps1.ipynb": notebook(STUB)}, 1, "- Every answer is still as it was handed out."),
        ({"ps1 (1).ipynb": notebook("five = 5")}, 1, "ps1.ipynb was expected"),
        ({"ps1.ipynb": notebook("five = 5", "pass")}, 1, "- five-test: A cell of the instructor was changed"),
        ({"ps1.ipynb": notebook("five = 5"), "numpy.py": ""}, 1, "numpy.py hides the library"),
        ({"ps1.ipynb": notebook("five = 5")[:100]}, 1, "ps1.ipynb is not complete JSON"),
        ({"ps1.txt": "five = 5"}, 1, "No notebook ps1.ipynb was found"),
    ],
)
def test_a_receipt_says_what_arrived_and_what_will_be_remarked_on(
    settings: Settings, files: dict[str, str], status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a deadline a student reads what the grader will say, from the released notebook alone."""
    folder = laptop(settings, "student-01", files)
    assert cli.main(["--course", str(folder.parent), "submit", "ps1", "--course-id", "small"]) == status
    said = capsys.readouterr().out
    assert told in said
    assert "by student-01 for small" in said


def test_a_file_that_nbgrader_leaves_out_is_told(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """A file beyond nbgrader's limit is not copied, and the student reads it; pages that were fetched are no files of theirs."""
    folder = laptop(settings, "student-01", {"ps1.ipynb": notebook("five = 5")})
    (folder / "weights.bin").write_bytes(bytes(20_000))
    with (folder.parent / "nbgrader_config.py").open("a") as file:
        file.write("\nc.CourseDirectory.max_file_size = 10  # kilobytes")
    (folder / "feedback").mkdir()
    (folder / "feedback/ps1.html").write_text("")
    assert cli.main(["--course", str(folder.parent), "submit", "ps1", "--course-id", "small"]) == 1
    said = capsys.readouterr().out
    assert "- weights.bin (20,000 bytes) was left out by nbgrader." in said
    assert "feedback" not in said


@pytest.mark.parametrize(
    ("name", "course_id", "told"),
    [
        ("ps2", "small", "There is no folder"),
        ("ps1", None, "No course is named"),
        ("ps1", "large", "was not handed in"),
    ],
)
def test_what_cannot_be_handed_in_is_told(settings: Settings, name: str, course_id: str | None, told: str) -> None:
    """A folder, a course or an exchange that is not there is an error that says what to do, and no receipt."""
    folder = laptop(settings, "student-01", {"ps1.ipynb": notebook("five = 5")})
    with pytest.raises(CourseError, match=told):
        handingin.hand_in(folder.parent / name, course_id)


@pytest.mark.parametrize(("setting", "taken"), [("", False), ("\nc.ExchangeCollect.check_owner = False", True)])
def test_nobody_hands_in_for_somebody_else(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, setting: str, taken: bool
) -> None:
    """A submission that another account put there is not taken, and said; unless the course says that accounts tell nothing."""
    folder = laptop(settings, "student-01", {"ps1.ipynb": notebook("five = 5")})
    handingin.hand_in(folder, "small")
    with (settings.course / "course_config.py").open("a") as file:
        file.write(setting)
    here = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: here + 1)
    (found,) = collecting.collect(settings, "ps1").students
    assert (found.taken, found.problem) == (taken, not taken)
    assert ("put it there" in found.text) is not taken
