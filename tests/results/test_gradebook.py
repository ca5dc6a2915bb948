"""Laws of the gradebook: nbgrader reads what we stored, and "could not be graded" is never a 0 in it."""

from __future__ import annotations

import csv
import os
import pickle
import shutil
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from nbgrader_runs import address, nbgrader
from result_samples import failed, passed
from sqlalchemy import create_engine, text

from graders.errors import CourseError, InfrastructureError, SettingsError
from graders.records import ExerciseResult, Kind, Report, Status
from graders.results import standings
from graders.results.gradebook import Writer
from graders.results.standings import Standing

pytestmark = [
    # nbgrader's own: SQLAlchemy 2.1 warns inside its add_submission, and its server extension imports deprecated names
    pytest.mark.filterwarnings("ignore:Object of type:sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning"),
]


def exercise(id: str, score: str | None, max_score: int, **more: object) -> ExerciseResult:
    """One exercise of notebook `nb`."""
    fields = {"notebook": "nb", "kind": Kind.exercise, "answers": (id.removesuffix("-test"),)} | more
    number = None if score is None else Decimal(score)
    return ExerciseResult(id=id, score=number, max_score=Decimal(max_score), **fields)


def graded(student: str = "student-01", a: str | None = "4", b: str | None = "0.5", **more: object) -> Report:
    """A report on ps1, in which the written answer and the task wait for a person."""
    exercises = (
        exercise("a-test", a, 4),
        exercise("b-test", b, 2, checks=(failed("p", 1, hint="Look at y."), passed("q", 1))),
        exercise("w", None, 3, manual=True),
        exercise("k", None, 1, manual=True),
    )
    total = sum((one.score or Decimal(0) for one in exercises), Decimal(0))
    fields = {"status": Status.graded, "score": total, "exercises": exercises, "submitted": "2026-11-12T15:05:00+01:00"}
    return Report(student=student, assignment="ps1", max_score=Decimal(10), **fields | more)


def unreadable(student: str = "student-01") -> Report:
    """A submission that could not be graded."""
    fields = {"status": Status.not_graded, "score": None, "max_score": Decimal(10), "reason": "The file is cut off."}
    return Report(student=student, assignment="ps1", **fields)


def store(course: Path, *reports: Report) -> None:
    """Store reports as the pipeline does."""
    with Writer(course, address(course)) as writer:
        for report in reports:
            writer.store(report)


def statuses(course: Path) -> list[Standing]:
    """Our rows, from wherever the course has them."""
    return standings.statuses(course, address(course))


@pytest.fixture
def reading(course):
    """nbgrader's own view of the course's gradebook, opened when called."""
    from nbgrader.api import Gradebook

    opened = []

    def open_book() -> Gradebook:
        book = Gradebook(address(course), "course")
        opened.append(book)
        return book

    yield open_book
    for book in opened:
        book.close()


def test_nbgrader_reads_the_scores_that_we_stored(course, reading):
    """The submission's score, its parts, time and who still has to mark are in nbgrader's API as in the report."""
    store(course, graded())
    book = reading()
    submission = book.find_submission("ps1", "student-01")
    assert (submission.score, submission.max_score, submission.needs_manual_grade) == (4.5, 10, True)
    assert submission.timestamp.isoformat() == "2026-11-12T14:05:00"
    parts = {grade.name: (grade.auto_score, grade.needs_manual_grade) for grade in submission.notebooks[0].grades}
    assert parts == {"a-test": (4, False), "b-test": (0.5, False), "w": (None, True), "k": (None, True)}
    assert book.find_comment("a", "nb", "ps1", "student-01").auto_comment is None
    assert "Look at y." in book.find_comment("b", "nb", "ps1", "student-01").auto_comment
    [row] = statuses(course)
    assert (row.status, row.score, row.max_score, row.reason) == ("graded", Decimal("4.5"), Decimal(10), None)


def test_what_could_not_be_graded_has_no_grades(course, reading):
    """A not_graded report leaves a status with its reason, and neither a submission nor a 0."""
    store(course, unreadable())
    book = reading()
    assert [student.id for student in book.students] == ["student-01"]
    assert book.assignment_submissions("ps1") == []
    [row] = statuses(course)
    assert (row.status, row.score, row.reason) == ("not_graded", None, "The file is cut off.")


