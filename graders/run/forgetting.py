"""Delete a student's data everywhere, and say what was deleted.

Comes in: settings, an id. Goes out: what is stored of that student, and, once it is gone, where the name still stands. Must not: match
a name (an id is opaque: it is compared, never globbed), follow a link, or touch another student's data.

The journal comes last: until its line stands, the same command finds what a killed one left, and goes on.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from graders.config import Settings
from graders.course.files import SECRET, read_note
from graders.errors import CourseError, GradersError
from graders.results import journal
from graders.results.folders import folder, leftovers, mend_folder, subfolders, write_file
from graders.run import exchange, locks

ROOMS = ("submitted", "autograded", "feedback", "evidence", ".graders/attempts")
_OTHERS = ("source", "release")  # the author's; and folders of tools, which begin with a dot and are not ours
_LARGEST_BYTES = 64 * 2**20


def stored(settings: Settings, student: str) -> list[Path]:
    """The folders and files that hold a student's data and nobody else's.

    Raises:
        SubmissionError: no student can have this id.
    """
    course = settings.course
    own = [folder(course, room, student, "any").parent for room in ROOMS]
    found = [path for path in own if path.is_symlink() or path.is_dir()]
    inbound = _copies(settings, student)
    submissions = [*inbound, *_below(folder(course, "submitted", student, "any").parent)]
    for name in subfolders(folder(course, ".graders/attempts", student, "any").parent):
        submissions += _below(folder(course, ".graders/attempts", student, name))
    notebooks = {path.stem for path in (course / "release").glob("*/*.ipynb")}
    return [*_pages(settings, submissions, notebooks), *inbound, *found]


def class_pages(course: Path) -> list[Path]:
    """The pages on which every student stands. They can be made again."""
    return sorted((course / "autograded").glob("*.html"))


def forget(settings: Settings, student: str) -> list[str]:
    """Delete all of it. Returns a line for each thing deleted.

    Raises:
        BusyError: another process has an assignment in its hands.
        GradersError: nothing is stored of this student, or something could not be deleted.
    """
    course = settings.course
    with ExitStack() as held:
        for name in _assignments(course):
            held.enter_context(locks.holding(course, name, "forget"))
        for room in ROOMS:
            mend_folder(folder(course, room, student, "any").parent)
        told = [*map(_delete, stored(settings, student)), *_rows(settings, student), *_simulated(course, student)]
        lines = sum(one.student == student for one in journal.lines(course))
        if not told and not lines:
            raise GradersError(
                f"Nothing of {student!r} is stored in {course}. Next step: look at the id; it is compared as it is."
            )
        told += map(_delete, class_pages(course))
        journal.forget(course, student)
        return [*told, *[f"{lines} lines of {course / journal.JOURNAL}"][: lines > 0]]


def mentions(course: Path, student: str) -> list[Path]:
    """Files and folders of the course in which the id still stands, for a person to look at: backups, exports, somebody's comment."""
    page = html.escape(student).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")  # as Jinja does
    forms = {student, json.dumps(student)[1:-1], json.dumps(student, ensure_ascii=False)[1:-1], page}
    pattern = re.compile(b"|".join(rb"(?<![\w-])" + re.escape(one.encode()) + rb"(?![\w-])" for one in forms))
    return [path for path in _walk(course) if path.name == student or pattern.search(_content(path))]


def _copies(settings: Settings, student: str) -> list[Path]:
    """Every submission of a student in the exchange, whatever its assignment; none if there is no exchange."""
    try:
        place = exchange.inbound_folder(settings)
    except CourseError:
        return []
    names = subfolders(place) if os.access(place, os.R_OK) else []
    return [
        place / name for name in names if len(exchange.parts_of(name)) > 2 and exchange.parts_of(name)[0] == student
    ]


def _pages(settings: Settings, submissions: Iterable[Path], notebooks: Collection[str]) -> list[Path]:
    """The pages in the exchange that belong to these submissions, under the names of `notebooks` or their own."""
    found: set[Path] = set()
    for submission in submissions:
        if secret := read_note(submission / SECRET):
            place = exchange.inbound_folder(settings).parent / "feedback"
            names = {*notebooks, *(path.stem for path in submission.glob("*.ipynb"))}
            found |= {place / exchange.page_name(secret, name) for name in names}
    there = [path for path in found if path.parent.is_dir()]
    return sorted(one for path in there for one in (path, *leftovers(path)) if one.is_file())


def _below(root: Path) -> list[Path]:
    return [root / name for name in subfolders(root)]


def _assignments(course: Path) -> list[str]:
    rooms = [course / "source", course / "release", *_below(course / "submitted"), *_below(course / "autograded")]
    return sorted({name for room in rooms for name in subfolders(room) if name[:1] != "."})


def _delete(path: Path) -> str:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise GradersError(
            f"{error.filename or path} could not be deleted: {error.strerror}. What comes after it still stands. "
            f"Next step: delete {path} as somebody who may, then run the same command again."
        ) from None
    return str(path)


def _rows(settings: Settings, student: str) -> list[str]:
    if not settings.db_url and not (settings.course / "gradebook.db").is_file():
        return []
    from graders.results.gradebook import Writer

    with Writer(settings.course, settings.db_url, settings.course_id) as book:
        return [f"{count} rows of {table} in the gradebook" for table, count in book.forget(student).items()]


def _simulated(course: Path, student: str) -> list[str]:
    """The lists of made-up students."""
    told = []
    for path in sorted((course / ".graders" / "simulated").glob("*.json")):
        names = json.loads(path.read_text())
        if student in names:
            write_file(path, json.dumps([name for name in names if name != student]).encode())
            told.append(f"a name in {path}")
    return told


def _walk(course: Path) -> Iterator[Path]:
    waiting = [course]
    while waiting:
        here = waiting.pop()
        for path in sorted(here.iterdir()):
            if path.is_symlink() or not path.is_dir():
                yield path
            elif here != course or not (path.name in _OTHERS or (path.name[:1] == "." and path.name != ".graders")):
                yield path
                waiting.append(path)


def _content(path: Path) -> bytes:
    try:
        small = path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST_BYTES
        return path.read_bytes() if small else b""
    except OSError:
        return b""
