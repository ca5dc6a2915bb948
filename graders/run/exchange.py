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
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graders import nbgrader_parts
from graders.config import Settings, read_config
from graders.course.files import SECOND_LOOK, SECRET, STAMP, read_note
from graders.errors import CourseError
from graders.records import Record
from graders.results.folders import write_file
from graders.results.times import utc

if TYPE_CHECKING:
    from nbgrader.apps.baseapp import NbGrader

_SECRET = re.compile(r"[0-9a-f]{32,256}")  # nbgrader writes 128 such digits


class Inbound(Record):
    """One submission in the exchange, the newest of its student; or why it cannot be taken.

    `seen` is when the file system noted it last, which a student cannot choose: ISO 8601, UTC.
    """

    student: str
    folder: str
    submitted: str
    why: str | None = None
    seen: str = ""


class HandedIn(Record):
    """What nbgrader's `submit` put into the exchange, and the folder there that students receive."""

    course_id: str
    student: str
    submitted: str
    folder: str
    handed_out: str


def inbound(settings: Settings, assignment: str) -> tuple[list[Inbound], list[str]]:
    """The newest submission of each student, by student, and the names that were not understood.

    Raises:
        CourseError: there is no exchange here, or it has no such course.
    """
    app = _app(settings.course)
    place = _course_folder(app) / "inbound"
    try:
        with os.scandir(place) as entries:
            folders = [(one.name, one.is_dir(follow_symlinks=False)) for one in entries]
    except OSError as error:
        raise CourseError(
            f"{place} cannot be read ({error.strerror}), so nothing is collected from the exchange. Next step: nbgrader "
            f"release_assignment {assignment}, which makes it; or collect from a download with --from."
        ) from None
    checked = bool(app.config.get("ExchangeCollect", {}).get("check_owner", True))
    newest: dict[str, Inbound] = {}
    unknown = []
    for name, is_folder in sorted(folders):
        parts = name.rsplit("+", 3) if name.count("+") > 2 else name.rsplit("+", 2)
        if len(parts) < 3 or parts[1] != assignment:
            continue
        readable = name.encode("utf-8", "replace").decode()
        if not is_folder or not parts[0] or utc(parts[2]) is None or readable != name:
            unknown.append(readable)
            continue
        found = _inbound(place / name, parts[0], parts[2], checked)
        if _rank(found) > _rank(newest.get(found.student)):
            newest[found.student] = found
    return [newest[student] for student in sorted(newest)], unknown


def _rank(one: Inbound | None) -> tuple[bool, bool, Any]:
    """What can be taken comes before what cannot, the later before the earlier."""
    return (False, False, None) if one is None else (True, one.why is None, utc(one.submitted))


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

    A page's file name is nbgrader's hash of the submission's secret, in a folder that nobody can list.
    """
    secret = read_note(submission / SECRET)
    if not secret:
        return f"What {student} handed in did not come through the exchange; give the page back where it came from."
    if not _SECRET.fullmatch(secret):
        return f"The secret that {student} handed in is not one of nbgrader's, and others could guess it."
    from nbgrader.utils import notebook_hash

    for name, page in pages.items():
        write_file(folder / f"{notebook_hash(secret=secret, notebook_id=name)}.html", page)
    return None


def feedback_folder(settings: Settings) -> Path:
    """nbgrader's folder of pages for a course, made if need be. Raises `CourseError` when it may not be used."""
    from nbgrader.exchange import ExchangeError
    from nbgrader.exchange.default import ExchangeReleaseFeedback

    app = _app(settings.course)
    _course_folder(app)
    giver = ExchangeReleaseFeedback(coursedir=app.coursedir, parent=app)
    try:
        giver.ensure_root()
        giver.init_dest()
    except (ExchangeError, OSError) as error:
        raise CourseError(f"Feedback cannot be put into the exchange: {error}.") from None
    return Path(giver.dest_path)


def submit(folder: Path, course_id: str | None, query: str | None) -> HandedIn:
    """Hand in a folder with nbgrader's own `submit`. `query` asks for a second look and lies beside what is handed in.

    Raises:
        CourseError: nbgrader refuses it; the text is nbgrader's.
    """
    from nbgrader.auth import Authenticator
    from nbgrader.exchange import ExchangeError
    from nbgrader.exchange.default import ExchangeSubmit

    class Submit(ExchangeSubmit):
        def do_copy(self, src: str, dest: str, log: object = None) -> None:
            super().do_copy(src, dest, log)
            if query is not None:
                (Path(dest) / SECOND_LOOK).write_text(query, "utf-8")

    app = _app(folder.parent, course_id)
    _course_folder(app)
    app.coursedir.assignment_id = folder.name
    giver = Submit(coursedir=app.coursedir, authenticator=Authenticator(parent=app), parent=app)
    giver.assignment_dir = str(folder.parent)
    giver.path_includes_course = False  # the folder is named
    try:
        giver.start()
    except (ExchangeError, OSError, RuntimeError) as error:
        raise CourseError(f"{folder} was not handed in: {error}") from None
    where = Path(giver.inbound_path) / giver.assignment_filename
    student = where.name.split("+")[0]
    return HandedIn(app.coursedir.course_id, student, giver.timestamp, str(where), giver.release_path)


def _app(root: Path, course_id: str | None = None) -> NbGrader:
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


def _course_folder(app: NbGrader) -> Path:
    """The folder of a course in the exchange, whether or not it is there. Raises `CourseError` when no course is named."""
    from nbgrader.exchange.default import Exchange

    if not app.coursedir.course_id:
        raise CourseError(
            "No course is named, and the exchange has one folder for each. Next step: --course-id NAME, or "
            'c.CourseDirectory.course_id = "NAME" in course_config.py or nbgrader_config.py.'
        )
    return Path(Exchange(coursedir=app.coursedir, parent=app).root) / str(app.coursedir.course_id)
