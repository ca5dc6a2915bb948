"""nbgrader's exchange on this machine: what students put in, what goes back to them.

Comes in: settings, or the configuration of a student's account. Goes out: the folders of submissions, pages in nbgrader's
feedback folder. Must not: believe what a folder says about whose it is, or give a page to anybody but whoever holds its secret.

Places and permissions are nbgrader's (its configuration, its `submit`, its feedback folder). Its `collect` is not used: it
follows links out of a submission, stops for the whole class at one odd name, and deletes before it copies.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from graders import nbgrader_parts
from graders.config import Settings, read_config
from graders.course.files import SECRET, STAMP, read_note
from graders.errors import CourseError
from graders.records import Record
from graders.results.folders import leftovers, write_file
from graders.results.times import utc

if TYPE_CHECKING:
    from nbgrader.apps.baseapp import NbGrader

_SECRET = re.compile(r"[0-9a-f]{32,256}")  # nbgrader writes 128 such digits


class Inbound(Record):
    """One submission in the exchange, or why it cannot be taken.

    `seen` is when the file system noted it last, which a student cannot choose: ISO 8601, UTC.
    """

    student: str
    folder: str
    submitted: str
    why: str | None = None
    seen: str = ""


def inbound(settings: Settings, assignment: str) -> tuple[list[Inbound], list[str]]:
    """The newest submission of each student that can be taken, what is newer and cannot, and the names that were not understood.

    Raises:
        CourseError: there is no exchange here, or it has no such course.
    """
    place, checked = _place(settings)
    try:
        with os.scandir(place) as entries:
            folders = [(one.name, one.is_dir(follow_symlinks=False)) for one in entries]
    except OSError as error:
        raise CourseError(
            f"{place} cannot be read ({error.strerror}), so nothing is collected from the exchange. Next step: nbgrader "
            f"release_assignment {assignment}, which makes it; or collect from a download with --from."
        ) from None
    by_student: dict[str, list[Inbound]] = {}
    unknown = []
    for name, is_folder in sorted(folders):
        parts = parts_of(name)
        if len(parts) < 3 or parts[1] != assignment:
            continue
        readable = name.encode("utf-8", "replace").decode()
        if not is_folder or not parts[0] or utc(parts[2]) is None or readable != name:
            unknown.append(readable)
            continue
        by_student.setdefault(parts[0], []).append(_inbound(place / name, parts[0], parts[2], checked))
    return [one for student in sorted(by_student) for one in _newest(by_student[student])], unknown


def parts_of(name: str) -> list[str]:
    """Student, assignment, time and perhaps a random part of the name of a folder with a submission; an id may hold a plus."""
    return name.rsplit("+", 3) if name.count("+") > 2 else name.rsplit("+", 2)


def inbound_folder(settings: Settings) -> Path:
    """Where submissions arrive, whether or not it is there. Raises `CourseError` when no course is named."""
    return _place(settings)[0]


def _place(settings: Settings) -> tuple[Path, bool]:
    """That folder, and whether the owner of what lies there is looked at."""
    app = configured(settings.course)
    checked = bool(app.config.get("ExchangeCollect", {}).get("check_owner", True))
    return course_folder(app) / "inbound", checked


def _newest(found: list[Inbound]) -> Iterator[Inbound]:
    """From the newest back to the first that can be taken; of those that cannot, one for each reason."""
    told = set()
    for one in sorted(found, key=lambda one: (utc(one.submitted), one.folder), reverse=True):
        if one.why is None:
            yield one
            return
        if one.why not in told:
            yield one
        told.add(one.why)


def _inbound(folder: Path, student: str, submitted: str, checked: bool) -> Inbound:
    try:
        status = folder.stat(follow_symlinks=False)
    except OSError as error:
        return Inbound(student, str(folder), submitted, f"It cannot be looked at: {error.strerror}.")
    why = _whose(status, student) if checked else None
    # nbgrader opens the folder when all is in it
    if not (stamp := read_note(folder / STAMP)) or not (read_note(folder / SECRET) or status.st_mode & stat.S_IWOTH):
        why = why or "It is still being handed in, or not whole. It is taken the next time if it is whole by then."
    elif utc(stamp) != utc(submitted):
        why = why or f"Its name says {submitted}, and its {STAMP} says {stamp[:60]!r}."
    seen = datetime.fromtimestamp(status.st_ctime, UTC).isoformat(timespec="seconds")
    return Inbound(student, str(folder), submitted, why, seen)


def _whose(status: os.stat_result, student: str) -> str | None:
    """Why it is not by whom it says; None when it is, or when everybody works in one account, as in a container."""
    try:
        owner = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        owner = f"number {status.st_uid}"
    if owner == student or status.st_uid == os.getuid():
        return None
    return (
        f"It says that it is by {student}, and the account {owner} put it there. If accounts and students have "
        "different names in your course, set c.ExchangeCollect.check_owner = False."
    )


def release(folder: Path, student: str, submission: Path, pages: Mapping[str, bytes]) -> str | None:
    """Put pages by notebook into the exchange's `feedback_folder`, for whoever handed in `submission`. Returns why not, if not.

    A page's file name is nbgrader's hash of the submission's secret, in a folder that nobody can list. Nobody else gives out pages of this
    assignment meanwhile.
    """
    secret = read_note(submission / SECRET)
    if not secret:
        return f"What {student} handed in did not come through the exchange; give the page back where it came from."
    if not _SECRET.fullmatch(secret):
        return f"The secret that {student} handed in is not one of nbgrader's, and others could guess it."
    for name, page in pages.items():
        path = folder / page_name(secret, name)
        for left in leftovers(path):
            left.unlink()
        write_file(path, page)
    return None


def page_name(secret: str, notebook: str) -> str:
    """The name of a page: nobody finds it who does not have the submission's secret."""
    from nbgrader.utils import notebook_hash

    return f"{notebook_hash(secret=secret, notebook_id=notebook)}.html"


