"""Laws of the lesson's grades: every known answer earns what was worked out by hand, check by check."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from decimal import Decimal
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from graders.course.answers import KnownAnswer, hostile, known_answers
from graders.course.simulate import notebook_with, reference_answers
from graders.coursework import Assignment
from graders.records import ExerciseResult, Outcome, Report, Status
from graders.results import feedback
from graders.results.folders import hash_files
from graders.results.report import summary
from graders.run import executors
from graders.run.pipeline import Course, Job

LESSON = "performance-02"
FOLDER = Path(__file__).resolve().parents[1] / "answers" / LESSON
KNOWN = known_answers(FOLDER)
HOSTILE = hostile(FOLDER)
BY_EXERCISE = {exercise: list(answers) for exercise, answers in groupby(KNOWN, lambda one: one.exercise)}
ROUNDS = max(map(len, BY_EXERCISE.values()))
HOSTILE_CELL_S = 8  # wall seconds that the endless loop costs; an honest cell may take longer on a busy machine


def student_of(answer: KnownAnswer) -> str:
    """The submission in which a known answer was put: the n-th answers of all exercises go together."""
    return f"student-{BY_EXERCISE[answer.exercise].index(answer):02d}"


def job(student: str, released: dict, cells: dict[str, str]) -> Job:
    """One submission: the released notebook with these answers."""
    files = {f"{LESSON}.ipynb": json.dumps(notebook_with(released, cells)).encode()}
    return Job(student, files, (), hash_files(files))


def honest(assignment: Assignment, released: dict) -> Iterable[Job]:
    """The class: what was handed out, the author's own notebook, then every known answer once."""
    yield job("unchanged", released, {})
    yield job("author", released, reference_answers(assignment))
    for number in range(ROUNDS):
        chosen = [answers[number % len(answers)] for answers in BY_EXERCISE.values()]
        yield job(f"student-{number:02d}", released, {one.cell: one.source for one in chosen})


@pytest.fixture(scope="module")
def released(root: Path) -> dict:
    """The notebook that students receive."""
    return json.loads((root / "release" / LESSON / f"{LESSON}.ipynb").read_text())


@pytest.fixture(scope="module")
def reports(lesson: Course, released: dict) -> dict[str, Report]:
    """The reports of the class, by student."""
    done = executors.local(honest(lesson.assignment, released), lesson, 2)
    return {one.report.student: one.report for one in done}


@pytest.fixture(scope="module")
def attacked(lesson: Course, released: dict) -> dict[str, Report]:
    """The reports of the hostile submissions, by name."""
    hasty = msgspec.structs.replace(lesson.conditions, cell_timeout_s=HOSTILE_CELL_S)
    own = reference_answers(lesson.assignment)
    jobs = [job(one.name, released, own | one.cells) for one in HOSTILE]
    done = executors.local(jobs, msgspec.structs.replace(lesson, conditions=hasty), 2)
    return {one.report.student: one.report for one in done}


def exercise_of(report: Report, identity: str) -> ExerciseResult:
    """One exercise of a report."""
    return next(one for one in report.exercises if one.id == identity)


def test_unchanged_earns_nothing(reports: dict[str, Report]) -> None:
    """What was handed out, handed in again, earns 0 of 12 and is flagged as not attempted."""
    report = reports["unchanged"]
    assert (report.status, report.score, report.max_score) == (Status.graded, 0, 12)
    assert "not_attempted" in [flag.name for flag in report.flags]


def test_the_author_earns_everything(reports: dict[str, Report]) -> None:
    """The author's own answers earn 12 of 12 and raise no flag."""
    report = reports["author"]
    assert (report.status, report.score, report.max_score) == (Status.graded, 12, 12)
    assert report.flags == ()


@pytest.mark.parametrize("known", KNOWN, ids=lambda one: f"{one.exercise}: {one.name}")
def test_a_known_answer_earns_its_points(known: KnownAnswer, reports: dict[str, Report]) -> None:
    """A known answer earns, check by check, the points that were worked out by hand."""
    checks = exercise_of(reports[student_of(known)], known.exercise).checks
    earned = {one.title: one.earned for one in checks if one.points}
    assert earned == known.points
    assert all((one.outcome is Outcome.passed) == (one.earned == one.points) for one in checks if one.points)


@pytest.mark.parametrize("known", [one for one in KNOWN if one.hint], ids=lambda one: f"{one.exercise}: {one.name}")
def test_a_known_misconception_is_named(known: KnownAnswer, reports: dict[str, Report]) -> None:
    """Where a wrong value has an explanation, the student reads it: in the line for scripts and on the page."""
    report = reports[student_of(known)]
    [line] = [one for one in summary(report)["exercises"] if one["id"] == known.exercise]
    assert any(known.hint in (check["hint"] or "") for check in line["checks"])
    assert known.hint in html.unescape(feedback.render(report))


@pytest.mark.parametrize("quality", ["right", "partly", "wrong"])
def test_quality_means_points(quality: str) -> None:
    """The files keep to their own words: right is all 4 points, wrong at most one, partly between."""
    least, most = {"right": (4, 4), "partly": (2, 3), "wrong": (0, 1)}[quality]
    totals = {one.name: sum(one.points.values()) for one in KNOWN if one.quality == quality}
    assert {name: total for name, total in totals.items() if not least <= total <= most} == {}


def test_every_exercise_has_enough_known_answers(lesson: Course) -> None:
    """Each exercise has a right answer that is not the author's and six that are not right."""
    own = {text.strip() for text in reference_answers(lesson.assignment).values()}
    for exercise, answers in BY_EXERCISE.items():
        right = [one for one in answers if one.quality == "right"]
        assert right, exercise
        assert own.isdisjoint(one.source.strip() for one in right)
        assert len(answers) - len(right) >= 6


@pytest.mark.parametrize("name", [one.name for one in HOSTILE])
def test_a_hostile_submission_loses_what_it_attacks(name: str, attacked: dict[str, Report]) -> None:
    """A hostile submission is graded, earns nothing where it attacks and keeps every other exercise."""
    known = next(one for one in HOSTILE if one.name == name)
    report = attacked[name]
    assert (report.status, report.score) == (Status.graded, known.total)
    hit = {f"{cell}-test" for cell in known.cells}
    assert {one.id: one.score for one in report.exercises} == {
        one.id: Decimal(0) if one.id in hit else one.max_score for one in report.exercises
    }


@pytest.mark.parametrize("name", ["endless loop", "process exit"])
def test_a_dead_answer_says_why(name: str, attacked: dict[str, Report]) -> None:
    """A student whose cell was stopped or ended its process reads that, and reads it under that exercise alone."""
    [cell] = next(one for one in HOSTILE if one.name == name).cells
    words = {"endless loop": f"{HOSTILE_CELL_S} s", "process exit": "ended the Python process"}[name]
    for one in attacked[name].exercises:
        assert (words in (one.reason or "")) == (one.id == f"{cell}-test")
