"""Laws of the class page: its figures are right, what is not graded is in none, and it is text for staff and nothing else."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
import stat
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import ALLOWED, HOSTILE, Page
from result_samples import performance_report

from graders.records import ExerciseResult, Flag, Kind, Report, Status
from graders.results import overview, overviewpage, urgency
from graders.results.classbook import Entry, Person
from graders.results.likeness import Group, together
from graders.results.overview import build, share, spread

PACKAGE = Path(overview.__file__).parents[1]
MADE = "2026-11-20T08:00:00+00:00"
replace = msgspec.structs.replace


def entry(report: Report, **more: object) -> Entry:
    """Where the student of a report stands, without anybody's marks."""
    judged = report if report.status is not Status.not_graded else None
    fields = {"reason": report.reason, "report": judged, "latest": report} | more
    return Entry(
        Person(report.student), report.assignment, report.status.value, report.score, report.max_score, **fields
    )


def lost(student: str = "student-90") -> Entry:
    """Somebody whose file cannot be read."""
    fields = {
        "status": Status.not_graded,
        "score": None,
        "exercises": (),
        "reason": "The file is cut off.",
        "flags": (),
    }
    return entry(replace(performance_report(), student=student, **fields))


def missing(student: str = "student-91") -> Entry:
    """Somebody who handed in nothing."""
    return Entry(Person(student), "performance-02", "missing", None, Decimal(12))


def written(student: str, answer: str) -> ExerciseResult:
    """A written answer that waits."""
    three = Decimal(3)
    return ExerciseResult("why", "performance-02", Kind.exercise, None, three, manual=True, answer=answer)


def the_class() -> list[Entry]:
    """Three who are graded, one of whom wrote an answer, one who is not, and one who handed in nothing."""
    one = performance_report()
    two = replace(one, student="student-02", exercises=(*one.exercises, written("student-02", "Because of zeros.")))
    three = replace(one, student="student-03", flags=(Flag("protocol_broken", "Nothing that a notebook sends."),))
    return [entry(one), entry(two), entry(three), lost(), missing()]


def page(entries: list[Entry], *alike: Group, page_of=lambda student: f"../feedback/{student}.html") -> str:
    """The page of a class."""
    return overviewpage.render(build("performance-02", entries, alike, together), MADE, page_of)


@given(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=50))
def test_the_spread_is_what_numpy_computes(shares):
    """Mean, quartiles and histogram are NumPy's of the same numbers."""
    found = spread(shares)
    quartiles = np.percentile(shares, [25, 50, 75])
    assert (found.students, found.mean) == (len(shares), pytest.approx(np.mean(shares)))
    assert [found.lower, found.median, found.upper] == pytest.approx(quartiles.tolist())
    tenths = [sum(low <= 10 * one < low + 1 or (low == 9 and one == 1) for one in shares) for low in range(10)]
    assert list(found.counts) == tenths


def test_nobody_has_no_spread():
    """A class in which nothing is graded has no mean, and above all not 0."""
    assert spread([]) is None
    words = Page(page([lost(), missing()])).words
    assert "Median" not in words
    assert "Have a score 0 of 2" in words


@given(st.integers(0, 5), st.integers(0, 5))
def test_what_is_not_graded_is_in_no_figure(broken, absent):
    """However many files cannot be read and however many students hand in nothing, no figure of the class moves."""
    before = build("performance-02", the_class(), (), together)
    more = [lost(f"student-x{i}") for i in range(broken)] + [missing(f"student-y{i}") for i in range(absent)]
    after = build("performance-02", [*the_class(), *more], (), together)
    for name in ("spread", "exercises", "outcomes", "mistakes", "looks", "written"):
        assert getattr(before, name) == getattr(after, name)
    assert (len(after.lost), len(after.missing)) == (1 + broken, 1 + absent)


def test_a_score_is_a_share_of_what_was_judged():
    """A written answer that waits lowers nobody's share, and the order of students is that of shares, without a score last."""
    found = build("performance-02", the_class(), (), together)
    assert [share(one) for one in found.entries] == [pytest.approx(8 / 12)] * 3 + [None] * 2
    assert [one.person.student[-2:] for one in found.entries] == ["01", "02", "03", "90", "91"]


def test_every_flag_has_a_place_in_the_order():
    """A flag that the code can raise is urgent, or not, by the list; one that the list does not know comes first."""
    raised = {
        node.args[0].value
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Flag"
    }
    assert sorted(raised) == sorted(name for names in urgency.ORDER.values() for name in names)
    names = ("file_renamed", "data_restored", "staff_unheard_of", "marks_edited", "awaits_marking")
    report = replace(performance_report(), flags=tuple(Flag(name, f"About {name}.") for name in names))
    found = overview.looks([report, replace(report, student="student-02", flags=report.flags[:1])])
    assert [(one.name, one.urgency, len(one.told)) for one in found] == [
        ("staff_unheard_of", "Look now", 1),
        ("marks_edited", "Look now", 1),
        ("data_restored", "May change a score", 1),
        ("file_renamed", "For your information", 2),
    ]


