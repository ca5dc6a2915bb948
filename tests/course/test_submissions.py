"""Laws of what arrives: every kind of submission in tests/submissions is graded for real and gets what its rule says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from graders.course.files import read_files
from graders.records import Flag, Report
from graders.results import feedback
from graders.results.folders import hash_files
from graders.results.report import json_line
from graders.run import pipeline

SUBMISSIONS = Path(__file__).resolve().parents[1] / "submissions"
KINDS = sorted(path.parent.name for path in SUBMISSIONS.glob("*/expected.toml"))


@pytest.fixture(scope="module")
def graded(small_lesson, shared_zygote) -> Callable[[str], Report]:
    """Grades a kind, once."""
    reports: dict[str, Report] = {}

    def grade(kind: str) -> Report:
        if kind not in reports:
            left_out: list[Flag] = []
            files = read_files(SUBMISSIONS / kind / "files", left_out)
            job = pipeline.Job("student-01", files, tuple(left_out), hash_files(files))
            reports[kind] = pipeline.grade(job, small_lesson, shared_zygote).report
        return reports[kind]

    return grade


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_gets_what_its_rule_says(kind: str, graded) -> None:
    """Status, score and flags are those that follow from the rule, and the sentences say what a person needs to know."""
    wanted = tomllib.loads((SUBMISSIONS / kind / "expected.toml").read_text())
    report = graded(kind)
    assert (wanted["status"], wanted.get("score")) == (report.status.value, report.score), report.reason
    assert sorted(wanted["flags"]) == sorted(f"{one.name} {one.cell or ''}".strip() for one in report.flags)
    told = "\n".join([report.reason or "", *(flag.text for flag in report.flags)])
    assert [words for words in wanted.get("says", []) if words not in told] == []
    scores = {one.id: one.score for one in report.exercises}
    assert {id: scores[id] for id in wanted.get("exercises", {})} == wanted.get("exercises", {})
    assert (report.max_score, report.reason is None) == (6, report.status.value == "graded")


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_tells_the_student(kind: str, graded) -> None:
    """Every flag and the reason stand on the page; without a score it says what arrived, what was expected, what to do."""
    report = graded(kind)
    page = " ".join(re.sub("<[^>]*>", " ", feedback.render(report, ["lesson"])).split())
    for text in [*(flag.text for flag in report.flags), *filter(None, [report.reason])]:
        assert escaped(text) in page
    if report.status.value == "not_graded":
        assert "What arrived" in page
        assert all(escaped(one) in page for one in report.arrived)
        assert "lesson.ipynb" in page.partition("What was expected")[2].partition("How to go on")[0]
        assert "This is not a zero" in page
    assert json_line(report)


@pytest.mark.parametrize(
    ("submitted", "unknown"),
    [
        (None, False),
        ("2026-10-25 02:30:00 Europe/Berlin", False),
        ("2026-10-25 02:30:00 Mars/Olympus", True),
        ("soon", True),
    ],
)
def test_a_time_that_cannot_be_read_is_told_and_costs_nothing(
    submitted: str | None, unknown: bool, small_lesson, shared_zygote
) -> None:
    """P8: the submission is graded; the student and the TA read that its time is not known."""
    files = read_files(SUBMISSIONS / "F3-ids-in-4.4" / "files", [])
    job = pipeline.Job("student-01", files, (), hash_files(files), submitted)
    report = pipeline.grade(job, small_lesson, shared_zygote).report
    assert ("time_unknown" in [flag.name for flag in report.flags]) is unknown
    assert report.status.value == "graded"


def escaped(text: str) -> str:
    """A text as it stands in HTML, with single spaces."""
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;"), ('"', "&#34;")):
        text = text.replace(sign, entity)
    return " ".join(text.split())


def test_every_kind_is_described() -> None:
    """The README has one line for each folder, and no other."""
    lines = re.findall(r"^\| `([^`]+)` \| .+ \|$", (SUBMISSIONS / "README.md").read_text(), re.MULTILINE)
    assert sorted(lines) == KINDS


def test_written_answers_are_shown_as_the_student_wrote_them(graded) -> None:
    """Whatever became of the cell's marks or type, the answer that a person reads is the student's."""
    for kind in ("S5-colab", "S5-vs-code", "S5-without-marks-and-edited", "S7-cell-types", "F3-nbformat-3"):
        written = next(one for one in graded(kind).exercises if one.id == "why")
        assert (written.answer, written.attempted) == ("Because twice is once and once.", True)
    assert "Größe – naïve" in graded("F1-windows-1252").exercises[0].answer
    assert "Größe – naïve" in graded("F1-one-stray-byte").exercises[0].answer
    assert "Размер" in graded("F1-declared").exercises[0].answer


def test_an_answer_that_is_gone_is_no_answer(graded) -> None:
    """S4: a deleted written answer has no score yet and says that there is none."""
    written = next(one for one in graded("S4-written-deleted").exercises if one.id == "why")
    assert (written.score, written.attempted, written.answer) == (None, False, "")
    assert written.reason == "The cell for this answer is not in the notebook that was handed in."


def test_not_attempted_is_counted_apart_from_wrong(graded) -> None:
    """S12: nothing was attempted in the notebook as handed out; a wrong answer was."""
    assert {one.attempted for one in graded("S12-unchanged").exercises} == {False}
    assert graded("S9-tests-edited").exercises[0].attempted
