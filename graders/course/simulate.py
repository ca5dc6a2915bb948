"""A synthetic class: submissions drawn from known answers that are right, wrong and hostile.

Comes in: a released assignment and its known answers. Goes out: folders below submitted/, and what each should score.
Must not: touch a student folder that is not one of its own.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from graders.course.answers import Hostile, KnownAnswer, hostile, known_answers
from graders.course.assignments import released_notebook
from graders.coursework import Assignment
from graders.errors import CourseError
from graders.records import Record


class Simulated(Record):
    """One synthetic student: what the submission is, and the points it should get."""

    student: str
    what: str
    total: Decimal
    honest: bool


def simulate(course: Path, assignment: Assignment, answers: Path, students: int, seed: int) -> tuple[Simulated, ...]:
    """Write `submitted/student-NN/ASSIGNMENT/` for a class. The same seed makes the same class.

    Of 24 students two hand in what they received, six attack, and the others draw an answer for each exercise: a third of
    them only right ones, the rest of any quality.

    Raises:
        CourseError: there are no known answers, or a folder of that name was handed in by somebody else.
    """
    known = known_answers(answers / assignment.name)
    if not known:
        raise CourseError(
            f"{answers / assignment.name} holds no known answers, so there is nothing to draw a class from."
        )
    draw = random.Random(seed)
    attacks = list(hostile(answers / assignment.name))[: students // 4]
    blanks = students // 12
    members: list[tuple[str, Decimal, dict[str, str], bool]] = [_attack(assignment, one) for one in attacks]
    members += [("handed in as received", Decimal(0), {}, True)] * blanks
    while len(members) < students:
        members.append(_honest(known, draw, only_right=draw.random() < 1 / 3))
    draw.shuffle(members)
    width = max(2, len(str(students)))
    names = [f"student-{number:0{width}d}" for number in range(1, students + 1)]
    _claim(course, assignment.name, names)
    made = []
    for student, (what, total, cells, honest) in zip(names, members, strict=True):
        _write(course, assignment, student, cells)
        made.append(Simulated(student, what, total, honest))
    return tuple(made)


def reference_answers(assignment: Assignment) -> dict[str, str]:
    """The author's own text of every answer, by grade_id or name of its file."""
    return {identity: one.source for identity, one in assignment.answers_of().items()}


def notebook_with(released: dict[str, Any], cells: dict[str, str]) -> dict[str, Any]:
    """A released notebook with other texts in the cells of these grade_ids."""
    made = copy.deepcopy(released)
    for cell in made["cells"]:
        identity = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if identity in cells:
            cell["source"] = cells[identity]
    return made


def _claim(course: Path, assignment: str, names: Sequence[str]) -> None:
    """Note which folders are a simulation's own. Raises `CourseError` before anything is written over another's."""
    note = course / ".graders" / "simulated" / f"{assignment}.json"
    own: list[str] = json.loads(note.read_text()) if note.is_file() else []
    taken = [name for name in names if name not in own and (course / "submitted" / name / assignment).exists()]
    if taken:
        raise CourseError(
            f"{', '.join(taken)} handed in {assignment!r} already, and not by a simulation; nothing was written. "
            f"Next step: move those folders out of {course / 'submitted'}, or simulate in another course folder."
        )
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(sorted({*own, *names})))


def _attack(assignment: Assignment, one: Hostile) -> tuple[str, Decimal, dict[str, str], bool]:
    return one.name, one.total, reference_answers(assignment) | one.cells, False


def _honest(
    known: Sequence[KnownAnswer], draw: random.Random, only_right: bool
) -> tuple[str, Decimal, dict[str, str], bool]:
    cells, total, names = {}, Decimal(0), []
    for exercise in dict.fromkeys(one.exercise for one in known):
        choices = [one for one in known if one.exercise == exercise and (one.quality == "right" or not only_right)]
        chosen = draw.choice(choices)
        cells[chosen.cell] = chosen.source
        total += sum(chosen.points.values(), Decimal(0))
        names.append(chosen.name)
    return "; ".join(names), total, cells, True


def _write(course: Path, assignment: Assignment, student: str, cells: dict[str, str]) -> None:
    folder = course / "submitted" / student / assignment.name
    folder.mkdir(parents=True, exist_ok=True)
    for name in assignment.notebooks:
        made = notebook_with(released_notebook(course, assignment.name, name), cells)
        (folder / f"{name}.ipynb").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    for path, data in assignment.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(cells[path].encode() if path in assignment.answer_files and path in cells else data)
