"""Collect what was handed in: from nbgrader's exchange or from a course page's download into `submitted/`.

Comes in: settings, an assignment, perhaps a download. Goes out: a `Collected` for everybody who handed in, and the names that
were not understood. Must not: let an older submission take the place of a newer one, lose one, or let one student's files
keep another's from being collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from graders.config import Settings
from graders.course.files import STAMP, read_handed_in, read_note
from graders.errors import SubmissionError
from graders.records import Flag, Record
from graders.results.folders import handed_in, hash_files, hash_submission, replace_folder
from graders.results.times import shown, utc
from graders.run import attempts, exchange, locks
from graders.run.attempts import Attempt


class Collected(Record):
    """What became of one student's submission. `taken`: it lies in `submitted/` now and did not before. `problem`: a person
    may want to see why it does not.
    """

    student: str
    taken: bool
    text: str
    problem: bool = False


class Arrived(Record):
    """A submission as it was found, or why there is none."""

    student: str
    files: dict[str, bytes]
    submitted: str | None = None
    source: str = "exchange"
    left_out: tuple[Flag, ...] = ()
    why: str | None = None


class Collection(Record):
    """All of one collection. `unknown` are names that no student could be read from."""

    students: tuple[Collected, ...]
    unknown: tuple[str, ...] = ()


def collect(settings: Settings, assignment: str, now: datetime | None = None) -> Collection:
    """Collect everybody's newest submission from the exchange.

    Raises:
        BusyError: another process has this assignment in its hands.
        CourseError: there is no exchange, or no such course in it.
    """
    found, unknown = exchange.inbound(settings, assignment)
    now = now or datetime.now(UTC)
    with locks.holding(settings.course, assignment, "collect"):
        return Collection(tuple(take(settings, assignment, one, now) for one in arrived(found)), tuple(unknown))


def arrived(found: list[exchange.Inbound]) -> Iterator[Arrived]:
    """Read each, one by one."""
    for one in found:
        if one.why is not None:
            yield Arrived(one.student, {}, why=one.why)
            continue
        left_out: list[Flag] = []
        try:
            files = read_handed_in(Path(one.folder), left_out)
        except OSError as error:  # a file that is taken away meanwhile
            yield Arrived(one.student, {}, why=f"It could not be read: {error}.")
            continue
        yield Arrived(one.student, files, one.submitted, left_out=tuple(left_out))


def take(settings: Settings, assignment: str, one: Arrived, now: datetime) -> Collected:
    """Put one submission into its place, unless what is there is newer; what was there is kept aside."""
    if one.why is not None:
        return Collected(one.student, False, one.why, problem=True)
    course = settings.course
    try:
        where = handed_in(course, one.student, assignment)
    except SubmissionError as error:
        return Collected(one.student, False, str(error), problem=True)
    if where.is_symlink() or (where.exists() and not where.is_dir()):
        return Collected(one.student, False, f"{where} is no folder. Move it away and collect again.", problem=True)
    known = _known(course, one.student, assignment, where)
    digest = hash_files(one.files)
    if digest in {before.sha256 for before in known}:
        return Collected(one.student, False, "Nothing new since it was collected.")
    if why := _not_newer(known, one):
        return Collected(one.student, False, why, problem=True)
    if where.is_dir():
        attempts.keep(course, one.student, assignment, hash_submission(where), where)
    replace_folder(where, one.files)
    made = Attempt(digest, now.isoformat(timespec="seconds"), one.submitted, one.source, one.left_out)
    attempts.add(course, one.student, assignment, made)
    when = f"handed in {shown(one.submitted)}" if shown(one.submitted) else "the time is not known"
    left = "".join(f" {flag.text}" for flag in one.left_out[:3])
    again = " It takes the place of an earlier one, which is kept." if known else ""
    return Collected(one.student, True, f"Collected, {when}.{again}{left}")


def _known(course: Path, student: str, assignment: str, where: Path) -> tuple[Attempt, ...]:
    """Every attempt so far; what lies there and was put there by other means is one."""
    known = attempts.read(course, student, assignment)
    if where.is_dir() and (digest := hash_submission(where)) not in {one.sha256 for one in known}:
        there = datetime.fromtimestamp(where.stat().st_mtime, UTC).isoformat(timespec="seconds")
        attempts.add(course, student, assignment, Attempt(digest, there, read_note(where / STAMP) or None, "by hand"))
        return attempts.read(course, student, assignment)
    return known


def _not_newer(known: tuple[Attempt, ...], one: Arrived) -> str | None:
    """Why a submission is no newer one; None when it is, as far as is known."""
    times = [when for before in known if (when := utc(before.submitted)) is not None]
    mine = utc(one.submitted)
    if times and mine is None:
        return (
            "It says no time, and what is there was handed in at a known one, so which is newer is not known. "
            "If this one counts, move the other away and collect again."
        )
    if times and mine is not None and mine <= max(times):
        return f"What was collected before is newer ({max(times):%d %B %Y, %H:%M} UTC); it stays."
    return None
