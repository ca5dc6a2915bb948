"""Laws of points: what each kind of cell earns, whatever happened to it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_samples import assignment, cell

from graders.coursework import Reference, Role
from graders.records import Kind, Outcome, Status, report_from_json, to_json
from graders.results.scoring import assemble_report, not_graded_report, score
from graders.runs import CellRun, Ended, Problem, RawCheck, Run, TestRun

ANSWER = cell(Role.answer, "a", released="raise NotImplementedError")
TEST = cell(Role.test, "a-test", 4)
DONE = {"a": "x = 1"}
LOSSES = [Ended.timeout, Ended.died, Ended.memory, Ended.budget]


def raw(title: str, points: str = "1", outcome: Outcome = Outcome.passed, **more: str) -> RawCheck:
    """One check as the examiner saw it."""
    return RawCheck(title, Decimal(points), outcome, **more)


def reference(*checks: RawCheck, **more: tuple[str, ...]) -> Reference:
    """What the instructor's run established about the one test."""
    return Reference(assignment_sha256="0" * 64, checks={"a-test": checks}, **more)


def judged(ref: Reference, *tests: TestRun, cells: tuple[CellRun, ...] = (), answers: dict[str, str] | None = None):
    """The one exercise of a notebook with one answer and one test of four points."""
    [one] = score(assignment(ANSWER, TEST), ref, Run(cells, tests), DONE if answers is None else answers)
    return one


def outcomes(one) -> list[str]:
    """The outcome of each check, in order."""
    return [check.outcome.value for check in one.checks]


@given(st.lists(st.tuples(st.decimals(0, 50, places=3), st.sampled_from(Outcome)), min_size=1, max_size=12))
def test_the_score_is_the_exact_sum_of_the_checks_that_passed(rows):
    """An exercise earns the points of its passed checks, summed without rounding, and never anything else."""
    wanted = [raw(f"check {i}", str(points)) for i, (points, _) in enumerate(rows)]
    seen = tuple(RawCheck(check.title, check.points, outcome) for check, (_, outcome) in zip(wanted, rows, strict=True))
    total = sum((points for points, _ in rows), Decimal(0))
    book = assignment(ANSWER, cell(Role.test, "a-test", str(total)))
    [one] = score(book, reference(*wanted), Run((), (TestRun("a-test", Ended.ok, seen),)), DONE)
    expected = sum((Fraction(points) for points, outcome in rows if outcome is Outcome.passed), Fraction(0))
    assert expected == Fraction(one.score)
    assert expected == sum((Fraction(check.earned) for check in one.checks), Fraction(0))


def test_thirds_of_a_hundred_add_up():
    """33.3 + 33.3 + 33.4 is 100, not 99.99999."""
    parts = [raw(name, points) for name, points in (("p", "33.3"), ("q", "33.3"), ("r", "33.4"))]
    book = assignment(ANSWER, cell(Role.test, "a-test", 100))
    [one] = score(book, reference(*parts), Run((), (TestRun("a-test", Ended.ok, tuple(parts)),)), DONE)
    assert Decimal(100) == one.score


def test_a_check_that_was_not_reached_is_not_run():
    """The reference says which checks there are; what the run lacks earns nothing and is called not run."""
    seen = TestRun("a-test", Ended.error, (raw("p"),), problem=Problem("KeyError", "'x'"))
    one = judged(reference(raw("p"), raw("q", "3")), seen)
    assert (["passed", "not_run"], Decimal(1)) == (outcomes(one), one.score)


def test_only_what_the_reference_fails_is_broken():
    """A check that fails on the reference is broken, even when the student passes it; a run cannot call one broken."""
    ref = reference(raw("p", "2", Outcome.broken), raw("q", "2"))
    one = judged(ref, TestRun("a-test", Ended.ok, (raw("p", "2"), raw("q", "2", Outcome.broken))))
    assert (["broken", "failed"], Decimal(0)) == (outcomes(one), one.score)


def test_points_come_from_the_reference():
    """A run that claims other points, or checks that the reference does not know, gains nothing by it."""
    one = judged(reference(raw("p", "1")), TestRun("a-test", Ended.ok, (raw("p", "9"), raw("row 17", "9"))))
    assert Decimal(1) == one.score
    assert [(check.title, check.earned) for check in one.checks] == [("p", 1), ("row 17", 0)]


def test_checks_of_one_title_are_matched_in_order():
    """Two checks may share a title: the first of the run is the first of the reference."""
    seen = (raw("p", "1", Outcome.failed), raw("p", "3"))
    one = judged(reference(raw("p", "1"), raw("p", "3")), TestRun("a-test", Ended.ok, seen))
    assert (["failed", "passed"], Decimal(3)) == (outcomes(one), one.score)


