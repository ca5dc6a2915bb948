"""Laws of the best attempt: one more attempt never lowers what counts, and nothing of either is lost."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path

import pytest
from hand_ins import WHO, at, course, hand_in, kept, there, work

from graders.config import Settings
from graders.records import Flag, Receipt, Report, Status
from graders.results import receipts, report
from graders.results.folders import handed_in, hash_submission
from graders.run import attempts, best


def grade(settings: Settings, points: int | None, charge: int = 0, dies: bool = False) -> None:
    """What grading does with a result of so many points: put aside, store, learn what counts after the penalty, decide."""
    folder = settings.course
    receipts.publish(folder)
    digest = hash_submission(handed_in(folder, WHO, "ps1"))
    receipt = Receipt("", "", "cpu", "sealed", "process", (), digest, "", "", 0, "", 0.0, 0.0, {})
    status = Status.not_graded if points is None else Status.graded
    score = None if points is None else Decimal(points)
    made = Report(WHO, "ps1", status, score, Decimal(10), receipt=receipt)
    best.set_aside(folder, made, lambda one: one.score or Decimal(0))
    report.write(folder, made, {"ps1": {"of": points}}, receipts.sign)
    if not dies:
        best.decide(folder, made, Decimal((points or 0) - charge))


def counts(settings: Settings) -> tuple[Decimal | None, str | None]:
    """The points that are stored and what lies in `submitted/`, after checking that report, signature and files agree."""
    path = settings.course / f"autograded/{WHO}/ps1/report.json"
    receipts.verify(path, settings.course)
    return report.read(path).score, there(settings)


@pytest.mark.parametrize("points", list(itertools.permutations((4, 7, 2))))
def test_the_best_of_all_attempts_counts_in_whatever_order_they_come(tmp_path: Path, points: tuple[int, ...]) -> None:
    """What is stored is the best so far with its own files, and every other submission is kept."""
    settings = course(tmp_path, 'c.Graders.counts = "best"')
    for number, earned in enumerate(points):
        hand_in(settings, (work(str(earned), number), number))
        grade(settings, earned)
        assert counts(settings) == (max(points[: number + 1]), str(max(points[: number + 1])))
        assert not best.undecided(tmp_path, WHO, "ps1")
    assert kept(settings) == {"4", "2"}


def test_of_equal_attempts_the_later_counts(tmp_path: Path) -> None:
    """Whoever hands in again and earns as much has the later text marked."""
    settings = course(tmp_path)
    for number, text in enumerate(("first", "second")):
        hand_in(settings, (work(text, number), number))
        grade(settings, 5)
    assert counts(settings) == (5, "second")


def test_a_late_attempt_that_loses_more_than_it_gains_does_not_count(tmp_path: Path) -> None:
    """What counts is compared, with the penalty taken off."""
    settings = course(tmp_path)
    hand_in(settings, (work("in time"), 0))
    grade(settings, 6)
    hand_in(settings, (work("late", 1), 1))
    grade(settings, 9, charge=5)
    assert counts(settings) == (6, "in time")


def test_a_run_that_ends_before_it_is_decided_is_decided_later(tmp_path: Path) -> None:
    """Killed between storing and deciding, the next run finds the better result aside and puts it back."""
    settings = course(tmp_path)
    hand_in(settings, (work("good"), 0))
    grade(settings, 6)
    hand_in(settings, (work("bad", 1), 1))
    grade(settings, 1, dies=True)
    assert best.undecided(tmp_path, WHO, "ps1")
    grade(settings, 1)
    assert counts(settings) == (6, "good")


def test_what_could_not_be_graded_takes_nobodys_best_away(tmp_path: Path) -> None:
    """After an attempt without a score, a worse one still does not count."""
    settings = course(tmp_path)
    for number, points in enumerate((6, None, 3)):
        hand_in(settings, (work(str(points), number), number))
        grade(settings, points)
    assert counts(settings) == (6, "6")


def test_the_page_says_which_attempt_counts_and_what_the_other_earned(tmp_path: Path) -> None:
    """A student whose later attempt earned less reads so, and finds the page under that hand-in too."""
    settings = course(tmp_path, 'c.Graders.counts = "best"')
    hand_in(settings, (work("good"), 0))
    grade(settings, 6)
    stands = attempts.read(tmp_path, WHO, "ps1")[0].sha256
    hand_in(settings, (work("bad", 1), 1))
    grade(settings, 1)
    known = attempts.read(tmp_path, WHO, "ps1")
    text = "The best attempt counts. What you handed in 20 October 2026, 12:01 UTC earned 1 of 10 points, fewer than this one."
    assert attempts.notes(known, settings.of("ps1"), at(2)) == (Flag("better_stands", text),)
    assert [one.sha256 for one in attempts.beside(known, stands)] == [known[1].sha256]
