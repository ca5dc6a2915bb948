"""Answers that are tried on an assignment: each in a submission that is the reference everywhere else.

Comes in: a course, and texts of answer cells by exercise. Goes out: the result of each exercise for each text. Must not: judge
whether that result is the wanted one. Exercises that do not need each other share a submission, one text for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from graders.course.assignments import released_notebook
from graders.course.files import read_files
from graders.course.simulate import notebook_with, reference_answers
from graders.coursework import Assignment, ReleasedCell, Role
from graders.exam.bindings import bound, parse, read
from graders.kernels.nursery import Zygote
from graders.records import ExerciseResult, Record, Report
from graders.results.folders import hash_files
from graders.results.judging import with_answers
from graders.run import executors, pipeline
from graders.run.pipeline import Course, Job

_WORTH = 4  # submissions for each worker: to start one costs as much as to examine that many


class Exercise(Record):
    """Answer cells and the tests that judge them. `alone`: other cells read what these answers bind."""

    notebook: str
    answers: tuple[ReleasedCell, ...]
    tests: tuple[ReleasedCell, ...]
    alone: bool

    @property
    def id(self) -> str:
        """The grade_id of its first test, under which points are reported."""
        return self.tests[0].id or ""


class Place(Record):
    """Where trials are made: the folder with the release, the author's files, the known answers, and by whom."""

    home: Path
    source: Path
    answers: Path
    workers: int
    zygote: Zygote


class Trial(Record):
    """One answer to one exercise: texts by grade_id. `name` is the caller's own."""

    exercise: str
    name: str
    cells: dict[str, str]


class Tried(Record):
    """What a trial came to: the results of its exercise's tests."""

    trial: Trial
    results: tuple[ExerciseResult, ...]


def exercises(assignment: Assignment) -> tuple[Exercise, ...]:
    """Every machine-graded exercise that has an answer cell, in released order."""
    found: list[Exercise] = []
    for name, cells in assignment.notebooks.items():
        groups: dict[tuple[str, ...], tuple[tuple[ReleasedCell, ...], list[ReleasedCell]]] = {}
        for cell, owned in with_answers(assignment, name):
            if cell.role is Role.test and cell.cell_type == "code" and owned:
                groups.setdefault(tuple(one.id or "" for one in owned), (owned, []))[1].append(cell)
        for answers, tests in groups.values():
            alone = _needed_elsewhere(answers, [cell for cell in cells if cell not in answers and cell not in tests])
            found.append(Exercise(name, answers, tuple(tests), alone))
    return tuple(found)


def _needed_elsewhere(answers: Iterable[ReleasedCell], others: Iterable[ReleasedCell]) -> bool:
    own: set[str] = set()
    for cell in answers:
        tree = parse(cell.source) if cell.cell_type == "code" else None
        own |= bound(tree) if tree else set()  # names in a file are the module's, not the notebook's
    trees = [parse(cell.source) for cell in others if cell.cell_type == "code"]
    needed = {name for tree in trees if tree for name in read(tree)}
    return bool(own & needed)


def batches(trials: Sequence[Trial], known: Sequence[Exercise]) -> list[tuple[Trial, ...]]:
    """Trials that can share a submission: the n-th of every exercise that nothing else needs."""
    together = [[one for one in trials if one.exercise == exercise.id] for exercise in known if not exercise.alone]
    rows = [tuple(one for one in row if one is not None) for row in zip_longest(*together)]
    apart = {exercise.id for exercise in known if exercise.alone}
    return [*rows, *((one,) for one in trials if one.exercise in apart)]


def tried(place: Place, course: Course, trials: Sequence[Trial], known: Sequence[Exercise]) -> list[Tried]:
    """Try every trial."""
    rows = batches(trials, known)
    texts = [{cell: text for one in row for cell, text in one.cells.items()} for row in rows]
    jobs = [
        job(place.home, place.source, course.assignment, f"trial-{number}", cells) for number, cells in enumerate(texts)
    ]
    reports = reports_of(place, jobs, course)
    tests = {exercise.id: {test.id for test in exercise.tests} for exercise in known}
    return [
        Tried(one, tuple(result for result in reports[f"trial-{number}"].exercises if result.id in tests[one.exercise]))
        for number, row in enumerate(rows)
        for one in row
    ]


def reports_of(place: Place, jobs: Sequence[Job], course: Course) -> dict[str, Report]:
    """The reports of made-up submissions by their name; few of them go through the zygote that is there already."""
    workers = min(place.workers, len(jobs) // _WORTH)
    if workers <= 1:
        return {one.student: pipeline.grade(one, course, place.zygote).report for one in jobs}
    return {one.report.student: one.report for one in executors.local(iter(jobs), course, workers)}


def job(home: Path, source: Path, assignment: Assignment, name: str, cells: Mapping[str, str] | None) -> Job:
    """A submission: the author's own answers with other texts in some cells, or (None) what was released, unchanged."""
    texts = {} if cells is None else reference_answers(assignment) | dict(cells)
    files = {
        f"{one}.ipynb": json.dumps(notebook_with(released_notebook(home, assignment.name, one), texts)).encode()
        for one in assignment.notebooks
    }
    others = read_files(source) if cells is not None else assignment.files
    files |= {path: data for path, data in others.items() if path.endswith(".py")}
    files |= {path: texts[path].encode() for path in assignment.answer_files if path in texts}
    return Job(name, files, (), hash_files(files))