def test_a_cell_without_checks_is_one_check():
    """A test cell with no checks is worth its points as a whole, and nothing when anything in it raised."""
    assert Decimal(4) == judged(reference(), TestRun("a-test", Ended.ok)).score
    one = judged(reference(), TestRun("a-test", Ended.error, problem=Problem("AssertionError", "")))
    assert (["failed"], Decimal(0)) == (outcomes(one), one.score)


def test_a_failure_after_the_last_check_is_seen():
    """A bare assertion that fails after every check passed shows as a failed check without points."""
    seen = TestRun("a-test", Ended.error, (raw("p", "4"),), problem=Problem("AssertionError", "no"))
    assert outcomes(judged(reference(raw("p", "4")), seen)) == ["passed", "failed"]


@pytest.mark.parametrize("number", ["0", "0.5", "3.999", "4"])
def test_partial_credit_in_range_is_the_score(number):
    """A cell whose reference ended in a number earns the number that it ends in."""
    seen = TestRun("a-test", Ended.ok, value=number, number=Decimal(number))
    one = judged(reference(partial_credit=("a-test",)), seen)
    assert Decimal(number) == one.score
    assert ("passed" if number == "4" else "failed") == one.checks[0].outcome.value


OUT_OF_RANGE = [("nan", None), ("None", None), ("True", None), ("-1", "-1"), ("4.1", "4.1")]


@pytest.mark.parametrize(("value", "number"), OUT_OF_RANGE)
def test_partial_credit_out_of_range_is_broken(value, number):
    """What is not a number from 0 to the cell's points gives nothing away and is for the instructor."""
    seen = TestRun("a-test", Ended.ok, value=value, number=None if number is None else Decimal(number))
    ref = reference(partial_credit=("a-test",))
    report = assemble_report(assignment(ANSWER, TEST), ref, Run((), (seen,)), student="student-01", answers=DONE)
    assert (["broken"], Decimal(0)) == (outcomes(report.exercises[0]), report.score)
    assert [flag.name for flag in report.flags] == ["broken_check"]


def test_a_last_value_means_nothing_elsewhere():
    """A number at the end of an ordinary test cell is not a score."""
    assert Decimal(4) == judged(reference(), TestRun("a-test", Ended.ok, value="0", number=Decimal(0))).score


@pytest.mark.parametrize("ended", LOSSES)
def test_a_stopped_test_costs_what_it_did_not_reach(ended):
    """A test that was stopped keeps what passed before, and says why the rest was not run."""
    seen = TestRun("a-test", ended, (raw("p"),), reason="Stopped after 30 s.")
    one = judged(reference(raw("p"), raw("q", "3")), seen)
    assert (["passed", "not_run"], Decimal(1), "Stopped after 30 s.") == (outcomes(one), one.score, one.reason)


@pytest.mark.parametrize("ended", LOSSES)
def test_a_dead_answer_is_zero_with_a_reason(ended):
    """When the answer itself killed the candidate there may be no test at all: 0, judged, with the cell's reason."""
    one = judged(reference(raw("p", "4")), cells=(CellRun(1, "a", ended, reason="It ended Python."),))
    assert (["not_run"], Decimal(0), "It ended Python.") == (outcomes(one), one.score, one.reason)


def test_a_lost_examiner_fails_the_check_that_it_was_in():
    """The first check that a lost examiner did not report is failed and flagged; the later ones were not run."""
    seen = TestRun("a-test", Ended.examiner_lost, (raw("p"),))
    ref = reference(raw("p"), raw("q"), raw("r", "2"))
    report = assemble_report(assignment(ANSWER, TEST), ref, Run((), (seen,)), student="student-01", answers=DONE)
    assert outcomes(report.exercises[0]) == ["passed", "failed", "not_run"]
    assert [(flag.name, flag.cell) for flag in report.flags] == [("examiner_lost", "a-test")]


def test_what_nobody_could_judge_has_no_score():
    """A test that is missing for no reason of the student's has no score, and the report is only partly graded."""
    book = assignment(ANSWER, TEST, cell(Role.answer, "b", released="pass"), cell(Role.test, "b-test", 2))
    run = Run((), (TestRun("b-test", Ended.ok),))
    report = assemble_report(book, reference(), run, student="student-01", answers=DONE | {"b": "y"})
    assert [None, Decimal(2)] == [one.score for one in report.exercises]
    assert (Status.partly_graded, Decimal(2), Decimal(6)) == (report.status, report.score, report.max_score)
    nothing = assemble_report(book, reference(), Run((), ()), student="student-01", answers=DONE)
    assert (Status.not_graded, None) == (nothing.status, nothing.score)
    assert nothing.reason


