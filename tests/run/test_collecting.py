"""Laws of collecting: what is taken, what is not and why, and that nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hand_ins import NOON, WHO, at, course, hand_in, kept, there, work

from graders.config import Settings
from graders.errors import CourseError
from graders.records import Flag, to_json
from graders.run import attempts, collecting
from graders.run.arrivals import Arrived
from graders.run.collecting import take


@pytest.mark.parametrize(
    ("later", "stays", "told"),
    [
        (work("new", 5), "new", "Collected, handed in 20 October 2026, 12:05 UTC"),
        (work("new", -5), "old", "What was collected before is newer (20 October 2026, 12:00 UTC)"),
        (work("new", 0), "old", "is newer"),
        (work("new", None), "old", "which is newer is not known"),
        (work("old", 0), "old", "Nothing new"),
        (work("old", 5), "old", "The same files as before"),
    ],
)
def test_an_older_submission_never_takes_the_place_of_a_newer_one(
    tmp_path: Path, later: Arrived, stays: str, told: str
) -> None:
    """Only what is known to be newer is taken; nobody's time is changed by handing in the same files again."""
    settings = course(tmp_path)
    found = hand_in(settings, (work("old", 0), 10), (later, 20))
    assert found[0].taken
    assert (there(settings), found[1].taken) == (stays, stays == "new")
    assert told in found[1].text
    stamp = (tmp_path / f"submitted/{WHO}/ps1/timestamp.txt").read_text()
    assert stamp.startswith("2026-10-20 12:05" if stays == "new" else "2026-10-20 12:00")


def test_nothing_is_lost(tmp_path: Path) -> None:
    """Each submission that a later one takes the place of is kept whole, be it collected by us or put there by hand."""
    settings = course(tmp_path)
    (tmp_path / f"submitted/{WHO}/ps1").mkdir(parents=True)
    (tmp_path / f"submitted/{WHO}/ps1/ps1.ipynb").write_text("by hand")
    hand_in(settings, (work("second"), 10), (work("third", 5), 20))
    assert (there(settings), kept(settings)) == ("third", {"by hand", "second"})
    assert [one.source for one in attempts.read(tmp_path, WHO, "ps1")] == ["by hand", "exchange", "exchange"]


def test_two_downloads_without_times_are_taken_in_the_order_in_which_they_come(tmp_path: Path) -> None:
    """Where no time is known, another download is a newer one; an old one that is collected again is not."""
    settings = course(tmp_path)
    found = hand_in(settings, (work("first", None), 1), (work("second", None), 2), (work("first", None), 3))
    assert [one.taken for one in found] == [True, True, False]
    assert there(settings) == "second"


def test_what_was_moved_away_is_collected_again(tmp_path: Path) -> None:
    """A person decides: where nothing lies, what is collected is put there, and it is no further attempt."""
    settings = course(tmp_path, "c.Graders.attempts = 1")
    hand_in(settings, (work("old"), 1))
    (tmp_path / f"submitted/{WHO}/ps1").rename(tmp_path / "away")
    assert hand_in(settings, (work("old"), 2))[0].taken
    assert len(attempts.read(tmp_path, WHO, "ps1")) == 1


def test_an_attempt_is_what_was_collected(tmp_path: Path) -> None:
    """So many attempts are taken, and no more; a further one is kept, and both sides read why it is not graded."""
    settings = course(tmp_path, 'c.Graders.assignments = {"ps1": {"attempts": 2}}')
    found = hand_in(settings, (work("1"), 1), (work("2", 2), 3), (work("3", 4), 5), (work("4", 6), 7))
    assert [one.taken for one in found] == [True, True, False, False]
    assert "2 of 2 attempts" in found[1].text
    assert found[2].text == "What came 20 October 2026, 12:04 UTC is kept and not graded: all 2 attempts are used."
    assert (there(settings), kept(settings)) == ("2", {"1", "3", "4"})
    known = attempts.read(tmp_path, WHO, "ps1")
    told = [one.text for one in attempts.notes(known, settings.of("ps1"), at(8))]
    assert told[0] == "2 of 2 attempts are used."
    assert told[1] == ("What you handed in 20 October 2026, 12:04 UTC is kept and not graded: all 2 attempts are used.")


def test_a_limit_that_is_raised_lets_in_what_was_refused(tmp_path: Path) -> None:
    """Collected again after the limit was raised, a refused submission is taken, and nobody is told that it was not."""
    settings = course(tmp_path, "c.Graders.attempts = 1")
    rows = (work("1"), 1), (work("2", 2), 3), (work("2", 2), 4)
    assert [one.taken for one in hand_in(settings, *rows)] == [True, False, False]
    assert len(attempts.read(tmp_path, WHO, "ps1")) == 2
    more = msgspec.structs.replace(settings, attempts=3)
    assert hand_in(more, (work("2", 2), 5))[0].taken
    told = attempts.notes(attempts.read(tmp_path, WHO, "ps1"), more, at(6))
    assert told == (Flag("attempts", "2 of 3 attempts are used."),)


