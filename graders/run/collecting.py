"""Collect what was handed in: from nbgrader's exchange or from a course page's download into `submitted/`.

Comes in: settings, an assignment, perhaps a download. Goes out: a `Collected` for everybody who handed in, and the names that
were not understood. Must not: let an older submission take the place of a newer one, lose one, or let one student's files
keep another's from being collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from graders.config import Settings
from graders.course.files import NOTES, SECOND_LOOK, STAMP, read_handed_in, read_note
from graders.errors import SubmissionError
from graders.records import Flag, Record
from graders.results.folders import handed_in, hash_files, hash_submission, replace_folder, write_file, writing
from graders.results.times import shown, utc
from graders.run import attempts, downloads, exchange, locks
from graders.run.arrivals import Arrived
from graders.run.attempts import Attempt

HONEST = timedelta(hours=1)  # between the time that a submission says and the one that the file system noted


class Collected(Record):
    """What became of one student's submission. `taken`: it lies in `submitted/` now and did not before. `problem`: a person
    may want to see why it does not. `waits`: it will be taken later.
    """

    student: str
    taken: bool
    text: str
    problem: bool = False
    waits: bool = False


class Collection(Record):
    """All of one collection. `unknown` are names that no student could be read from."""

    students: tuple[Collected, ...]
    unknown: tuple[str, ...] = ()


def collect(
    settings: Settings, assignment: str, download: Path | None = None, now: datetime | None = None
) -> Collection:
    """Collect everybody's newest submission from the exchange, or from the download of a course page.

    Raises:
        BusyError: another process has this assignment in its hands.
        CourseError: there is no exchange, or no such course in it; the download cannot be read.
    """
    now = now or datetime.now(UTC)
    unknown: list[str] = []
    found = downloads.arrivals(settings, download, unknown) if download else _inbound(settings, assignment, unknown)
    with locks.holding(settings.course, assignment, "collect"):
        students = tuple(take(settings, assignment, one, now) for one in found)  # which fills `unknown`
    return Collection(students, tuple(sorted(unknown)))


def _inbound(settings: Settings, assignment: str, unknown: list[str]) -> Iterator[Arrived]:
    found, strangers = exchange.inbound(settings, assignment)
    unknown += strangers
    yield from arrived(found)


def arrived(found: list[exchange.Inbound]) -> Iterator[Arrived]:
    """Read each, one by one."""
    for one in found:
        if one.why is not None:
            yield Arrived(one.student, {}, why=one.why)
            continue
        flags: list[Flag] = []
        try:
            files = read_handed_in(Path(one.folder), flags)
        except OSError as error:  # a file that is taken away meanwhile
            yield Arrived(one.student, {}, why=f"It could not be read: {error}.")
            continue
        flags += _doubts(one)
        yield Arrived(one.student, files, one.submitted, flags=tuple(flags))


def _doubts(one: exchange.Inbound) -> list[Flag]:
    """nbgrader lets a student's own computer write the time of a hand-in."""
    said, seen = utc(one.submitted), utc(one.seen)
    if said is None or seen is None or abs(seen - said) < HONEST:
        return []
    text = f"It says that it was handed in {shown(one.submitted)}; the exchange saw it {shown(one.seen)}."
    return [Flag("time_doubtful", text)]


def take(settings: Settings, assignment: str, one: Arrived, now: datetime) -> Collected:
    """Put one submission into its place, unless what is there is newer; what was there is kept aside."""
    course = settings.course
    try:
        where = handed_in(course, one.student, assignment)
    except SubmissionError as error:
        return Collected(one.student, False, str(error), problem=True)
    why = one.why
    if where.is_symlink() or (where.exists() and not where.is_dir()):
        why = f"{where} is no folder. Move it away and collect again."
    if why is not None:
        return Collected(one.student, False, why, problem=True)
    known = _known(course, one.student, assignment, where, now)
    made = Attempt(
        hash_files(one.files),
        _work(one.files),
        now.isoformat(timespec="seconds"),
        one.submitted,
        source=one.source,
        flags=one.flags,
    )
    seen = made.sha256 in {before.sha256 for before in known if not before.refused}
    if seen and not where.is_dir():
        replace_folder(where, one.files)
        return Collected(one.student, True, "Put back: it was collected before, and its folder was gone.")
    if seen:
        return Collected(one.student, False, "Nothing new since it was collected.")
    if where.is_dir() and (why := _not_newer(known, one)):
        return Collected(one.student, False, why, problem=True)
    try:
        with writing(where, sum(map(len, one.files.values()))):
            return _judged(settings.of(assignment), assignment, one, known, made)
    except (OSError, SubmissionError) as error:  # such as a name that is too long for this disk
        return Collected(one.student, False, f"It could not be stored: {error}.", problem=True)


