"""Laws of the page that a student reads: it hides what is hidden, runs nothing, and says what is meant."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from decimal import Decimal
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import ALLOWED, HOSTILE, Page
from result_samples import assignment, cell, failed, passed, performance_report

from graders.coursework import Reference, Role
from graders.records import CheckResult, Flag, Kind, Outcome, Status
from graders.results import feedback
from graders.results.numbers import plain
from graders.results.scoring import assemble_report
from graders.runs import CellRun, Ended, Problem, RawCheck, Run, TestRun

replace = msgspec.structs.replace


def with_answer(answer: str, **more: object):
    """The sample report with another answer in every exercise."""
    report = performance_report()
    return replace(report, exercises=tuple(replace(one, answer=answer, **more) for one in report.exercises))


def not_graded():
    """A report about a file that cannot be read."""
    reason = "performance-02.ipynb is cut off in the middle."
    return replace(performance_report(), status=Status.not_graded, score=None, exercises=(), reason=reason)


def test_nothing_hidden_is_on_the_page():
    """What a test holds in messages, values, tracebacks and output never reaches the page or feedback.json."""
    secret = "SECRET-TEXT"
    book = assignment(cell(Role.answer, "a"), cell(Role.test, "t", 2, source=secret, released="assert x"))
    raws = [
        RawCheck("p", Decimal(1), Outcome.failed, "h", "m", f"TypeError: {secret}", secret, secret),
        RawCheck("q", Decimal(1), Outcome.failed, message=secret, expected=secret, actual=secret),
    ]
    ref = Reference("0" * 64, {"t": tuple(RawCheck(raw.title, raw.points, Outcome.passed) for raw in raws)})
    for problem in (
        "NameError",
        "TypeError",
        "AssertionError",
        "TracerBoolConversionError",
        "ValueError",
        "SyntaxError",
    ):
        test = TestRun("t", Ended.error, tuple(raws), Problem(problem, f"'{secret}'", secret), secret, None, secret)
        run = Run((CellRun(0, None, Ended.error, problem=Problem(problem, secret, secret)),), (test,))
        report = assemble_report(book, ref, run, student="student-01", answers={"a": "x = 1"})
        assert secret not in feedback.render(report)
        assert secret.encode() not in msgspec.json.encode(feedback.student_copy(report))


def test_the_sample_hides_its_values_and_shows_its_hints():
    """The realistic page shows titles, points and misconceptions, and none of the staff's fields."""
    page = Page(feedback.render(performance_report())).words
    assert "HIDDEN" not in page
    assert "SHOWN ONLY WHEN NOT PASSED" not in page
    for text in ("8 of 12 points", "The padding was counted", "Not passed, 0 of 1 point", "Passed, 1 point"):
        assert text in page


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_student_writes_stays_text(text):
    """Answers, ids, reasons, flags and titles are text wherever they stand: no element or attribute comes of them."""
    check = CheckResult(text, Outcome.failed, Decimal(1), Decimal(0), hint=text)
    report = replace(
        with_answer(text, id=text, reason=text, advice=text, outcome=text, checks=(check,)),
        student=text.replace("/", ""),
        assignment=text.replace("/", ""),
        submitted=text,
        flags=(Flag("late", text),),
    )
    for one in (report, replace(report, status=Status.not_graded, score=None, exercises=(), reason=text)):
        page = Page(feedback.render(one))
        assert {tag for tag, _ in page.tags} <= ALLOWED
        assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
        links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
        assert [link for link in links if not re.fullmatch(r"#(main|x-[0-9a-f]{12})", link)] == []
        assert " ".join(text.split()) in page.words


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_text_makes_a_page(text):
    """Whatever characters an answer holds, the page is well formed and can be written as UTF-8."""
    Page(feedback.render(with_answer(text))).text.encode("utf-8")