def feedback_folder(settings: Settings) -> Path:
    """nbgrader's folder of pages for a course, made if need be. Raises `CourseError` when it may not be used."""
    from nbgrader.exchange import ExchangeError
    from nbgrader.exchange.default import ExchangeReleaseFeedback

    app = configured(settings.course)
    course_folder(app)
    giver = ExchangeReleaseFeedback(coursedir=app.coursedir, parent=app)
    try:
        giver.ensure_root()
        giver.init_dest()
    except (ExchangeError, OSError) as error:
        raise CourseError(f"Feedback cannot be put into the exchange: {error}.") from None
    return Path(giver.dest_path)


def configured(root: Path, course_id: str | None = None) -> NbGrader:
    """nbgrader's configuration as its own commands find it in `root`, with its course."""
    if "nbgrader" not in sys.modules:
        nbgrader_parts.without_servers()
    from nbgrader.apps.baseapp import NbGrader

    app = NbGrader()
    app.log.disabled = True  # what it says is told by us
    try:
        app.initialize([], root=str(root))
    finally:
        sys.path.pop(0)  # nbgrader puts the current folder there
    if (root / "course_config.py").is_file():
        app.update_config(read_config(root))
    if course_id is not None:
        app.coursedir.course_id = course_id
    return app


def course_folder(app: NbGrader) -> Path:
    """The folder of a course in the exchange, whether or not it is there. Raises `CourseError` when no course is named."""
    from nbgrader.exchange.default import Exchange

    if not app.coursedir.course_id:
        raise CourseError(
            "No course is named, and the exchange has one folder for each. Next step: --course-id NAME, or "
            'c.CourseDirectory.course_id = "NAME" in course_config.py or nbgrader_config.py.'
        )
    return Path(Exchange(coursedir=app.coursedir, parent=app).root) / str(app.coursedir.course_id)