def _judged(rules: Settings, assignment: str, one: Arrived, known: tuple[Attempt, ...], made: Attempt) -> Collected:
    """A submission that is newer than all others: a new attempt, if there may be one, or the same files again."""
    course, student, when = rules.course, one.student, shown(one.submitted)
    counted = [before for before in known if before.counted]
    place = attempts.place(course, student, assignment) / made.sha256
    if counted and counted[-1].work == made.work:
        replace_folder(place, one.files)
        attempts.add(course, student, assignment, msgspec.structs.replace(made, counted=False))
        return _again(course, assignment, one, made)
    if refused := attempts.refusal(known, rules):
        replace_folder(place, one.files)
        made = msgspec.structs.replace(made, counted=False, refused=refused)
        if made.sha256 not in {before.sha256 for before in known}:
            attempts.add(course, student, assignment, made)
        return Collected(student, False, f"What came {when or 'now'} is kept and not graded: {refused}.")
    opens = attempts.opens(known, rules)
    if opens is not None and made.when < opens:
        return Collected(
            student, False, f"Waits: the next attempt is taken from {shown(opens.isoformat())} on.", waits=True
        )
    replace_folder(place, one.files)  # what cannot be written takes the place of nothing
    where = handed_in(course, student, assignment)
    if where.is_dir():
        attempts.keep(course, student, assignment, hash_submission(where), where)
    where.parent.mkdir(parents=True, exist_ok=True)
    place.rename(where)
    attempts.add(course, student, assignment, made)
    told = [f"Collected, handed in {when}." if when else "Collected; when it was handed in is not known."]
    told += ["It takes the place of an earlier one, which is kept."] if counted else []
    told += [f"{len(counted) + 1} of {rules.attempts} attempts."] if rules.attempts is not None else []
    return Collected(student, True, " ".join([*told, *(flag.text for flag in one.flags[:3])]))


def _again(course: Path, assignment: str, one: Arrived, made: Attempt) -> Collected:
    """The same files again: the earlier ones stand, with their time; only what a student asks of a person is added."""
    if (asked := one.files.get(SECOND_LOOK)) is None:
        return Collected(one.student, False, "The same files as before; what was handed in first stands.")
    where = handed_in(course, one.student, assignment)
    write_file(where / SECOND_LOOK, asked)
    added = msgspec.structs.replace(made, sha256=hash_submission(where), counted=False)
    attempts.add(course, one.student, assignment, added)
    return Collected(one.student, True, "The same files as before, and a second look is asked for.")


def _work(files: dict[str, bytes]) -> str:
    return hash_files({name: data for name, data in files.items() if name not in NOTES})


def _known(course: Path, student: str, assignment: str, where: Path, now: datetime) -> tuple[Attempt, ...]:
    """Every attempt so far; what lies there and was put there by other means is one."""
    known = attempts.read(course, student, assignment)
    if where.is_dir() and (digest := hash_submission(where)) not in {one.sha256 for one in known}:
        there = min(datetime.fromtimestamp(where.stat().st_mtime, UTC), now).isoformat(timespec="seconds")
        found = Attempt(
            digest, _work(read_handed_in(where, [])), there, read_note(where / STAMP) or None, source="by hand"
        )
        attempts.add(course, student, assignment, found)
        return (*known, found)
    return known


def _not_newer(known: tuple[Attempt, ...], one: Arrived) -> str | None:
    """Why a submission is no newer one; None when it is, as far as is known."""
    times = [when for before in known if not before.refused and (when := utc(before.submitted)) is not None]
    mine = utc(one.submitted)
    if times and mine is None:
        return (
            "It says no time, and what is there was handed in at a known one, so which is newer is not known. "
            "If this one counts, move the other away and collect again."
        )
    if times and mine is not None and mine <= max(times):
        return f"What was collected before is newer ({max(times):%d %B %Y, %H:%M} UTC); it stays."
    return None