def test_a_hand_in_during_the_cool_down_waits_and_is_not_lost(tmp_path: Path) -> None:
    """The next attempt is taken when the pause after the last collected one is over, by the clock of whoever collects."""
    settings = course(tmp_path, "c.Graders.cool_down_s = 600")
    early = work("2", -600)  # what a student writes as a time does not shorten the pause
    found = hand_in(settings, (work("1", -700), 0), (early, 9), (early, 10))
    assert [one.taken for one in found] == [True, False, True]
    assert found[1].text == "Waits: the next attempt is taken from 20 October 2026, 12:10 UTC on."
    told = attempts.notes(attempts.read(tmp_path, WHO, "ps1"), settings.of("ps1"), at(11))
    assert told == (Flag("attempts", "The next one is taken from 20 October 2026, 12:20 UTC on."),)


def test_a_second_look_costs_no_attempt_and_no_time(tmp_path: Path) -> None:
    """Who hands in the same files with a question is heard, even without an attempt left and during the pause."""
    settings = course(tmp_path, "c.Graders.attempts = 1", "c.Graders.cool_down_s = 600")
    found = hand_in(settings, (work("1"), 1), (work("1", 5, query="Why?"), 6), (work("1", 5, query="Why?"), 7))
    assert [one.taken for one in found] == [True, True, False]
    folder = tmp_path / f"submitted/{WHO}/ps1"
    assert (folder / "second-look.txt").read_text() == "Why?"
    assert (folder / "timestamp.txt").read_text().startswith("2026-10-20 12:00")
    assert sum(one.counted for one in attempts.read(tmp_path, WHO, "ps1")) == 1


def test_a_damaged_record_gives_no_attempts_back(tmp_path: Path) -> None:
    """Attempts do not begin anew because their record cannot be read."""
    settings = course(tmp_path, "c.Graders.attempts = 1")
    hand_in(settings, (work("1"), 1))
    (attempts.place(tmp_path, WHO, "ps1") / "attempts.json").write_text("[{")
    with pytest.raises(CourseError, match=r"attempts\.json is damaged"):
        hand_in(settings, (work("2", 2), 3))


@pytest.mark.parametrize("name", ["..", ".", "a/b", ""])
def test_no_student_is_called_a_path(tmp_path: Path, name: str) -> None:
    """A name that is no folder's is told and not used."""
    found = take(course(tmp_path), "ps1", work("x", student=name), NOON)
    assert (found.taken, found.problem) == (False, True)
    assert "cannot be the name of a folder" in found.text


def inbound(settings: Settings, name: str, **files: str) -> Path:
    """A folder in the exchange, as nbgrader leaves it."""
    folder = settings.course / "ex/small/inbound" / name
    folder.mkdir(parents=True)
    for path, text in {"timestamp.txt": name.split("+")[-2], **files}.items():
        (folder / path).write_text(text)
    folder.chmod(0o777)
    return folder


def test_one_folder_in_the_exchange_keeps_no_other_from_being_collected(tmp_path: Path) -> None:
    """Odd names, links, pipes and half a submission are told, and everybody else is collected; no link is followed."""
    settings = course(tmp_path)
    (tmp_path / "secret").write_text("hidden")
    inbound(settings, "student-01+ps1+2026-10-20 12:00:00.0 UTC+abc", **{"ps1.ipynb": "early"})
    good = inbound(settings, "student-01+ps1+2026-10-20 13:00:00.0 UTC+abd", **{"ps1.ipynb": "late"})
    (good / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(good / "pipe")
    inbound(settings, "a+b [*]+ps1+2026-10-20 12:00:00.0 UTC+x", **{"ps1.ipynb": "odd"})
    inbound(settings, "student-02+ps1+2026-10-20 12:00:00.0 UTC+x").chmod(0o755)
    inbound(settings, "student-06+ps1+2026-10-20 12:00:00.0 UTC+x", **{"timestamp.txt": "2026-10-20 09:00:00.0 UTC"})
    inbound(settings, "student-03+ps1+yesterday+x")
    inbound(settings, "student-04+ps10+2026-10-20 12:00:00.0 UTC+x")
    (good.parent / "student-05+ps1+2026-10-20 12:00:00.0 UTC+x").symlink_to(good)
    found = collecting.collect(settings, "ps1", now=NOON)
    assert {one.student: one.taken for one in found.students} == {
        "student-01": True,
        "a+b [*]": True,
        "student-02": False,
        "student-06": False,
    }
    assert found.unknown == ("student-03+ps1+yesterday+x", "student-05+ps1+2026-10-20 12:00:00.0 UTC+x")
    assert sorted(path.name for path in (tmp_path / "submitted/student-01/ps1").iterdir()) == [
        "ps1.ipynb",
        "timestamp.txt",
    ]
    assert there(settings) == "late"
    left = attempts.read(tmp_path, WHO, "ps1")[0].flags
    assert {one.name for one in left} == {"link_ignored", "time_doubtful"}
    assert "is a link and was not followed" in to_json(left).decode()