def test_the_policy_allows_one_style_sheet_and_nothing_else():
    """The page's Content-Security-Policy is default-src 'none', the hash of exactly its own style element, and pictures that lie in it."""
    html = feedback.render(performance_report())
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = dict(Page(html).tags[3][1])
    assert policy["http-equiv"] == "Content-Security-Policy"
    rest = "base-uri 'none'; form-action 'none'; img-src data:"
    assert policy["content"] == f"default-src 'none'; style-src 'sha256-{digest}'; {rest}"
    assert "url(" not in style
    assert "@import" not in style
    assert not [attrs for _, attrs in Page(html).tags if "style" in attrs or "src" in attrs]


def test_the_page_can_be_heard_and_walked():
    """Language, one h1, headings without gaps, one main, named sections, and links that lead to something."""
    page = Page(feedback.render(performance_report()))
    tags = [tag for tag, _ in page.tags]
    assert page.tags[0] == ("html", {"lang": "en"})
    assert (tags.count("h1"), tags.count("main"), tags.count("header") > 0, tags.count("footer")) == (1, 1, True, 1)
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for tag, attrs in page.tags if tag == "a"} <= set(ids)
    named = {attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs}
    assert named <= set(ids)


def test_an_outcome_is_told_in_words():
    """Passed, failed, not run and broken are words on the page, not colours or signs alone."""
    checks = tuple(CheckResult(one.value, one, Decimal(1), Decimal(0)) for one in Outcome)
    words = Page(feedback.render(with_answer("x", checks=checks))).words
    assert all(word in words for word in ("Passed", "Not passed", "Not run", "Broken", "Your instructor has been told"))


def test_checkpoints_stand_apart():
    """A checkpoint has its own section and its own sum, and is proven or not yet."""
    report = performance_report()
    first, *rest = report.exercises
    mixed = replace(report, exercises=(replace(first, kind=Kind.checkpoint), *rest))
    words = Page(feedback.render(mixed)).words
    assert "Exercises 4 of 8" in words
    assert "Checkpoints 4 of 4" in words
    assert "Proven" in words


def test_a_checkpoint_that_is_not_proven_says_what_to_read_again():
    """It names the outcome, the notebook and the exercises that practise the same; a proven one and an exercise say nothing."""
    report = performance_report()
    ledger, masked, branch = report.exercises
    asked = replace(branch, kind=Kind.checkpoint, outcome=masked.outcome)
    words = Page(feedback.render(replace(report, exercises=(ledger, masked, asked)))).words
    assert "Not yet 1 Branch repair" in words
    assert "Keep an objective while padding Not yet" in words
    told = "Read again what performance-02.ipynb says about “Keep an objective while padding”, and what practises it: Masked score."
    assert words.count("Read again") == words.count(told) == 1
    assert "Read again" not in Page(feedback.render(replace(report, exercises=(ledger, masked)))).words


def test_an_answer_that_nobody_wrote_is_a_next_step():
    """A written answer that is missing waits for nobody: the page says that there are points to find."""
    report = performance_report()
    empty = replace(
        report.exercises[0], id="why", manual=True, attempted=False, score=None, checks=(), kind=Kind.checkpoint
    )
    words = Page(feedback.render(replace(report, exercises=(*report.exercises, empty)))).words
    assert "Not yet 1 Why" in words
    assert "Why: 4 more points to find. Write an answer." in words
    assert "is given by a person" not in words


