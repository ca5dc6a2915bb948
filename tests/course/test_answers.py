"""Laws of the lessons' grades: every known answer earns what was worked out by hand, check by check."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from graders.config import Settings
from graders.course.answers import KnownAnswer, hostile, known_answers
from graders.course.simulate import reference_answers
from graders.kernels.nursery import best_level
from graders.records import ExerciseResult, Kind, Outcome, Report, Status
from graders.results import feedback
from graders.results.report import summary
from graders.run import executors, grading, trials
from graders.run.pipeline import Course, Job

FOLDER = Path(__file__).resolve().parents[1] / "answers"
# Points that a machine judges, and those that a person gives for the written answer, as the tasks of each lesson say.
POINTS = {"performance-02": (27, 3), "transforms-05": (31, 4), "transforms-audit": (35, 4)}
KNOWN = [(lesson, one) for lesson in POINTS for one in known_answers(FOLDER / lesson)]
NAMES = [f"{lesson}, {one.exercise}: {one.name}" for lesson, one in KNOWN]
HOSTILE = hostile(FOLDER / "performance-02")
HOSTILE_CELL_S = 8  # wall seconds that the endless loop costs; an honest cell may take longer on a busy machine


def student_of(lesson: str, answer: KnownAnswer) -> str:
    """The submission in which a known answer was put: the n-th answers to all cells go together."""
    same = [one for one in known_answers(FOLDER / lesson) if one.cell == answer.cell]
    return f"student-{same.index(answer):02d}"


def honest(course: Course, submission: Callable[[str, dict[str, str] | None], Job]) -> Sequence[Job]:
    """The class: what was handed out, the author's own answers, then every known answer once."""
    made: dict[str, dict[str, str]] = {}
    for one in known_answers(FOLDER / course.assignment.name):
        made.setdefault(student_of(course.assignment.name, one), {})[one.cell] = one.source
    chosen = {"unchanged": None, "author": {}} | made
    return [submission(name, cells) for name, cells in chosen.items()]


@pytest.fixture(scope="module")
def submissions(root: Path) -> Callable[[Course], Callable[[str, dict[str, str] | None], Job]]:
    """Makes submissions: the author's answers with others in some places, or (None) what was handed out."""
    return lambda course: (
        lambda name, cells: trials.job(root, root / "source" / course.assignment.name, course.assignment, name, cells)
    )


@pytest.fixture(scope="module")
def lessons(settings: Settings) -> Callable[[str], Course]:
    """Each lesson, ready to grade."""
    return functools.cache(lambda name: grading.prepare(settings, name, best_level()))


@pytest.fixture(scope="module")
def reports(
    lessons: Callable[[str], Course], submissions: Callable[[Course], Callable[[str, dict[str, str] | None], Job]]
) -> Callable[[str], dict[str, Report]]:
    """The reports of each lesson's class, by student."""

    def graded(name: str) -> dict[str, Report]:
        course = lessons(name)
        done = executors.local(honest(course, submissions(course)), course, 2)
        return {one.report.student: one.report for one in done}

    return functools.cache(graded)


@pytest.fixture(scope="module")
def attacked(
    lesson: Course, submissions: Callable[[Course], Callable[[str, dict[str, str] | None], Job]]
) -> dict[str, Report]:
    """The reports of the hostile submissions, by name."""
    hasty = msgspec.structs.replace(lesson.conditions, cell_timeout_s=HOSTILE_CELL_S)
    jobs = [submissions(lesson)(one.name, one.cells) for one in HOSTILE]
    done = executors.local(jobs, msgspec.structs.replace(lesson, conditions=hasty), 2)
    return {one.report.student: one.report for one in done}


def exercise_of(report: Report, identity: str) -> ExerciseResult:
    """One exercise of a report."""
    return next(one for one in report.exercises if one.id == identity)


@pytest.mark.parametrize("name", POINTS)
def test_unchanged_earns_nothing(name: str, reports: Callable[[str], dict[str, Report]]) -> None:
    """What was handed out, handed in again, earns nothing and is flagged as not attempted."""
    report = reports(name)["unchanged"]
    assert (report.status, report.score, report.max_score) == (Status.graded, 0, sum(POINTS[name]))
    assert "not_attempted" in [flag.name for flag in report.flags]


