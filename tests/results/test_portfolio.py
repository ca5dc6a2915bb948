"""Laws of the portfolio: what counts as mastered, what an evidence cell may say, and that the page shows text and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_samples import performance_report

from graders.records import ExerciseResult, Kind, Report, Status
from graders.results import portfoliopage
from graders.results.mastery import by_kind, mastery, outcomes
from graders.results.portfolio import Portfolio, Statement, Work, as_json, statement
from graders.runs import CellRun, Ended, Problem

replace = msgspec.structs.replace


def result(kind: str, score: int | None, id: str = "a", outcome: str | None = "one", points: int = 2) -> ExerciseResult:
    """A judged exercise, or one that waits."""
    marks = None if score is None else Decimal(score)
    return ExerciseResult(id, "nb", Kind(kind), marks, Decimal(points), outcome=outcome)


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        ([("checkpoint", 2)], "proven"),
        ([("checkpoint", 2), ("exercise", 0)], "proven"),
        ([("checkpoint", 1), ("exercise", 2)], "not_yet"),
        ([("checkpoint", 2), ("checkpoint", None)], "waiting"),
        ([("checkpoint", 0), ("checkpoint", None)], "not_yet"),
        ([("exercise", 2), ("exercise", 2)], "practised"),
        ([("exercise", 2), ("exercise", 1)], "not_yet"),
        ([("exercise", 2), ("exercise", None)], "waiting"),
    ],
)
def test_only_a_checkpoint_with_full_marks_proves(group: list[tuple[str, int | None]], wanted: str) -> None:
    """Checkpoints decide where there are any; exercises alone can be practised; what nobody has marked waits."""
    assert mastery([result(kind, score) for kind, score in group]).value == wanted


def test_an_answer_that_nobody_wrote_is_not_waited_for() -> None:
    """A written answer that is as it was handed out is not yet proven: nobody will mark it. One that is there, or was lost, waits."""
    there = replace(result("checkpoint", None), manual=True)
    empty, lost = replace(there, attempted=False), replace(there, attempted=False, reason="The cell was deleted.")
    assert [mastery([one]).value for one in (there, empty, lost)] == ["waiting", "not_yet", "waiting"]


def test_an_outcome_gathers_all_assignments_and_keeps_the_kinds_apart() -> None:
    """Points of an outcome are added over assignments, exercises and checkpoints apart; what was not graded adds nothing."""
    first = Report("s", "a", Status.graded, Decimal(3), Decimal(4), (result("exercise", 1), result("checkpoint", 2)))
    second = Report("s", "b", Status.graded, Decimal(2), Decimal(4), (result("exercise", 2), result("exercise", None)))
    other = Report("s", "c", Status.graded, Decimal(2), Decimal(2), (result("exercise", 2, outcome="two"),))
    lost = Report("s", "d", Status.not_graded, None, Decimal(2), (result("exercise", 0),))
    found = {one.name: one for one in outcomes([first, second, other, lost])}
    one = found["one"]
    assert one.exercises is not None
    assert one.checkpoints is not None
    assert (one.exercises.score, one.exercises.max_score) == (3, 4)
    assert (one.checkpoints.score, one.checkpoints.max_score) == (2, 2)
    assert found["two"].checkpoints is None
    assert list(found) == ["one", "two"]
    assert by_kind([result("exercise", None)]) == (None, None)


def ran(text: str, **more: object) -> CellRun:
    """An evidence cell that printed this."""
    stream = {"output_type": "stream", "name": "stdout", "text": text}
    return CellRun(3, "evidence", Ended.ok, (stream,), notebook="nb", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "3", "'text'", '{"a": NaN}', "{'a': 1}", '{"a": 1} and more', "[" * 100_000, '{"a": ' * 100_000,
     '{"a": 1e999}', "…", "__import__('os')"],
)  # fmt: skip
def test_what_is_not_one_json_object_is_no_record(text: str) -> None:
    """An evidence cell that prints anything else leaves a reason and no record; nothing is evaluated."""
    found = statement(ran(text))
    assert (found.record, found.reason) == (None, "What the evidence cell printed is not one JSON object.")


def test_a_record_is_read_as_it_was_printed() -> None:
    """JSON over several writes and lines is one record; an error of the cell or its end is the reason instead."""
    assert statement(ran('{"a": [1, 2.5, null],\n "b": "<i>"}\n')) == Statement("nb", {"a": [1, 2.5, None], "b": "<i>"})
    parts = replace(ran('{"a"'), outputs=(*ran('{"a"').outputs, *ran(": 1}").outputs))
    assert statement(parts).record == {"a": 1}
    stderr = {"output_type": "stream", "name": "stderr", "text": "a warning"}
    assert statement(replace(ran('{"a": 1}'), outputs=(*ran('{"a": 1}').outputs, stderr))).record == {"a": 1}
    failed = statement(ran("{}", problem=Problem("NameError", "name 'secret'", "traceback")))
    assert failed.reason == "The evidence cell ended with NameError."
    assert statement(ran("{}", reason="It was stopped.")).reason == "It was stopped."


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)  # fmt: skip


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_any_record_can_be_shown(record: dict[str, object]) -> None:
    """Whatever JSON a notebook printed, the portfolio's JSON holds the same, and the page can be made."""
    made = portfolio(statement(ran(json.dumps(record))))
    assert json.loads(as_json(made))["assignments"][0]["evidence"][0]["record"] == json.loads(json.dumps(record))
    assert "portfolio.json" in portfoliopage.render(made)


