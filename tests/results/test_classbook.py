"""Laws of where a class stands: the gradebook is the truth for what counts, and what has no score is never a 0."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from nbgrader_runs import address, nbgrader
from sqlalchemy import create_engine, text
from test_gradebook import graded, store, unreadable

from graders.records import Flag, Status
from graders.results import report as reports
from graders.results.classbook import Entry, Person, assignments, entries

pytestmark = [
    # nbgrader's own, as in the tests of the gradebook
    pytest.mark.filterwarnings("ignore:Object of type:sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning"),
]
replace = msgspec.structs.replace
FLAGS = (Flag("awaits_marking", "Some answers wait."), Flag("older_release", "It is older."))


def change(course: Path, *commands: str) -> None:
    """Write into the gradebook as formgrader and nbgrader's own commands do."""
    engine = create_engine(address(course))
    with engine.begin() as book:
        for command in commands:
            book.execute(text(command))
    engine.dispose()


def mark(cell: str, **columns: object) -> str:
    """What a person gives for one cell of everybody."""
    what = ", ".join(f"{name} = {value}" for name, value in columns.items())
    return f"update grade set {what} where cell_id in (select id from base_cell where name = '{cell}')"


def by_student(course: Path, *latest: object) -> dict[str, Entry]:
    """Where each student stands."""
    return {one.person.student: one for one in entries(course, "ps1", latest, address(course))}


def test_a_persons_marks_count_before_the_machines(course):
    """A mark replaces the machine's points, extra credit is added, the penalty is taken off, and a third stays a third."""
    third = graded(a=str(Decimal(4) / 3), flags=FLAGS)
    store(course, third)
    change(
        course,
        mark("b-test", manual_score=1.5, extra_credit=0.1),
        mark("w", manual_score=2, needs_manual_grade=False),
        "update submitted_notebook set late_submission_penalty = 0.7",
    )
    one = by_student(course, third)["student-01"]
    assert one.score == Decimal(4) / 3 + Decimal("1.5") + Decimal("0.1") + 2 - Decimal("0.7")
    assert (one.status, one.penalty, one.max_score) == ("graded", Decimal("0.7"), Decimal(10))
    scores = {part.id: part.score for part in one.report.exercises}
    assert (scores["b-test"], scores["w"], scores["k"]) == (Decimal("1.6"), Decimal(2), None)
    assert [flag.name for flag in one.report.flags] == ["awaits_marking", "older_release"]
    assert one.latest == third
    change(course, mark("k", manual_score=0, needs_manual_grade=False))
    one = by_student(course, third)["student-01"]
    assert [flag.name for flag in one.report.flags] == ["older_release"]


def test_the_totals_are_those_of_nbgraders_export(course):
    """Whoever exports with nbgrader and whoever exports with us has the same score for everybody."""
    class_ = [graded("student-01"), graded("student-02", a="3", b="1.25"), unreadable("student-03")]
    store(course, *class_)
    change(
        course,
        mark("a-test", extra_credit=0.5),
        mark("w", manual_score=2.25, needs_manual_grade=False),
        "insert into student (id, last_name) values ('student-04', 'Four')",
        "update submitted_notebook set late_submission_penalty = 1.5",
    )
    nbgrader(course, "export")
    with (course / "grades.csv").open(newline="") as file:
        exported = {row["student_id"]: (row["status"], row["score"]) for row in csv.DictReader(file)}
    found = by_student(course, *class_)
    assert exported == {
        student: (one.status, "" if one.score is None else str(float(one.score))) for student, one in found.items()
    }
    assert assignments(course, address(course)) == ["ps1"]
    assert found["student-04"] == Entry(Person("student-04", "Four"), "ps1", "missing", None, Decimal(10))


def test_a_penalty_makes_no_score_negative(course):
    """Late by more than everything is 0, as in nbgrader."""
    store(course, graded())
    change(course, "update submitted_notebook set late_submission_penalty = 99")
    assert by_student(course, graded())["student-01"].score == 0


def test_what_could_not_be_graded_has_no_score(course):
    """Neither a number nor a report that counts; the reason says why. A part that is lost makes it partly graded."""
    lost = graded("student-02", a=None, status=Status.partly_graded)
    store(course, unreadable(), lost)
    found = by_student(course, unreadable(), lost)
    one = found["student-01"]
    assert (one.status, one.score, one.report, one.reason) == ("not_graded", None, None, "The file is cut off.")
    assert (found["student-02"].status, found["student-02"].score) == ("partly_graded", Decimal("0.5"))


def test_an_earlier_score_stands_and_the_reason_says_so(course):
    """After a hand-in that cannot be read, what was graded before counts with its marks."""
    for one in (graded(), unreadable()):
        reports.write(course, one, {}, lambda data: b"signature")
        store(course, one)
    change(course, mark("w", manual_score=3, needs_manual_grade=False))
    one = by_student(course, unreadable())["student-01"]
    assert (one.status, one.score) == ("graded", Decimal("7.5"))
    assert one.reason == "A later hand-in could not be graded: The file is cut off."
    assert one.latest == unreadable()


def test_what_nbgrader_graded_before_counts(course):
    """A submission that this course graded before it used graders has its score, and no report of ours."""
    store(course, graded())
    one = by_student(course)["student-01"]
    assert (one.status, one.score, one.max_score, one.latest) == ("graded", Decimal("4.5"), Decimal(10), None)
    assert {part.id: part.score for part in one.report.exercises} == {
        "a-test": Decimal(4),
        "b-test": Decimal("0.5"),
        "w": None,
        "k": None,
    }


def test_without_a_gradebook_the_reports_count(tmp_path):
    """Reports alone are a class; a student of whom only a folder is known has no name."""
    (tmp_path / "course_config.py").touch()
    one = by_student(tmp_path, graded())["student-01"]
    assert (one.person, one.score, one.max_score) == (Person("student-01"), Decimal("4.5"), Decimal(10))
    assert assignments(tmp_path) == []