@pytest.mark.parametrize("name", POINTS)
def test_the_author_earns_everything(name: str, reports: Callable[[str], dict[str, Report]]) -> None:
    """The author's own answers earn all that a machine judges, and the one flag is that a person is to read the rest."""
    report = reports(name)["author"]
    assert (report.status, report.score, report.max_score) == (Status.graded, POINTS[name][0], sum(POINTS[name]))
    assert [flag.name for flag in report.flags] == ["awaits_marking"]


@pytest.mark.parametrize(("name", "known"), KNOWN, ids=NAMES)
def test_a_known_answer_earns_its_points(
    name: str, known: KnownAnswer, reports: Callable[[str], dict[str, Report]]
) -> None:
    """A known answer earns, check by check, the points that were worked out by hand."""
    checks = exercise_of(reports(name)[student_of(name, known)], known.exercise).checks
    earned = {one.title: one.earned for one in checks if one.points}
    assert earned == known.points
    assert all((one.outcome is Outcome.passed) == (one.earned == one.points) for one in checks if one.points)


HINTED = [(pair, label) for pair, label in zip(KNOWN, NAMES, strict=True) if pair[1].hint]


@pytest.mark.parametrize(("name", "known"), [pair for pair, _ in HINTED], ids=[label for _, label in HINTED])
def test_a_known_misconception_is_named(
    name: str, known: KnownAnswer, reports: Callable[[str], dict[str, Report]]
) -> None:
    """Where a wrong value has an explanation, the student reads it: in the line for scripts and on the page."""
    report = reports(name)[student_of(name, known)]
    [line] = [one for one in summary(report)["exercises"] if one["id"] == known.exercise]
    assert any(known.hint in (check["hint"] or "") for check in line["checks"])
    assert known.hint in html.unescape(feedback.render(report))


@pytest.mark.parametrize(("name", "known"), KNOWN, ids=NAMES)
def test_quality_means_points(name: str, known: KnownAnswer, lessons: Callable[[str], Course]) -> None:
    """The files keep to their own words: right is all points, wrong at most one and not all, partly between."""
    cells = [cell for cells in lessons(name).assignment.notebooks.values() for cell in cells]
    most = next(cell.points for cell in cells if cell.id == known.exercise)
    total = sum(known.points.values(), Decimal(0))
    said = "right" if total == most else "wrong" if total <= 1 else "partly"
    assert said == known.quality


@pytest.mark.parametrize("name", POINTS)
def test_every_exercise_has_enough_known_answers(name: str, lessons: Callable[[str], Course]) -> None:
    """Each exercise has a right answer that is not the author's and six that are not right; a checkpoint has four of those."""
    own = {text.strip() for text in reference_answers(lessons(name).assignment).values()}
    known = known_answers(FOLDER / name)
    for cells in lessons(name).assignment.notebooks.values():
        for cell in (cell for cell in cells if cell.points and cell.role.value == "test"):
            answers = [one for one in known if one.exercise == cell.id]
            right = [one for one in answers if one.quality == "right"]
            assert right, cell.id
            assert own.isdisjoint(one.source.strip() for one in right)
            assert len(answers) - len(right) >= (6 if cell.kind is Kind.exercise else 4), cell.id


@pytest.mark.parametrize("name", [one.name for one in HOSTILE])
def test_a_hostile_submission_loses_what_it_attacks(name: str, attacked: dict[str, Report]) -> None:
    """A hostile submission is graded, earns nothing where it attacks and keeps every other exercise."""
    known = next(one for one in HOSTILE if one.name == name)
    report = attacked[name]
    assert (report.status, report.score) == (Status.graded, known.total)
    hit = {f"{cell}-test" for cell in known.cells}
    judged = [one for one in report.exercises if not one.manual]
    assert {one.id: one.score for one in judged} == {
        one.id: Decimal(0) if one.id in hit else one.max_score for one in judged
    }


@pytest.mark.parametrize("name", ["endless loop", "process exit"])
def test_a_dead_answer_says_why(name: str, attacked: dict[str, Report]) -> None:
    """A student whose cell was stopped or ended its process reads that, and reads it under that exercise alone."""
    [cell] = next(one for one in HOSTILE if one.name == name).cells
    words = {"endless loop": f"{HOSTILE_CELL_S} s", "process exit": "ended the Python process"}[name]
    for one in attacked[name].exercises:
        assert (words in (one.reason or "")) == (one.id == f"{cell}-test")