def test_what_an_answer_showed_stands_below_it(tmp_path):
    """Text as text and a picture that lies in the page, of the files that were graded; feedback.json has the same."""
    assert feedback.showed(tmp_path, "student-01", "performance-02") == {}
    lies = tmp_path / "autograded/student-01/performance-02/shown.json"
    lies.parent.mkdir(parents=True)
    lies.write_text(
        '{"performance-02": {"masked-score": {"text": "<b>58</b>", "pictures": [{"png": "iVBO", "width": 4, "height": 3}]}}}'
    )
    [path] = feedback.write(tmp_path, performance_report())
    page = Page(path.read_text())
    assert "What it showed when you saved it <b>58</b>" in page.words
    [picture] = [attrs for tag, attrs in page.tags if tag == "img"]
    assert picture["src"] == "data:image/png;base64,iVBO"
    assert picture["alt"] == "Picture 1 that your answer to Masked score drew"
    data = json.loads((path.parent / "feedback.json").read_text())
    assert [len(one["showed"]) for one in data["exercises"]] == [0, 1, 0]
    assert data["exercises"][1]["showed"][0]["text"] == "<b>58</b>"


def test_not_graded_is_not_a_zero():
    """The page of what could not be graded says why, what was expected and what to do, and shows no score."""
    words = Page(feedback.render(not_graded())).words
    assert "performance-02.ipynb is cut off in the middle." in words
    assert "This is not a zero" in words
    assert "What was expected" in words
    assert "How to go on" in words
    assert "0 of 12" not in words


def test_a_person_still_has_to_mark():
    """What waits for a TA is said, and counts neither as lost nor as done."""
    report = performance_report()
    written = replace(report.exercises[0], id="why", manual=True, score=None, checks=(), answer="Because.")
    words = Page(feedback.render(replace(report, exercises=(*report.exercises, written)))).words
    assert "Waiting to be marked" in words
    assert "4 of these points are given by a person" in words


def test_flags_of_the_staff_stay_with_the_staff():
    """A flag whose name begins with staff_ is neither on the page nor in feedback.json."""
    report = replace(
        performance_report(), flags=(Flag("staff_wire", "ODD MESSAGES"), Flag("late", "After the deadline."))
    )
    assert "ODD MESSAGES" not in feedback.render(report)
    assert [flag["name"] for flag in feedback.student_copy(report)["flags"]] == ["late"]


def test_files_are_named_as_nbgrader_names_them(tmp_path):
    """One page for each notebook, feedback.json beside it, and an earlier page replaced."""
    [page] = feedback.write(tmp_path, not_graded())
    assert page == tmp_path / "feedback" / "student-01" / "performance-02" / "performance-02.html"
    pages = feedback.write(tmp_path, performance_report(), ["part-1", "part-2"])
    assert sorted(path.name for path in page.parent.iterdir()) == ["feedback.json", "part-1.html", "part-2.html"]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    data = json.loads((page.parent / "feedback.json").read_text())
    assert (data["score"], data["exercises"][1]["answer"]) == (8, performance_report().exercises[1].answer)
    assert "HIDDEN" not in json.dumps(data)


def test_an_endless_answer_is_cut():
    """A page stays readable when an answer is 30 MB long."""
    html = feedback.render(with_answer("x" * 30_000_000))
    assert len(html) < 150_000
    assert "(cut here)" in html


SHOWN = {"3.3333333": "3.33", "4": "4", "4.0": "4", "0.5": "0.5", "1E+1": "10", "2.675": "2.68", "100": "100"}


@pytest.mark.parametrize(("points", "shown"), [*SHOWN.items(), ("0", "0"), ("-0.001", "0")])
def test_points_are_rounded_in_display_only(points, shown):
    """Two decimals at most, no zero at the end, no exponent."""
    assert plain(Decimal(points)) == shown


@pytest.mark.parametrize(
    ("id", "heading"),
    [("masked-score-test", "Masked score"), ("ledger_x16_tests", "Ledger x16"), ("test", "Test"), ("x", "X"), ("", "")],
)
def test_a_heading_is_read_from_the_id(id, heading):
    """The student reads the exercise's name and not the test cell's id."""
    assert feedback.title(id) == heading


def test_samples_are_what_they_say():
    """The sample checks add up: the page's numbers come from arithmetic."""
    assert passed("p", 2).earned - failed("p", 2).earned == 2
    assert sum(one.score for one in performance_report().exercises) == 8