def test_a_notebook_that_cannot_be_read_costs_no_points():
    """A sentence for one notebook leaves its exercises without a score and the others as they are."""
    book = assignment(ANSWER, TEST, cell(Role.test, "c-test", 2, notebook="other"))
    run = Run((), (TestRun("a-test", Ended.ok),))
    one, other = score(book, reference(), run, DONE, {"other": "other.ipynb is cut off."})
    assert (Decimal(4), None, "other.ipynb is cut off.") == (one.score, other.score, other.reason)


def test_the_released_notebook_is_zero_and_not_attempted():
    """An answer that only differs in white space from what was handed out is not attempted, which is not "wrong"."""
    seen = TestRun("a-test", Ended.error, problem=Problem("NotImplementedError", ""))
    blank = {"a": "raise   NotImplementedError\n\n"}
    book = assignment(ANSWER, TEST)
    report = assemble_report(book, reference(), Run((), (seen,)), student="student-01", answers=blank)
    assert (Decimal(0), False) == (report.score, report.exercises[0].attempted)
    assert [flag.name for flag in report.flags] == ["not_attempted"]


def test_an_answer_in_another_cell_is_an_attempt():
    """A right answer below an untouched stub earns its points and is attempted."""
    one = judged(reference(), TestRun("a-test", Ended.ok), answers={"a": "raise NotImplementedError"})
    assert (Decimal(4), True) == (one.score, one.attempted)


def test_an_answer_belongs_to_the_next_test():
    """A test judges the answers since the test before it; a second test of the same answers gets the same ones."""
    a, b, c = (cell(Role.answer, id) for id in "abc")
    tests = [cell(Role.test, f"t{i}", 1) for i in range(3)]
    run = Run((), tuple(TestRun(f"t{i}", Ended.ok) for i in range(3)))
    results = score(assignment(a, b, tests[0], tests[1], c, tests[2]), reference(), run, dict.fromkeys("abc", "x"))
    assert [one.answers for one in results] == [("a", "b"), ("a", "b"), ("c",)]


def test_the_time_of_an_exercise_is_that_of_its_cells_and_its_test():
    """Its own answer cells and its test count, the other cells do not."""
    cells = (CellRun(0, "a", Ended.ok, seconds=0.25), CellRun(1, None, Ended.ok, seconds=9.0))
    test = TestRun("a-test", Ended.ok, (raw("p"),), seconds=0.5)
    assert judged(reference(raw("p")), test, cells=cells).seconds == 0.75
    assert judged(reference(raw("p")), cells=cells).seconds == 0.25


def test_written_answers_wait_for_a_person():
    """Written answers and tasks have no score and no status of their own; an empty one is not waited for."""
    book = assignment(cell(Role.written, "w", 3, released="YOUR ANSWER HERE"), cell(Role.task, "k", 2))
    ref = Reference("0" * 64, {})
    report = assemble_report(book, ref, Run((), ()), student="student-01", answers={"w": "Because."})
    assert [(one.score, one.manual) for one in report.exercises] == [(None, True)] * 2
    assert (Status.graded, Decimal(0), Decimal(5)) == (report.status, report.score, report.max_score)
    assert [flag.name for flag in report.flags] == ["awaits_marking"]
    alone = assignment(cell(Role.written, "w", 3, released="YOUR ANSWER HERE"))
    blank = assemble_report(alone, ref, Run((), ()), student="student-01", answers={"w": "YOUR ANSWER HERE"})
    assert [flag.name for flag in blank.flags] == ["not_attempted"]
    deleted = assemble_report(alone, ref, Run((), ()), student="student-01", answers={})
    assert [flag.name for flag in deleted.flags] == ["not_attempted", "awaits_marking"]


def test_kind_and_outcome_come_from_the_author():
    """Checkpoints stay checkpoints, in released order."""
    book = assignment(
        ANSWER, TEST, cell(Role.answer, "b"), cell(Role.test, "b-test", 1, kind=Kind.checkpoint, outcome="masks")
    )
    run = Run((), (TestRun("b-test", Ended.ok), TestRun("a-test", Ended.ok)))
    results = score(book, reference(), run, DONE | {"b": "x"})
    assert [("a-test", Kind.exercise, None), ("b-test", Kind.checkpoint, "masks")] == [
        (one.id, one.kind, one.outcome) for one in results
    ]


def test_any_text_can_be_a_report():
    """Half an emoji in an answer or a reason does not keep a report from being written."""
    one = judged(reference(), TestRun("a-test", Ended.ok), answers={"a": "x = '\ud83d'"})
    assert one.answer == "x = '?'"
    report = not_graded_report("student-01", assignment(ANSWER, TEST), "bad \udce9 name")
    assert report == report_from_json(to_json(report))
    assert (Status.not_graded, None, Decimal(4)) == (report.status, report.score, report.max_score)
