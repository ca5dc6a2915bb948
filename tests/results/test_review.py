"""Laws of the queue of flags: what needs a person waits until a person settles it, and waits again once the answer is another."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from result_samples import performance_report
from test_overview import entry, lost, missing

from graders.commands import reviewing
from graders.errors import GradersError
from graders.records import Flag, Report, Status
from graders.results import journal, review
from graders.results.overview import looks

replace = msgspec.structs.replace
FLAGS = (
    Flag("older_release", "It is older."),
    Flag("file_renamed", "It had another name."),
    Flag("awaits_marking", "Somebody reads it."),
    Flag("protocol_broken", "Nothing that a notebook sends.", "masked-score-test"),
)


def flagged(student: str = "student-01", flags: tuple[Flag, ...] = FLAGS) -> Report:
    """The sample with other flags."""
    return replace(performance_report(), student=student, flags=flags)


def with_answer(report: Report, id: str, answer: str) -> Report:
    """The report with another answer in one exercise."""
    return replace(
        report, exercises=tuple(replace(one, answer=answer) if one.id == id else one for one in report.exercises)
    )


def waiting(course, *reports: Report) -> list[tuple[str, str]]:
    """Students and flags of the queue."""
    return [(one.student, one.name) for one in review.queue(reports, review.settled(course, "performance-02"))]


def settle(course, student: str, name: str, *reports: Report, why: str = "") -> int:
    """Accept a flag."""
    found = review.queue(reports, review.settled(course, "performance-02"))
    return review.accept(course, "performance-02", found, student, name, why)


def test_what_needs_a_person_waits_the_most_urgent_first(tmp_path):
    """Flags for information and written answers, which are marked elsewhere, do not wait; a later file that cannot be read does."""
    entries = [entry(flagged()), entry(flagged("student-02", FLAGS[1:2])), lost(), missing()]
    later = replace(entry(flagged("student-03", ())), latest=lost("student-03").latest)
    assert waiting(tmp_path, *review.reports([*entries, later])) == [
        ("student-03", "not_graded"),
        ("student-90", "not_graded"),
        ("student-01", "protocol_broken"),
        ("student-01", "older_release"),
    ]


def test_what_is_settled_waits_no_more_until_the_answer_changes(tmp_path):
    """A flag of one cell returns with another answer there and with no other; a flag of the whole returns with any."""
    first = flagged()
    assert settle(tmp_path, "student-01", "protocol_broken", first) == 1
    assert settle(tmp_path, "student-01", "older_release", first) == 1
    assert waiting(tmp_path, first) == []
    assert waiting(tmp_path, with_answer(first, "ledger-x16-test", "x = 2")) == [("student-01", "older_release")]
    assert waiting(tmp_path, with_answer(first, "masked-score-test", "y = 3")) == [
        ("student-01", "protocol_broken"),
        ("student-01", "older_release"),
    ]
    assert waiting(tmp_path, flagged("student-02")) == [
        ("student-02", "protocol_broken"),
        ("student-02", "older_release"),
    ]
    assert [one.name for one in looks([first], review.settled(tmp_path, "performance-02"))] == ["file_renamed"]
    assert review.settled(tmp_path, "another") == frozenset()


def test_a_flag_that_says_something_else_waits(tmp_path):
    """What a person has read is the sentence: another one of the same name and answer is new."""
    assert settle(tmp_path, "student-01", "older_release", flagged()) == 1
    other = flagged(flags=(Flag("older_release", "It is much older."),))
    assert waiting(tmp_path, other) == [("student-01", "older_release")]


def test_what_could_not_be_graded_waits_until_other_files_come(tmp_path):
    """It can be settled as well, and another reason or other files are new."""
    [report] = review.reports([lost()])
    assert settle(tmp_path, "student-90", "not_graded", report) == 1
    assert waiting(tmp_path, report) == []
    assert waiting(tmp_path, replace(report, reason="It is a picture.")) == [("student-90", "not_graded")]
    assert waiting(tmp_path, replace(report, arrived=("ps1.ipynb, 3 bytes",))) == [("student-90", "not_graded")]


def test_a_lost_exercise_waits_with_its_reason():
    """A part that could not be judged is told by exercise, until a person has given it points."""
    report = flagged(flags=())
    first = replace(report.exercises[0], score=None, reason="The machine failed.")
    partly = replace(report, status=Status.partly_graded, exercises=(first, *report.exercises[1:]))
    [one] = review.queue([partly], ())
    assert (one.name, one.text) == ("partly_graded", "ledger-x16-test: The machine failed.")


def test_the_journal_says_who_settled_what_and_why(tmp_path):
    """One line for each flag, with its cell and reason; a flag that is not open is refused, with those that are."""
    settle(tmp_path, "student-01", "protocol_broken", flagged(), why="Seen.")
    [line] = journal.lines(tmp_path)
    assert (line.act, line.assignment, line.student, line.why) == ("accept", "performance-02", "student-01", "Seen.")
    assert (line.exercise, line.old) == ("masked-score-test", {"flag": "protocol_broken"})
    with pytest.raises(GradersError, match=r"no open flag 'protocol_broken'.*Open there: older_release"):
        settle(tmp_path, "student-01", "protocol_broken", flagged())
    assert len(journal.lines(tmp_path)) == 1


def test_points_are_those_that_an_exercise_can_have(tmp_path):
    """Neither an unknown exercise nor points out of range reach journal or gradebook."""
    from graders.config import load

    (tmp_path / "course_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'course'\n")
    settings = load(tmp_path)
    for where, exercise, points, told in (
        (entry(flagged()), "no-such", 1, "no-such.*There is: performance-02/ledger-x16-test"),
        (entry(flagged()), "ledger-x16-test", 5, "0 to 4 points, not 5"),
        (entry(flagged()), "ledger-x16-test", -1, "0 to 4 points, not -1"),
        (entry(flagged()), "ledger-x16-test", "nan", "0 to 4 points, not NaN"),
        (lost(), "ledger-x16-test", 1, "nothing is graded"),
    ):
        with pytest.raises(GradersError, match=told):
            review.override(settings, where, (), exercise, Decimal(points), "Why.")
    assert journal.lines(tmp_path) == []


def test_a_students_question_is_shown_as_text(capsys):
    """What a student asks for with a second look stands in the queue as it was written: it colours, moves and marks up nothing."""
    asked = Flag("second_look", "A second look was asked for: “[bold]why\x1b[2J [/x]\u202e?”")
    found = review.queue([flagged(flags=(asked,))], ())
    reviewing._print_queue("performance-02", found, 0)
    told = capsys.readouterr().out
    assert told.startswith(
        "Look now:\n  student-01  second_look\n      A second look was asked for: “[bold]why�[2J [/x]�?”"
    )