def test_an_earlier_good_submission_keeps_its_grades(course, reading):
    """When a later file cannot be read the earlier score stands, and the reason tells of the later one."""
    store(course, graded(), unreadable(), unreadable())
    assert reading().find_submission("ps1", "student-01").score == 4.5
    [row] = statuses(course)
    assert (row.status, row.score) == ("graded", Decimal("4.5"))
    assert row.reason == "A later hand-in could not be graded: The file is cut off."
    store(course, graded(a="0"))
    [row] = statuses(course)
    assert (row.score, row.reason) == (Decimal("0.5"), None)


def test_manual_marks_are_kept(course, reading):
    """A regrade keeps manual scores, extra credit and comments, and asks a person to look again."""
    store(course, graded())
    book = reading()
    written = book.find_grade("w", "nb", "ps1", "student-01")
    written.manual_score, written.extra_credit, written.needs_manual_grade = 2.5, 1.0, False
    book.find_comment("w", "nb", "ps1", "student-01").manual_comment = "Well said."
    book.db.commit()
    store(course, graded(a="1"))
    book = reading()
    written = book.find_grade("w", "nb", "ps1", "student-01")
    assert (written.manual_score, written.extra_credit, written.needs_manual_grade) == (2.5, 1.0, True)
    assert book.find_comment("w", "nb", "ps1", "student-01").comment == "Well said."
    assert book.find_submission("ps1", "student-01").score == 1 + 0.5 + 2.5 + 1


@pytest.mark.parametrize(("reason", "waiting"), [(None, False), ("The cell is not there.", True)])
def test_an_unanswered_written_cell_is_proposed_as_zero(course, reading, reason, waiting):
    """An untouched written cell is settled as 0 like nbgrader's; a deleted one is proposed as 0 and shown to the TA."""
    blank = exercise("w", None, 3, manual=True, attempted=False, reason=reason)
    store(course, graded(exercises=(blank,)))
    grade = reading().find_grade("w", "nb", "ps1", "student-01")
    assert (grade.auto_score, grade.needs_manual_grade) == (0.0, waiting)
    assert reading().find_comment("w", "nb", "ps1", "student-01").auto_comment == "No response."


def test_what_one_exercise_lacks_is_not_a_zero(course, reading):
    """An exercise that could not be judged has no automatic score and waits for a person."""
    store(course, graded(a=None, status=Status.partly_graded))
    grade = reading().find_grade("a-test", "nb", "ps1", "student-01")
    assert (grade.auto_score, grade.needs_manual_grade) == (None, True)
    assert statuses(course)[0].status == "partly_graded"


def test_a_report_is_stored_whole_or_not_at_all(course, reading):
    """A report with a cell that the gradebook does not know changes nothing, not even the student's name."""
    store(course, graded())
    odd = graded("student-02", exercises=(exercise("a-test", "4", 4), exercise("new-test", "1", 1)))
    with Writer(course, address(course)) as writer:
        with pytest.raises(CourseError, match="graders release ps1"):
            writer.store(odd)
        with pytest.raises(CourseError, match="new-test"):
            writer.store(msgspec.structs.replace(odd, student="student-01"))
        writer.store(graded("student-03"))
    book = reading()
    assert [student.id for student in book.students] == ["student-01", "student-03"]
    assert book.find_submission("ps1", "student-01").score == 4.5


def test_an_assignment_must_be_released_first(tmp_path):
    """In an empty folder the writer makes nbgrader's whole gradebook, and says which command releases."""
    with Writer(tmp_path) as writer, pytest.raises(CourseError, match="`graders release ps1`"):
        writer.store(graded())
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        [version] = database.execute("SELECT version_num FROM alembic_version")
    assert {"graders_status", "grade", "submitted_assignment"} <= tables
    assert version


