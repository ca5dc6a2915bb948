"""Where the best attempt counts: an earlier result is put aside, and put back if a later one earned less.

Comes in: a report that is about to be stored, and the points of both after people's marks and penalties. Goes out: the report that
stands. Must not: lose either submission, or let one more attempt lower what somebody has.

What counts lies in `submitted/`, `autograded/` and the gradebook, so that nothing else need know of this. An earlier result
that is still aside says that a run ended before it was decided; then it is decided anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import msgspec

from graders.course.files import read_files
from graders.records import Report, Status, report_from_json, to_json
from graders.results import report
from graders.results.folders import folder, handed_in, replace_folder
from graders.results.numbers import plain
from graders.run import attempts

_ASIDE, _WORTH = "aside", "worth.json"


def undecided(course: Path, student: str, assignment: str) -> bool:
    """Whether an earlier result lies aside."""
    return (_aside(course, student, assignment) / _WORTH).is_file()


def set_aside(course: Path, later: Report, worth: Callable[[Report], Decimal]) -> None:
    """Keep what is stored until the later result, with its points, is known."""
    student, assignment = later.student, later.assignment
    if later.status is Status.not_graded or undecided(course, student, assignment):
        return
    files = read_files(folder(course, "autograded", student, assignment))
    if (before := report.earlier(course, student, assignment)) is None or _sha(before) == _sha(later):
        return
    if not (attempts.place(course, student, assignment) / _sha(before)).is_dir():
        return  # its submission was not kept, so it cannot be put back
    for name, other in ((report.REPORT, report.EARLIER), (report.SIGNATURE, f"{report.EARLIER}.sig")):
        files[name] = files.pop(other, files[name])  # where a hand-in between the two could not be graded
    replace_folder(_aside(course, student, assignment), files | {_WORTH: to_json(worth(before))})


def decide(course: Path, later: Report, worth: Decimal) -> Report | None:
    """The earlier report, put back into its place because the later one earned less; None when the later one stands."""
    student, assignment = later.student, later.assignment
    aside = _aside(course, student, assignment)
    if not undecided(course, student, assignment):
        return None
    files = read_files(aside)
    before, least = report_from_json(files[report.REPORT]), msgspec.json.decode(files.pop(_WORTH), type=Decimal)
    if worth < least:
        _swap(course, student, assignment, _sha(later), _sha(before))
        replace_folder(folder(course, "autograded", student, assignment), files)
        earned = f"{plain(worth)} of {plain(later.max_score)}"
        attempts.note(course, student, assignment, _sha(later), earned)
    shutil.rmtree(aside)
    return before if worth < least else None


def _swap(course: Path, student: str, assignment: str, later: str, before: str) -> None:
    where, kept = handed_in(course, student, assignment), attempts.place(course, student, assignment)
    if (kept / before).is_dir():
        attempts.keep(course, student, assignment, later, where)
        (kept / before).rename(where)


def _aside(course: Path, student: str, assignment: str) -> Path:
    return attempts.place(course, student, assignment) / _ASIDE


def _sha(one: Report) -> str:
    return one.receipt.submission_sha256 if one.receipt else ""
