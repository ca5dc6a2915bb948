"""Laws of the figures of a class: they are those of the textbook, and only what was judged is in them."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graders.records import CheckResult, ExerciseResult, Kind, Outcome, Report, Status
from graders.results.hints import NOT_ANSWERED
from graders.results.itemanalysis import discrimination, exercises, level, mistakes, outcomes

POINTS = (1, 2, 1, 3)  # of four checks, two to an exercise


def check(title: str, points: int, passed: bool, **more: object) -> CheckResult:
    """A check that passed or failed."""
    outcome = Outcome.passed if passed else Outcome.failed
    return CheckResult(title, outcome, Decimal(points), Decimal(points if passed else 0), **more)


def exercise(id: str, *checks: CheckResult, **more: object) -> ExerciseResult:
    """An exercise of these checks."""
    earned, points = (sum((getattr(one, name) for one in checks), Decimal(0)) for name in ("earned", "points"))
    return ExerciseResult(id, "nb", Kind.exercise, **{"score": earned, "max_score": points, "checks": checks} | more)


def report(number: int, *results: ExerciseResult) -> Report:
    """A report of these exercises; its own sum is looked at by nothing here."""
    return Report(f"student-{number:02d}", "ps1", Status.graded, Decimal(0), Decimal(7), results)


def class_of(passed: list[list[bool]]) -> list[Report]:
    """A class in which each row says which of the four checks a student passed."""
    found = []
    for number, row in enumerate(passed):
        p, q, r, s = (check(f"check {i}", POINTS[i], row[i]) for i in range(4))
        found.append(report(number, exercise("a-test", p, q), exercise("b-test", r, s)))
    return found


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), min_size=3, max_size=60))
def test_discrimination_is_the_point_biserial_correlation(rows):
    """For an item that is right or wrong it is what scipy calls the point-biserial correlation, and None where that is undefined."""
    right, rest = [float(one) for one, _ in rows], [float(number) for _, number in rows]
    found = discrimination(right, rest)
    if len(set(right)) == 1 or len(set(rest)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.pointbiserialr(right, rest).statistic, abs=1e-9)


def test_discrimination_by_hand():
    """Four answers, two right with rests 3 and 2, two wrong with 2 and 1: deviations give 2 / sqrt(1 * 2) halves, so 1 / sqrt 2."""
    assert discrimination([1.0, 1.0, 0.0, 0.0], [3.0, 2.0, 2.0, 1.0]) == pytest.approx(1 / math.sqrt(2))


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=10, max_size=40))
def test_a_check_is_held_against_all_other_points(passed):
    """Pass counts and discrimination are what NumPy computes from the table of passes: the item itself is not in the total."""
    table = np.array(passed) * np.array(POINTS)
    items = [item for one in exercises(class_of(passed)) for item in one.items]
    for column, item in enumerate(items):
        own, rest = table[:, column], table.sum(1) - table[:, column]
        assert (item.answered, item.passed) == (len(passed), np.count_nonzero(own))
        if np.ptp(own) and np.ptp(rest):
            assert item.discrimination == pytest.approx(np.corrcoef(own, rest)[0, 1], abs=1e-9)
        else:
            assert item.discrimination is None


def test_few_answers_say_nothing():
    """Below ten answers there is a pass rate and no discrimination."""
    [item] = exercises([report(i, exercise("a-test", check("p", 1, i % 2 == 0))) for i in range(9)])[0].items
    assert (item.answered, item.passed, item.discrimination) == (9, 5, None)


def test_what_was_not_judged_is_in_no_figure():
    """An exercise without a score, an answer that nobody wrote and a broken check change no pass rate and no discrimination."""
    passed = [[i % 2 == 0, i % 3 == 0, i % 4 == 0, i % 5 == 0] for i in range(12)]
    plain = exercises(class_of(passed))
    lost = exercise("a-test", check("check 0", 1, False), check("check 1", 2, False), score=None)
    blank = exercise("b-test", check("check 2", 1, False), check("check 3", 3, False), attempted=False)
    more = exercises([*class_of(passed), report(98, lost), report(99, blank)])
    assert [one.items for one in more] == [one.items for one in plain]
    assert [one.answered for one in more] == [13, 12]
    broken = CheckResult("check 0", Outcome.broken, Decimal(1), Decimal(0))
    [one] = exercises([report(0, exercise("a-test", broken, check("check 1", 2, True)))])
    assert [item.title for item in one.items] == ["check 1"]


def test_a_lost_exercise_is_no_zero_in_the_rest():
    """Who lost an exercise to a fault of ours is compared by the share of what was judged, not as if it were a 0."""
    lost = exercise("b-test", check("check 2", 1, False), check("check 3", 3, False), score=None)
    passed = [[i % 2 == 0, i % 3 == 0, True, True] for i in range(12)]
    class_ = class_of(passed)
    some = [report(i, one.exercises[0], lost if i == 0 else one.exercises[1]) for i, one in enumerate(class_)]
    [first, _] = exercises(some)[0].items
    # the rest of student 0: all of 2 points instead of all of 6
    rests = [(2 * b + 4) / 6 for _, b, _, _ in passed]
    assert first.discrimination == pytest.approx(np.corrcoef([a for a, *_ in passed], rests)[0, 1])


def test_times_are_median_and_longest():
    """Of those who answered and whose time is known."""
    seconds = (0.5, 4.0, 1.5, 0.0)
    [one] = exercises([report(i, exercise("a-test", check("p", 1, True), seconds=s)) for i, s in enumerate(seconds)])
    assert (one.median_s, one.longest_s) == (1.5, 4.0)
    [old] = exercises([report(0, exercise("a-test", check("p", 1, True)))])
    assert (old.median_s, old.longest_s) == (None, None)


def test_each_student_has_one_level_in_each_outcome():
    """All points, some, none, or nothing judged; exercises and checkpoints apart, and they add up to the class."""
    scores = {"full": Decimal(2), "part": Decimal(1), "none": Decimal(0), "open": None}
    class_ = [
        report(i, exercise("a-test", outcome="o", score=score, max_score=Decimal(2)))
        for i, score in enumerate(scores.values())
    ]
    [levels] = outcomes(class_)
    assert (levels.full, levels.part, levels.none, levels.open) == (1, 1, 1, 1)
    for name, one in zip(scores, class_, strict=True):
        assert level(one.exercises) == name


def test_the_most_common_mistake_comes_first_and_counts_students():
    """A mistake is what the student was told; twice in one submission is one student, and a blank answer is no mistake."""
    wrong = check("p", 1, False, misconception="The padding was counted.")
    twice = exercise("a-test", wrong, check("q", 1, False, misconception="The padding was counted."))
    other = exercise("a-test", check("p", 1, False, hint="Only a hint."), advice="Keep the shape.")
    blank = exercise("b-test", check("r", 1, False), advice=NOT_ANSWERED)
    right = exercise("a-test", check("p", 1, True, misconception="Not shown to who is right."))
    found = mistakes(
        [report(1, other), report(2, twice, blank), report(3, exercise("a-test", wrong)), report(4, right)]
    )
    assert [(one.id, one.text, one.students) for one in found] == [
        ("a-test", "The padding was counted.", ("student-02", "student-03")),
        ("a-test", "Keep the shape.", ("student-01",)),
    ]
