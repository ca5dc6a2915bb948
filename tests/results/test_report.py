"""Laws of the report on disk and of the line that scripts read."""

from __future__ import annotations

import json
from decimal import Decimal

import msgspec
import pytest
from result_samples import performance_report

from graders.errors import SubmissionError
from graders.records import Status
from graders.results import report
from graders.results.folders import replace_folder

LINE = {"student", "assignment", "status", "score", "max_score", "flags", "exercises", "reason"}
EXERCISE = {"id", "notebook", "kind", "score", "max_score", "checks"}
NOTEBOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def not_graded(**more):
    """A later report of the same student, about a file that cannot be read."""
    fields = {"status": Status.not_graded, "score": None, "exercises": (), "reason": "The file is cut off."} | more
    return msgspec.structs.replace(performance_report(), **fields)


def test_the_line_has_the_keys_of_the_contract():
    """`grade --json` prints exactly the promised keys, points as numbers, and no value or message of a test."""
    text = report.json_line(performance_report()).decode()
    line = json.loads(text)
    assert set(line) == LINE
    assert {frozenset(one) for one in line["exercises"]} == {frozenset(EXERCISE)}
    checks = [check for one in line["exercises"] for check in one["checks"]]
    assert {frozenset(check) for check in checks} == {frozenset({"title", "outcome", "points", "earned", "hint"})}
    assert (line["score"], line["max_score"], line["status"]) == (8, 12, "graded")
    assert [one["score"] for one in line["exercises"]] == [4, 1, 3]
    assert line["flags"][0].keys() == {"name", "text", "cell"}
    assert "HIDDEN" not in text
    assert "\n" not in text


def test_a_hint_stands_only_under_what_did_not_pass():
    """A passed check has no hint; a failed one has its misconception, else its hint."""
    line = json.loads(report.json_line(performance_report()))
    for one in line["exercises"]:
        for check in one["checks"]:
            assert (check["hint"] is None) == (check["outcome"] == "passed")


def test_not_graded_is_null_with_a_reason():
    """What could not be graded has the score null, not 0, and says why."""
    line = json.loads(report.json_line(not_graded()))
    assert (line["score"], line["status"], line["reason"]) == (None, "not_graded", "The file is cut off.")


def test_thirds_stay_exact_in_the_line():
    """Points leave as the decimal that was computed, not as a binary neighbour."""
    line = report.json_line(msgspec.structs.replace(performance_report(), score=Decimal("33.3")))
    assert b'"score":33.3,' in line


def test_a_report_reads_back(tmp_path):
    """What is written is what was signed and reads back equal; executed notebooks stand beside it."""
    seen = []
    sign = lambda data: seen.append(data) or b"s"  # noqa: E731 - the shortest recorder
    path = report.write(tmp_path, performance_report(), {"performance-02": NOTEBOOK}, sign)
    assert path == tmp_path / "autograded" / "student-01" / "performance-02" / "report.json"
    assert report.read(path) == performance_report()
    assert seen == [path.read_bytes()]
    assert json.loads((path.parent / "performance-02.ipynb").read_text()) == NOTEBOOK
    assert {p.name for p in path.parent.iterdir()} == {"performance-02.ipynb", "report.json", "report.json.sig"}


def test_an_earlier_good_submission_stays(tmp_path):
    """A later file that cannot be graded leaves the earlier notebooks, and the earlier report under another name."""
    report.write(tmp_path, performance_report(), {"performance-02": NOTEBOOK}, lambda _: b"good")
    for _ in range(2):
        path = report.write(tmp_path, not_graded(), {}, lambda _: b"later")
    assert report.read(path).status is Status.not_graded
    assert report.read(path.with_name(report.EARLIER)) == performance_report()
    assert path.with_name(report.EARLIER + ".sig").read_bytes() == b"good"
    assert (path.parent / "performance-02.ipynb").exists()
    path = report.write(tmp_path, performance_report(), {}, lambda _: b"again")
    assert {p.name for p in path.parent.iterdir()} == {"report.json", "report.json.sig"}


@pytest.mark.parametrize("student", ["o'brien [x]", "é", "-rf", "%2e%2e", "a@b", "a b", "{{ x }}"])
def test_ids_are_opaque(tmp_path, student):
    """Any name of one folder is a student's id, whatever it looks like."""
    path = report.write(tmp_path, msgspec.structs.replace(performance_report(), student=student), {}, lambda _: b"s")
    assert path.parent.parent.name == student


@pytest.mark.parametrize("student", ["", ".", "..", "a/b", "/etc", "a\0b"])
def test_an_id_cannot_leave_the_course(tmp_path, student):
    """What is not the name of one folder is refused before anything is written."""
    with pytest.raises(SubmissionError):
        report.write(tmp_path, msgspec.structs.replace(performance_report(), student=student), {}, lambda _: b"s")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    """When one file cannot be written the old folder is still there, and nothing else."""
    replace_folder(tmp_path / "a", {"x": b"1", "deep/y": b"2"})
    with pytest.raises(SubmissionError):
        replace_folder(tmp_path / "a", {"z": b"3", "../outside": b"4"})
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")} == {"a", "a/x", "a/deep", "a/deep/y"}