def test_the_page_says_who_needs_a_person():
    """Flags, what could not be graded and why, who handed in nothing, written answers and near-identical ones are named."""
    words = Page(page(the_class(), Group("masked-score-test", ("student-01", "student-03"), 0.97))).words
    for text in (
        "Look now · protocol_broken · 1 Nothing that a notebook sends. student-03",
        "student-90: The file is cut off.",
        "Handed in nothing student-91",
        "Why 3 points 1 answer student-02 Because of zeros.",
        "Masked score student-01 student-03 97 %",
        "3 The padding was counted",
        "for staff only",
    ):
        assert text in words


def test_a_flag_about_a_persons_mark_is_told_too():
    """What was found when marks were put in stands beside what the examination found, each once."""
    report = replace(performance_report(), flags=(Flag("older_release", "It is older."),))
    changed = replace(report, flags=(*report.flags, Flag("marked_before_change", "It changed.")))
    found = build("p", [replace(entry(report), report=changed)], (), together).looks
    assert [(one.name, one.told) for one in found] == [
        ("marked_before_change", (("student-01", "It changed."),)),
        ("older_release", (("student-01", "It is older."),)),
    ]


def test_a_lost_exercise_is_told_with_its_reason():
    """Who lost an exercise to a fault of ours stands with those who could not be graded, and keeps the rest of the score."""
    report = performance_report()
    first = replace(report.exercises[0], score=None, reason="The machine failed.")
    partly = replace(report, status=Status.partly_graded, exercises=(first, *report.exercises[1:]), score=Decimal(4))
    assert [why for _, why in build("p", [entry(partly)], (), together).lost] == [
        "ledger-x16-test: The machine failed."
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_student_writes_stays_text(text):
    """Names, answers, ids, flags and reasons are text wherever they stand: no element and no address comes of them."""
    report = performance_report()
    student = text.replace("/", "")
    exercises = tuple(replace(one, id=text, outcome=text, advice=text, reason=text) for one in report.exercises)
    hostile = replace(
        report, student=student, exercises=(*exercises, written(student, text)), flags=(Flag("marks_edited", text),)
    )
    class_ = [entry(hostile), replace(lost(), reason=text), entry(replace(hostile, student="student-02"))]
    found = Page(
        page(class_, Group(text, (student, "student-02"), 1.0), page_of=lambda one: overviewpage._address("..", one))
    )
    allowed = ALLOWED | {"nav", "figure", "figcaption", "title", "desc", "text", "line", "details", "summary", "small"}
    assert {tag for tag, _ in found.tags} <= allowed
    assert not [
        attrs for _, attrs in found.tags if any(name.startswith("on") or name in ("style", "src") for name in attrs)
    ]
    links = [attrs["href"] for tag, attrs in found.tags if tag == "a"]
    assert [link for link in links if not re.fullmatch(r"#[a-z]+|\.\./[\w.~%-]+(#x-[0-9a-f]{12})?", link)] == []
    assert " ".join(text.split()) in found.words


def test_values_and_messages_of_tests_stay_in_the_reports():
    """The page shows no value, message or expectation of a hidden test: it may lie open on a desk."""
    assert "HIDDEN" not in page(the_class())


def test_the_page_can_be_heard_and_walked():
    """Language, one h1, headings without gaps, links that lead to something, names for sections, and a text for each picture."""
    found = Page(page(the_class()))
    tags = [tag for tag, _ in found.tags]
    assert found.tags[0] == ("html", {"lang": "en"})
    assert (tags.count("h1"), tags.count("main"), tags.count("nav"), tags.count("footer")) == (1, 1, 1, 1)
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for tag, attrs in found.tags if tag == "a" and attrs["href"][0] == "#"} <= set(ids)
    named = {name for _, attrs in found.tags for name in (attrs.get("aria-labelledby") or "").split()}
    assert named <= set(ids)
    for tag, attrs in found.tags:
        if tag == "svg":
            assert attrs.get("aria-hidden") == "true" or attrs.get("aria-label") or attrs.get("aria-labelledby")
    assert "60 to 70 percent: 3." in found.words
    assert "Masked score: some points" in page(the_class())


def test_the_policy_allows_one_style_sheet_and_nothing_else():
    """As on the student's page: nothing is loaded and no script runs."""
    html = page(the_class())
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}';".replace("'", "&#39;") in html
    assert "url(" not in style


def test_the_file_lies_with_what_is_for_staff(tmp_path):
    """It is autograded/ASSIGNMENT.html, closed to other users, and links to the feedback that is there and to no other."""
    feedback = tmp_path / "feedback/student-01/performance-02/performance-02.html"
    feedback.parent.mkdir(parents=True)
    feedback.touch()
    path = overviewpage.write(tmp_path, build("performance-02", the_class(), (), together), MADE)
    assert path == tmp_path / "autograded/performance-02.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    outside = {attrs["href"].partition("#")[0] for tag, attrs in Page(path.read_text()).tags if tag == "a"} - {""}
    assert [(path.parent / link).resolve() for link in outside] == [feedback]
    assert not (tmp_path / "feedback/student-02").exists()


@given(st.text(st.characters(codec=None), max_size=40))
def test_any_text_makes_a_page(text):
    """Whatever characters an answer holds, the page is well formed and can be written as UTF-8."""
    report = performance_report()
    Page(page([entry(replace(report, exercises=(*report.exercises, written("s", text))))])).text.encode("utf-8")
