"""The scores of a class for others: CSV and JSON with all that is known, and what Canvas and Moodle import.

Comes in: where each student stands, by assignment. Goes out: text. Must not: write a score that nobody gave, or 0 for what is not judged.

Canvas and Moodle show their students one number, so they get a score when all of it is judged. CSV and JSON have a status and the points
that wait beside it, and what there is so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from graders.records import ExerciseResult, Status, to_json
from graders.results.classbook import Entry, Person
from graders.results.marks import AWAITS, waiting
from graders.results.mastery import Share, by_kind
from graders.results.points import ZERO
from graders.results.spreadsheet import table

Class = Mapping[str, Sequence[Entry]]  # by assignment
Row = dict[str, str | Decimal | None]
NO_GRADE = "-"

KINDS = ("exercises", "checkpoints")


def as_csv(classes: Class) -> str:
    """One row for each student and assignment; points by kind and by outcome in columns of their own, `… of` for how many."""
    rows = [_row(one) for entries in classes.values() for one in entries]
    return table(list(dict.fromkeys(name for row in rows for name in row)), rows)


def as_json(classes: Class) -> str:
    """A list with one object for each student and assignment. Points are numbers, null where there is none."""
    made = [_object(one) for entries in classes.values() for one in entries]
    return msgspec.json.format(to_json(made), indent=1).decode() + "\n"


def as_canvas(classes: Class) -> str:
    """A file for *Gradebook, Import*: one row for each student, one column for each assignment.

    Canvas wants the columns Student, ID, SIS User ID, SIS Login ID and Section, in this order and before the assignments, and finds the
    student by the first of ID, SIS User ID, SIS Login ID and name that it knows
    (https://github.com/instructure/canvas-lms, lib/gradebook_importer.rb; in words:
    https://teaching.resources.osu.edu/toolsets/carmencanvas/guides/calculating-final-grades/import-csv-file-carmen-grades). Ours are
    the LMS's id of the gradebook, if it is known, and the student's id as login. The row of Points Possible is for assignments that
    Canvas does not have yet. Any other column would become an assignment, so there is no status.
    """
    worth: Row = {"Student": "    Points Possible"}
    worth |= {name: max((one.max_score for one in entries), default=None) for name, entries in classes.items()}
    rows = [worth]
    for person, mine in _by_student(classes):
        row: Row = {"Student": _name(person), "ID": person.lms_user_id, "SIS Login ID": person.student}
        rows.append(row | {name: final(one) for name, one in mine.items()})
    return table(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *classes], rows)


def as_moodle(classes: Class) -> str:
    """A file for *Grades, Import, CSV file*: one row for each student, a column and a status for each assignment.

    Moodle asks which column names the user (user name, id number, email address) and which goes into which grade item, and ignores the
    others (https://docs.moodle.org/405/en/Grade_import). No grade is `-`, as in its own export: an empty cell would become 0 in a new
    grade item. A row whose user is empty would be given to the row before (grade/import/csv/classes/load_data.php of
    https://github.com/moodle/moodle), so the addresses are there only if everybody has one.
    """
    students = list(_by_student(classes))
    people = ["Username", "First name", "Last name"]
    people += ["Email address"] if all(person.email for person, _ in students) else []
    rows: list[Row] = []
    for person, mine in students:
        row: Row = {
            "Username": person.student,
            "First name": person.first_name,
            "Last name": person.last_name,
            "Email address": person.email,
        }
        for name, one in mine.items():
            row |= {name: final(one), f"{name} status": one.status if one.score is None or not waits(one) else AWAITS}
        rows.append(row)
    columns = [column for name in classes for column in (name, f"{name} status")]
    return table([*people, *columns], rows, blank=dict.fromkeys(classes, NO_GRADE))


FORMATS: dict[str, Callable[[Class], str]] = {
    "csv": as_csv,
    "json": as_json,
    "canvas": as_canvas,
    "moodle": as_moodle,
}


def waits(entry: Entry) -> Decimal:
    """The points that a person has still to give."""
    exercises = entry.report.exercises if entry.report else ()
    return sum((one.max_score for one in exercises if waiting(one)), ZERO)


def final(entry: Entry) -> Decimal | None:
    """The score when all of it is judged."""
    return entry.score if entry.status == Status.graded.value and not waits(entry) else None


def _by_student(classes: Class) -> Iterable[tuple[Person, dict[str, Entry]]]:
    found: dict[str, tuple[Person, dict[str, Entry]]] = {}
    for name, entries in classes.items():
        for one in entries:
            found.setdefault(one.person.student, (one.person, {}))[1][name] = one
    return [found[student] for student in sorted(found)]


def _name(person: Person) -> str:
    """As Canvas sorts names; the id where no name is known."""
    return ", ".join(filter(None, (person.last_name, person.first_name))) or person.student


def _facts(entry: Entry) -> Row:
    scored = entry.score is not None
    return {
        "assignment": entry.assignment,
        "student": entry.person.student,
        "last_name": entry.person.last_name,
        "first_name": entry.person.first_name,
        "email": entry.person.email,
        "status": entry.status,
        "reason": entry.reason,
        "score": entry.score,
        "max_score": entry.max_score,
        "late_penalty": entry.penalty if scored else None,
        "waiting": waits(entry) if scored else None,
    }


def _points(exercises: Iterable[ExerciseResult]) -> dict[str, Share | None]:
    return dict(zip(KINDS, by_kind(exercises), strict=True))


def _by_outcome(entry: Entry) -> dict[str, dict[str, Share | None]]:
    exercises = entry.report.exercises if entry.report else ()
    names = dict.fromkeys(one.outcome for one in exercises if one.outcome)
    return {name: _points(one for one in exercises if one.outcome == name) for name in names}


def _object(entry: Entry) -> dict[str, object]:
    def plain(points: Mapping[str, Share | None]) -> dict[str, object]:
        return {kind: share and {"score": share.score, "max_score": share.max_score} for kind, share in points.items()}

    total = plain(_points(entry.report.exercises if entry.report else ()))
    return {**_facts(entry), **total, "outcomes": {name: plain(points) for name, points in _by_outcome(entry).items()}}


def _row(entry: Entry) -> Row:
    row = _facts(entry)
    total = _points(entry.report.exercises if entry.report else ())
    for outcome, points in {"": total, **_by_outcome(entry)}.items():
        for kind, share in points.items():
            name = f"{outcome}: {kind}" if outcome else kind
            row |= {name: share.score, f"{name} of": share.max_score} if share else {}
    return row