def test_the_writer_needs_no_activated_environment(tmp_path, monkeypatch):
    """nbgrader runs alembic from PATH; the writer makes sure that it is found, and alters nothing else."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with Writer(tmp_path):
        assert os.environ["PATH"].endswith("/usr/bin:/bin")
    assert standings.statuses(tmp_path) == []


@pytest.mark.parametrize("student", ["o'brien [x]", "é", "-rf", "%2e%2e", "a@b", 'a "b"', "; DROP TABLE student"])
def test_student_ids_are_opaque(course, student):
    """An id goes into the database and comes out as it was."""
    store(course, graded(student))
    assert [row.student for row in statuses(course)] == [student]


def test_a_writer_can_be_sent_to_another_process(course):
    """A writer that is not open can be pickled; one that is not open cannot store."""
    writer = pickle.loads(pickle.dumps(Writer(course, address(course))))
    with pytest.raises(InfrastructureError, match="not open"):
        writer.store(graded())
    with writer:
        writer.store(graded())
    assert [type(row) for row in statuses(course)] == [Standing]


def test_a_time_that_cannot_be_read_leaves_the_old_one(course, reading):
    """An unknown time of submission is no crash, and does not wipe a known one."""
    store(course, graded(), graded(submitted="yesterday-ish"), graded(submitted=None))
    assert reading().find_submission("ps1", "student-01").timestamp.isoformat() == "2026-11-12T14:05:00"


def test_the_writer_waits_for_formgrader(course, reading):
    """What a person is just now saving delays a report, and the report is judged by it: the mark stays, and somebody has to look again."""
    import threading

    store(course, graded())
    engine = create_engine(address(course))
    with Writer(course, address(course)) as writer, engine.connect() as formgrader:
        formgrader.execute(text("update grade set manual_score = 3, needs_manual_grade = false where auto_score = 4"))
        timer = threading.Timer(0.5, formgrader.commit)
        timer.start()
        writer.store(graded(a="0"))
        timer.join()
    engine.dispose()
    grade = reading().find_grade("a-test", "nb", "ps1", "student-01")
    assert (grade.auto_score, grade.manual_score, grade.needs_manual_grade) == (0, 3, True)


def test_what_no_database_can_keep_is_stored_all_the_same(course):
    """A null character in a student's text, or half a surrogate pair, costs nobody a grade, and is no change of a marked answer."""
    odd = graded(exercises=(exercise("w", None, 3, manual=True, answer="a\0b\ud800c"),), score=Decimal(0))
    lost = msgspec.structs.replace(unreadable("student-02"), reason="It holds \0.")
    store(course, odd, lost)
    assert [row.status for row in statuses(course)] == ["graded", "not_graded"]


def test_the_export_is_blank_where_there_is_no_score(course, reading):
    """`nbgrader export` writes nbgrader's own columns and scores, a status, and nothing where nobody gave a score."""
    names = ["student-01", "student-02", "student-03", "student-04", "student-05"]
    with (course / "course_config.py").open("a") as file:
        file.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    book = reading()
    book.update_or_create_assignment("ps1", duedate="2026-11-12 15:30:00 Europe/Berlin")
    for name in names:
        book.add_student(name)
    with Writer(course, address(course)) as writer:
        writer.store(graded("student-01"))
        writer.store(unreadable("student-02"))
        writer.store(graded("student-03", a="0", b="0"))
        writer.store(graded("student-05", submitted="2026-11-12 15:31:00 Europe/Berlin"))
    nbgrader(course, "export", "--to", "ours.csv")
    nbgrader(course, "export", "--to", "theirs.csv", "--exporter=nbgrader.plugins.CsvExportPlugin")
    with (course / "ours.csv").open() as ours, (course / "theirs.csv").open() as theirs:
        mine, nbgraders = csv.DictReader(ours), csv.DictReader(theirs)
        rows = {row["student_id"]: row for row in mine}
        plain = {row["student_id"]: row for row in nbgraders}
        assert mine.fieldnames == [*nbgraders.fieldnames, "status", "reason"]
    assert [rows[name]["score"] for name in names] == ["4.5", "", "0.0", "", "0.0"]
    assert [rows[name]["raw_score"] for name in names] == ["4.5", "", "0.0", "", "4.5"]
    assert [rows[name]["late_submission_penalty"] for name in names] == ["0.0", "", "0.0", "", "4.5"]
    assert [rows[name]["status"] for name in names] == ["graded", "not_graded", "graded", "missing", "graded"]
    assert rows["student-02"]["reason"] == "The file is cut off."
    for name in ("student-01", "student-03", "student-05"):
        assert {key: rows[name][key] for key in plain[name]} == plain[name]
    standing = {row.student: row for row in statuses(course)}
    book = reading()
    for name in ("student-01", "student-03"):
        assert Decimal(rows[name]["score"]) == standing[name].score == Decimal(book.find_submission("ps1", name).score)


