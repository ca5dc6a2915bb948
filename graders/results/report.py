"""The report of one submission on disk and as a line.

Comes in: a `Report`, the executed notebooks, a function that signs. Goes out: `autograded/STUDENT/ASSIGNMENT/` with
everything for staff, and the line of `graders grade --json`. Must not: leave half a folder behind, or put into the line
what only staff may see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from graders.records import CheckResult, ExerciseResult, Flag, Report, Shown, Status, report_from_json, to_json
from graders.results.folders import folder, replace_folder
from graders.results.hints import student_reads
from graders.results.numbers import plain
from graders.results.points import ZERO
from graders.results.times import shown

REPORT = "report.json"
SIGNATURE = "report.json.sig"
EARLIER = "report.earlier.json"
SHOWN = "shown.json"  # what the answers showed when their student saved them


def write(
    course: Path,
    report: Report,
    notebooks: Mapping[str, Mapping[str, object]],
    sign: Callable[[bytes], bytes],
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Put report, signature and executed notebooks (nbformat 4 dictionaries by name) in place of what was there.

    `files` go beside them as they are. When a submission could not be graded, the notebooks and files of an earlier
    graded one stay, and its report becomes `report.earlier.json`: it stays the graded one, as `earlier` finds it and as the
    gradebook holds it. Returns the path of the report.
    """
    target = folder(course, "autograded", report.student, report.assignment)
    data = to_json(report)
    kept = _earlier(target) if report.status is Status.not_graded else {}
    contents = kept | dict(files or {}) | {REPORT: data, SIGNATURE: sign(data)}
    for name, notebook in notebooks.items():
        contents[f"{name}.ipynb"] = msgspec.json.format(msgspec.json.encode(notebook), indent=1) + b"\n"
    replace_folder(target, contents)
    return target / REPORT


def read(path: Path) -> Report:
    """Read a `report.json`. Raises `OSError` or `msgspec.DecodeError`; only `receipts.verify` says that it is ours."""
    return report_from_json(path.read_bytes())


def earlier(course: Path, student: str, assignment: str) -> Report | None:
    """The last report of a student that holds a score, when a later hand-in is about to be or was not graded."""
    target = folder(course, "autograded", student, assignment)
    for name in (REPORT, EARLIER):
        try:
            found = read(target / name)
        except (OSError, msgspec.DecodeError):
            continue
        if found.status is not Status.not_graded:
            return found
    return None


def showed(course: Path, student: str, assignment: str) -> dict[str, dict[str, Shown]]:
    """What the answers of the graded submission showed, by notebook and grade_id; empty when that was not kept."""
    try:
        data = (folder(course, "autograded", student, assignment) / SHOWN).read_bytes()
        return msgspec.json.decode(data, type=dict[str, dict[str, Shown]])
    except (OSError, msgspec.DecodeError):
        return {}


def standing(report: Report, before: Report | None) -> Report:
    """A report without a score that says which earlier score stands; any other report as it is."""
    if report.status is not Status.not_graded or before is None:
        return report
    when = f"handed in {shown(before.submitted)}" if before.submitted else "handed in before"
    points = f"{plain(before.score or ZERO)} of {plain(before.max_score)} points"
    text = f"What you {when} stays graded, with {points}: what came later could not be graded and changes nothing."
    if _hash(before) is not None and _hash(before) == _hash(report):
        text = f"These files were graded before, with {points}. That stands."
    return msgspec.structs.replace(report, flags=(*report.flags, Flag("earlier_stands", text)))


def _hash(report: Report) -> str | None:
    return report.receipt.submission_sha256 if report.receipt else None


def _earlier(target: Path) -> dict[str, bytes]:
    """The files of an earlier graded submission, its report under another name; nothing when there is none."""
    found = {}
    for path in target.glob("**/*"):
        if path.is_file() and not path.is_symlink():
            found[path.relative_to(target).as_posix()] = path.read_bytes()
    try:
        graded = REPORT in found and report_from_json(found[REPORT]).status is not Status.not_graded
    except msgspec.DecodeError:
        graded = False
    if graded:
        found[EARLIER], found[EARLIER + ".sig"] = found[REPORT], found.get(SIGNATURE, b"")
    return found


def summary(report: Report) -> dict[str, object]:
    """What a script and the student may know of a report: points, titles and hints, no value and no message."""
    return {
        "student": report.student,
        "assignment": report.assignment,
        "status": report.status.value,
        "score": report.score,
        "max_score": report.max_score,
        "reason": report.reason,
        "flags": [{"name": flag.name, "text": flag.text, "cell": flag.cell} for flag in report.flags],
        "exercises": [_exercise(one) for one in report.exercises],
    }


def json_line(report: Report) -> bytes:
    """The line of `graders grade --json`, without a line end. Points are JSON numbers."""
    return to_json(summary(report))


def _exercise(one: ExerciseResult) -> dict[str, object]:
    return {
        "id": one.id,
        "notebook": one.notebook,
        "kind": one.kind.value,
        "score": one.score,
        "max_score": one.max_score,
        "checks": [_check(check) for check in one.checks],
    }


def _check(check: CheckResult) -> dict[str, object]:
    return {
        "title": check.title,
        "outcome": check.outcome.value,
        "points": check.points,
        "earned": check.earned,
        "hint": student_reads(check),
    }
