"""A student hands in: nbgrader's own `submit`, and then a look at what arrived, as the grader will read it.

Comes in: a folder with an assignment. Goes out: a `Handed` with its receipt and all that will be flagged. Must not: need anything
of the course but what was released, or run a line of the notebook.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graders.course.assignments import read_handed_out
from graders.course.files import LONGEST_NOTE, is_leftover, read_handed_in
from graders.course.notebooks import read_submission
from graders.errors import CourseError, SubmissionError
from graders.exam import plan
from graders.records import Flag, Kind, Record
from graders.results.folders import hash_files
from graders.results.judging import unchanged, with_answers
from graders.run import deposit


class Look(Record):
    """What is in a submission: answers that are no longer as they were handed out, of how many; checkpoints without one.

    `why` says that it cannot be graded at all.
    """

    answers: int = 0
    answered: int = 0
    open_checkpoints: int = 0
    flags: tuple[Flag, ...] = ()
    why: str | None = None


class Handed(Record):
    """A receipt. The hash is that of the report's receipt, when these files are graded."""

    course_id: str
    student: str
    submitted: str
    sha256: str
    files: dict[str, bytes]
    left_out: tuple[Flag, ...]
    handed_out: str


def hand_in(folder: Path, course_id: str | None = None, query: str | None = None) -> Handed:
    """Hand in the assignment in a folder; `query` asks a person for a second look.

    Raises:
        CourseError: it was not handed in, and why.
    """
    if not folder.is_dir():
        raise CourseError(f"There is no folder {folder}. Go to the folder that holds it, and name the assignment.")
    if query is not None and not 0 < len(query.strip().encode()) <= LONGEST_NOTE:
        raise CourseError(
            f"What you ask has {len(query.encode()):,} bytes; wanted: some words, at most {LONGEST_NOTE:,} bytes. "
            "Nothing was handed in."
        )
    made = deposit.submit(folder.resolve(), course_id, query)
    left_out: list[Flag] = []
    files = read_handed_in(Path(made.folder), left_out)
    left_out += _left_behind(folder.resolve(), Path(made.folder))
    return Handed(
        made.course_id, made.student, made.submitted, hash_files(files), files, tuple(left_out), made.handed_out
    )


def _left_behind(folder: Path, handed_in: Path) -> Iterator[Flag]:
    """What nbgrader did not copy: it passes over files that are too large for it without a word."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        ours = is_leftover(name) or name.startswith("feedback/") or path.suffix == ".pyc"
        if not ours and path.is_file() and not (handed_in / name).exists():
            yield Flag("file_left_out", f"{name} ({path.stat().st_size:,} bytes) was left out by nbgrader.")


def look_at(made: Handed) -> Look:
    """Read what was handed in as the grader does, up to where it would run."""
    assignment, left_out = read_handed_out(Path(made.handed_out)), made.left_out
    known = assignment.answers_of()
    try:
        sealed = plan.seal(assignment, read_submission(made.files, left_out, made.student, assignment))
    except SubmissionError as error:
        return Look(len(known), flags=left_out, why=str(error))
    texts = plan.answers(assignment, sealed)
    open_ = {identity for identity, cell in known.items() if unchanged(cell, texts)}
    tests = [pair for name in assignment.notebooks for pair in with_answers(assignment, name)]
    checkpoints = [owned for cell, owned in tests if cell.kind is Kind.checkpoint and owned]
    blank = () if len(open_) < len(known) else (Flag("not_attempted", "Every answer is still as it was handed out."),)
    return Look(
        len(known),
        len(known) - len(open_),
        sum(all(cell.id in open_ for cell in owned) for owned in checkpoints),
        (*sealed.flags, *blank),
    )