def test_no_name_in_the_export_is_a_formula(course, reading):
    """Whatever a student is called, a spreadsheet that opens the file computes nothing."""
    reading().add_student("=1+1", first_name="+1", last_name="@SUM(A1)", email="-1")
    nbgrader(course, "export")
    with (course / "grades.csv").open(newline="") as file:
        [row] = csv.DictReader(file)
    names = [row[name] for name in ("student_id", "first_name", "last_name", "email")]
    assert names == ["'=1+1", "'+1", "'@SUM(A1)", "'-1"]


def test_the_export_takes_nbgraders_options(course):
    """Students and assignments can be chosen as with nbgrader's own exporter."""
    store(course, graded("student-01"), graded("student-02"))
    nbgrader(course, "export", "--student", "['student-02']", "--assignment", "['ps1']")
    with (course / "grades.csv").open() as file:
        assert [row["student_id"] for row in csv.DictReader(file)] == ["student-02"]


def test_formgraders_list_agrees(course, reading):
    """The dictionaries that formgrader's pages are made of hold the scores that we stored."""
    store(course, graded("student-01"), graded("student-02", a="1"), unreadable("student-03"))
    rows = {row["student"]: row for row in reading().submission_dicts("ps1")}
    assert {name: row["score"] for name, row in rows.items()} == {"student-01": 4.5, "student-02": 1.5}
    standing = {row.student: row.score for row in statuses(course)}
    assert {name: standing[name] for name in rows} == {name: Decimal(str(row["score"])) for name, row in rows.items()}


def test_a_course_that_used_nbgrader_before_keeps_its_grades(course, reading):
    """Grades that nbgrader itself stored are exported as graded, and stand when a later file cannot be read."""
    book = reading()
    book.add_student("student-01")
    for grade in book.add_submission("ps1", "student-01").notebooks[0].grades:
        grade.auto_score = 1.0
    book.db.commit()
    nbgrader(course, "export")
    with (course / "grades.csv").open() as file:
        [row] = csv.DictReader(file)
    assert (row["score"], row["status"]) == ("4.0", "graded")
    store(course, unreadable())
    [row] = statuses(course)
    assert (row.status, row.score) == ("graded", 4)
    assert reading().find_submission("ps1", "student-01").score == 4.0


def test_a_report_costs_the_same_in_a_big_class(released_course, tmp_path):
    """To store one more report, SQLite works as much beside 40 students as beside 10: it looks at no row of anybody else."""
    course = Path(shutil.copytree(released_course, tmp_path / "course"))
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    with Writer(course) as writer:
        connection = writer._book.engine.raw_connection()
        connection.driver_connection.set_progress_handler(count, 10)
        connection.close()
        costs = []
        for number in range(40):
            before = steps
            writer.store(graded(f"student-{number:02d}"))
            costs.append(steps - before)
    assert costs[10] > 10
    assert max(costs[10:]) < 1.3 * min(costs[10:])


@pytest.mark.parametrize(
    ("url", "error", "wanted"),
    [
        ("postgresql+psycopg2://me:secret@/book", SettingsError, r"driver.*pip install 'graders\[postgres\]'"),
        ("postgresql+psycopg://me:secret@/book?host=/nowhere", InfrastructureError, r"me:\*\*\*@/book.*Next step"),
        ("postgres://me:secret@/book", SettingsError, r"postgresql\+psycopg://USER@HOST/DATABASE"),
    ],
)
def test_a_gradebook_that_cannot_be_had_is_told(tmp_path, url, error, wanted):
    """Without a driver, a server or a right address, reader and writer say what is missing and what to do, and no password."""
    with pytest.raises(error, match=wanted) as reading:
        standings.statuses(tmp_path, url)
    with pytest.raises(error, match=wanted) as writing, Writer(tmp_path, url):
        pass
    assert "secret" not in f"{reading.value}{writing.value}"
