"""The queue of flags: what a person still has to look at, and what somebody has settled.

Comes in: reports with what counts, and the journal. Goes out: `Open` flags, the most urgent first, and lines in the journal. Must not: take
a flag for settled once the answer that it was raised about is another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from pathlib import Path

from graders.config import Settings
from graders.errors import GradersError
from graders.records import ExerciseResult, Flag, Record, Report, Status, to_json
from graders.results import journal, urgency
from graders.results.classbook import Entry
from graders.results.gradebook import Writer
from graders.results.marks import AWAITS
from graders.results.numbers import plain

ACCEPT, OVERRIDE, RERUN = "accept", "override", "rerun"


class Open(Record):
    """One flag that waits. `text` may be a student's own words; `seen` identifies the flag and the answer that it was raised about."""

    student: str
    name: str
    text: str
    cell: str | None
    seen: str


def of(report: Report) -> Iterator[Open]:
    """What of one report needs a person: its flags, and what of it could not be graded."""
    for flag in report.flags:
        if urgency.needs_person(flag.name):
            yield Open(report.student, flag.name, flag.text, flag.cell, seen(report, flag))
    if report.status is not Status.graded:
        for text in lost(report):
            name = report.status.value
            yield Open(report.student, name, text, None, _digest(report, name, text, report.exercises))


def lost(report: Report) -> Iterator[str]:
    """Why something has no score: the whole, or a reason for the exercises that it lost, told once."""
    if report.status is Status.not_graded:
        yield report.reason or ""
    found = [one for one in report.exercises if one.score is None and not one.manual]
    for why in dict.fromkeys(one.reason or "" for one in found):
        yield f"{', '.join(one.id for one in found if (one.reason or '') == why)}: {why}"


def seen(report: Report, flag: Flag) -> str:
    """What a flag says, and the answers that it says it about: those of its cell, else all."""
    own = [one for one in report.exercises if flag.cell is not None and flag.cell in (one.id, *one.answers)]
    return _digest(report, flag.name, flag.text, own or report.exercises)


def _digest(report: Report, name: str, text: str, exercises: Iterable[ExerciseResult]) -> str:
    answers = {f"{one.notebook}/{one.id}": one.answer for one in exercises}
    files = report.receipt.submission_sha256 if report.receipt and not answers else None
    told = [report.student, report.assignment, name, text, answers, files, list(report.arrived)]
    return hashlib.sha256(to_json(told)).hexdigest()


def settled(course: Path, assignment: str) -> frozenset[str]:
    """What people have accepted, as `seen` names it."""
    lines = journal.lines(course)
    return frozenset(str(one.new.get("seen")) for one in lines if (one.act, one.assignment) == (ACCEPT, assignment))


def reports(entries: Iterable[Entry]) -> Iterator[Report]:
    """What counts of each student, and what came later and could not be graded."""
    for entry in entries:
        if entry.latest is not None and entry.latest.status is Status.not_graded:
            yield entry.latest
        if entry.report is not None:
            yield entry.report


def queue(reports: Iterable[Report], settled: Collection[str]) -> tuple[Open, ...]:
    """The open flags of a class. A written answer that waits is not among them: whoever marks it has seen it."""
    found = {
        one.seen: one for report in reports for one in of(report) if one.name != AWAITS and one.seen not in settled
    }
    return tuple(sorted(found.values(), key=lambda one: (urgency.place(one.name), one.student, one.text)))


def accept(course: Path, assignment: str, waiting: Iterable[Open], student: str, name: str, why: str) -> int:
    """Settle every open flag of this name and student, and return how many.

    Raises:
        GradersError: no such flag is open.
    """
    mine = [one for one in waiting if one.student == student]
    found = [one for one in mine if one.name == name]
    if not found:
        names = ", ".join(dict.fromkeys(one.name for one in mine)) or "none"
        raise GradersError(f"{student!r} has no open flag {name!r} in {assignment!r}. Open there: {names}.")
    for one in found:
        _settle(course, assignment, one, why)
    return len(found)


def override(
    settings: Settings, entry: Entry, waiting: Iterable[Open], exercise: str, points: Decimal, why: str
) -> str:
    """Give a person's points for one exercise, settle the flags that point at it, and say what changed.

    `exercise` is a grade_id, with the notebook and a slash before it where two notebooks share it.

    Raises:
        GradersError: there is no such exercise, or it cannot have these points.
    """
    student, report = entry.person.student, entry.report
    known = report.exercises if report is not None else ()
    found = [one for one in known if exercise in (one.id, f"{one.notebook}/{one.id}")]
    if report is None or len(found) != 1:
        ids = ", ".join(f"{one.notebook}/{one.id}" for one in known) or "nothing, since nothing is graded"
        raise GradersError(f"{exercise!r} is not one exercise of {student!r} in {entry.assignment!r}. There is: {ids}.")
    one = found[0]
    if not (points.is_finite() and 0 <= points <= one.max_score):
        raise GradersError(
            f"{one.id!r} can earn 0 to {plain(one.max_score)} points, not {points}. Extra credit is given in formgrader."
        )
    old, new = {"notebook": one.notebook, "score": one.score}, {"notebook": one.notebook, "score": points}
    journal.note(settings.course, OVERRIDE, entry.assignment, student, why, old, new, one.id)
    with Writer(settings.course, settings.db_url, settings.course_id) as writer:
        writer.mark(report, one, points)
    for flag in waiting:
        if flag.student == student and flag.cell in (one.id, *one.answers):
            _settle(settings.course, entry.assignment, flag, why)
    return f"{one.id}: {'–' if one.score is None else plain(one.score)} → {plain(points)} of {plain(one.max_score)}"


def note_rerun(course: Path, entry: Entry, why: str) -> None:
    """Note that somebody asks for a rerun; what it changes, whoever grades notes."""
    old = {"status": entry.status, "score": entry.score}
    journal.note(course, RERUN, entry.assignment, entry.person.student, why, old, {})


def _settle(course: Path, assignment: str, one: Open, why: str) -> None:
    journal.note(course, ACCEPT, assignment, one.student, why, {"flag": one.name}, {"seen": one.seen}, one.cell)
