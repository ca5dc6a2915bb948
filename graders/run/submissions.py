"""One submission as it stands on disk.

Comes in: a course folder, a student, an assignment. Goes out: a `Job`. Must not: fail on what a student did, or let bytes and the hash
that stands for them be of two moments.
"""

from __future__ import annotations

from pathlib import Path

from graders.course.files import SECOND_LOOK, STAMP, read_files, read_note, read_regular
from graders.coursework import Assignment
from graders.records import Flag
from graders.results.folders import handed_in, hash_submission
from graders.run import attempts
from graders.run.pipeline import Job

_LOOKS = 5


def read_job(course: Path, student: str, assignment: Assignment) -> Job:
    """The bytes of one submission. What cannot be read becomes a reason, not an error."""
    where = handed_in(course, student, assignment.name)
    if where.is_symlink():
        why = f"The folder of {assignment.name} that was handed in is a link and was not followed. Hand in the files themselves."
        return Job(student, {}, (), hash_submission(where), None, why)
    try:
        files, left_out, submitted, digest = _read(where)
    except OSError as error:  # such as a file that is taken away meanwhile; the rest of the class is graded
        return Job(student, {}, (), "", None, f"What was handed in could not be read: {error}.")
    notes = (*attempts.flags(course, student, assignment.name, digest), *_asked(where))
    return Job(student, files, tuple(left_out), digest, submitted, notes=notes)


def _read(where: Path) -> tuple[dict[str, bytes], list[Flag], str | None, str]:
    """Files, what was left out, the time, and the hash of just this."""
    after = hash_submission(where)
    for _ in range(_LOOKS):
        left_out: list[Flag] = []
        files, stamp = read_files(where, left_out), read_regular(where / STAMP, 100)
        before, after = after, hash_submission(where)
        if before == after:
            return files, left_out, stamp.decode(errors="replace").strip() if stamp is not None else None, after
    raise OSError(f"it changed {_LOOKS} times while it was read")


def _asked(where: Path) -> tuple[Flag, ...]:
    """What a student asks of a person, as one line of text."""
    asked = "".join(one if one.isprintable() else " " for one in read_note(where / SECOND_LOOK))
    return (Flag("second_look", f"A second look was asked for: “{' '.join(asked.split())}”"),) if asked else ()