def portfolio(*statements: Statement, **more: object) -> Portfolio:
    """A portfolio of one lesson with a report that holds everything for staff."""
    work = Work(performance_report(), "5" * 64, ("performance-02/performance-02.ipynb",), statements, **more)  # type: ignore[arg-type]
    return Portfolio("student-01", "2026-11-12T14:05:00+00:00", (work,))


def test_the_portfolio_hides_what_feedback_hides() -> None:
    """Messages and values of hidden tests and flags for staff are neither on the page nor in the JSON; titles and hints are."""
    made = portfolio()
    page, data = portfoliopage.render(made), as_json(made).decode()
    assert "HIDDEN" not in page + data
    assert "The padding was counted" in data
    told = json.loads(data)
    assert told["student"] == "student-01"
    assert told["assignments"][0]["scores"] == {"exercises": {"score": 8, "max_score": 12}, "checkpoints": None}
    assert [one["mastery"] for one in told["outcomes"]] == ["practised", "not_yet", "not_yet"]


def test_the_page_runs_nothing_and_loads_nothing() -> None:
    """Markup of a student is text; no script, form, picture or address outside; the policy allows the one style by its hash."""
    nasty = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    made = portfolio(Statement("nb", {nasty: nasty}), Statement(nasty, reason=nasty), note=nasty)
    named = replace(made, student=nasty, works=(replace(made.works[0], notebooks=("javascript:alert(1)",)),))
    page = portfoliopage.render(named)
    assert set(re.findall(r"<(script|img|iframe|form|link|object|base)\b", page)) == set()
    assert all(re.match(r"\./|#", target) for target in re.findall(r'href="([^"]*)"', page))
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src &#39;none&#39;; style-src &#39;sha256-{digest}&#39;" in page


def test_the_page_says_what_is_missing() -> None:
    """An assignment that could not be graded says so and is no zero; a note and a reason for a missing record are shown."""
    lost = Report("student-01", "ps1", Status.not_graded, None, Decimal(2), reason="It is no notebook.")
    made = Portfolio("student-01", "2026-11-12T14:05:00+00:00", (Work(lost, note="Left out."),))
    words = " ".join(re.sub(r"<[^>]*>", " ", portfoliopage.render(made)).split())
    assert "It is no notebook. This is not a zero." in words
    assert "Left out." in words
    assert "12 November 2026, 14:05 UTC" in words
