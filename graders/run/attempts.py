"""What was collected of each student, in order: the record that attempts are counted from.

Comes in: a course folder, a student, an assignment. Goes out: `Attempt`s, and the folders of earlier submissions. Must not:
lose a submission, or take a time that a student wrote for the time at which we took the files.

`.graders/attempts/STUDENT/ASSIGNMENT/attempts.json` is the record; beside it, by its hash, lies every submission that a later
one took the place of.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from graders.config import Settings
from graders.errors import CourseError
from graders.records import Flag, Record, to_json
from graders.results.folders import folder, write_file
from graders.results.times import shown

ATTEMPTS = "attempts.json"


class Attempt(Record):
    """One submission that was collected. Times are ISO 8601; `submitted` is the student's or the course page's, if there is one.

    `work` is the hash of its files without the notes beside them: the same files again are no new attempt. `counted`: it is one.
    `refused` says why it is not graded, `earned` what an attempt earned that an earlier one beats. `source` says where it came from, `flags` what of it was not taken or looks odd.
    """

    sha256: str
    work: str
    collected: str
    submitted: str | None = None
    counted: bool = True
    refused: str | None = None
    earned: str | None = None
    source: str = "exchange"
    flags: tuple[Flag, ...] = ()

    @property
    def when(self) -> datetime:
        """The time at which it was collected."""
        return datetime.fromisoformat(self.collected)


_ATTEMPTS = msgspec.json.Decoder(tuple[Attempt, ...])


def place(course: Path, student: str, assignment: str) -> Path:
    """The folder of what is kept of one student's attempts."""
    return folder(course / ".graders", "attempts", student, assignment)


def read(course: Path, student: str, assignment: str) -> tuple[Attempt, ...]:
    """All that was collected, in order. Raises `CourseError` when the record is damaged: attempts must not begin anew."""
    path = place(course, student, assignment) / ATTEMPTS
    try:
        return _ATTEMPTS.decode(path.read_bytes())
    except FileNotFoundError:
        return ()
    except msgspec.DecodeError as error:
        raise CourseError(
            f"{path} is damaged: {error}. Restore it; or remove it, and the attempts of {student} are counted anew."
        ) from None


def add(course: Path, student: str, assignment: str, attempt: Attempt) -> None:
    """Note one more attempt."""
    path = place(course, student, assignment) / ATTEMPTS
    write_file(path, to_json((*read(course, student, assignment), attempt)), mode=0o640)


def flags(course: Path, student: str, assignment: str, sha256: str) -> tuple[Flag, ...]:
    """What a person should know of how a submission was collected."""
    known = read(course, student, assignment)
    return next((one.flags for one in reversed(known) if one.sha256 == sha256), ())


def refusal(known: Iterable[Attempt], rules: Settings) -> str | None:
    """Why no further attempt is graded, ever; None when one may be."""
    used = sum(one.counted for one in known)
    if rules.attempts is None or used < rules.attempts:
        return None
    return f"{_all(rules.attempts)} used"


def opens(known: Iterable[Attempt], rules: Settings) -> datetime | None:
    """When the next attempt is taken; None when it need not wait."""
    times = [one.when for one in known if one.counted]
    return times[-1] + timedelta(seconds=rules.cool_down_s) if times and rules.cool_down_s else None


def notes(known: Sequence[Attempt], rules: Settings, now: datetime) -> tuple[Flag, ...]:
    """What a student reads of all this on the page."""
    told = []
    used = sum(one.counted for one in known)
    after = opens(known, rules)
    if rules.attempts is not None:
        told.append(f"{used} of {_attempts(rules.attempts)} used.")
    if after is not None and after > now and refusal(known, rules) is None:
        told.append(f"The next one is taken from {shown(after.isoformat())} on.")
    found = [Flag("attempts", " ".join(told))] if told else []
    taken = {one.sha256 for one in known if one.counted}
    for one in known:
        when = shown(one.submitted) or "later"
        if one.earned is not None:
            text = (
                f"The best attempt counts. What you handed in {when} earned {one.earned} points, fewer than this one."
            )
            found.append(Flag("better_stands", text))
        if one.refused and one.sha256 not in taken:
            found.append(Flag("attempt_refused", f"What you handed in {when} is kept and not graded: {one.refused}."))
    return tuple(found)


def _attempts(most: int) -> str:
    return "1 attempt is" if most == 1 else f"{most} attempts are"


def _all(most: int) -> str:
    return "the one attempt is" if most == 1 else f"all {most} attempts are"


def beside(known: Sequence[Attempt], sha256: str) -> Iterator[Attempt]:
    """The submissions that came after an attempt and left it standing: the same files again, what was refused, what earned less."""
    place = next((place for place, one in enumerate(known) if one.sha256 == sha256), len(known))
    while 0 < place < len(known) and not known[place].counted:
        place -= 1
    return itertools.takewhile(lambda one: not one.counted or one.earned is not None, known[place + 1 :])


def note(course: Path, student: str, assignment: str, sha256: str, earned: str) -> None:
    """Note that an attempt earned less than an earlier one, and what."""
    known = read(course, student, assignment)
    changed = [msgspec.structs.replace(one, earned=earned) if one.sha256 == sha256 else one for one in known]
    write_file(place(course, student, assignment) / ATTEMPTS, to_json(changed), mode=0o640)


def keep(course: Path, student: str, assignment: str, sha256: str, submission: Path) -> None:
    """Move a submission away to where earlier ones are kept."""
    target = place(course, student, assignment) / sha256
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(submission)  # the same bytes
    else:
        submission.rename(target)
