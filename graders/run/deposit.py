"""Put a folder into nbgrader's exchange with nbgrader's own `submit`: whole, or not at all.

Comes in: a folder with an assignment, the course's name. Goes out: `HandedIn`. Must not: say that nothing was handed in while something
lies there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from graders.course.files import SECOND_LOOK
from graders.errors import CourseError
from graders.records import Record
from graders.run import exchange


class HandedIn(Record):
    """What nbgrader's `submit` put into the exchange, and the folder there that students receive."""

    course_id: str
    student: str
    submitted: str
    folder: str
    handed_out: str


def submit(folder: Path, course_id: str | None, query: str | None) -> HandedIn:
    """Hand it in. `query` asks for a second look and lies beside what is handed in.

    Raises:
        CourseError: nbgrader refuses it, or there is no room; the text is nbgrader's or the system's.
    """
    app = exchange.configured(folder.parent, course_id)  # which also makes nbgrader quick to import
    from nbgrader.auth import Authenticator
    from nbgrader.exchange import ExchangeError
    from nbgrader.exchange.default import ExchangeSubmit

    class Submit(ExchangeSubmit):
        def do_copy(self, src: str, dest: str, log: object = None) -> None:
            super().do_copy(src, dest, log)
            if query is not None:
                (Path(dest) / SECOND_LOOK).write_text(query, "utf-8")

        def copy_files(self) -> None:
            inbound, cached = Path(self.inbound_path), Path(self.cache_path)
            try:
                super().copy_files()
            except BaseException:
                name = self.assignment_filename  # in the cache without its random part
                for half in (inbound / name, cached / name, cached / name.rsplit("+", 1)[0]):
                    shutil.rmtree(half, ignore_errors=True)
                raise

    exchange.course_folder(app)
    app.coursedir.assignment_id = folder.name
    giver = Submit(coursedir=app.coursedir, authenticator=Authenticator(parent=app), parent=app)
    giver.assignment_dir = str(folder.parent)
    giver.path_includes_course = False  # the folder is named
    try:
        giver.start()
    except (ExchangeError, OSError, RuntimeError) as error:
        # of many files that were not copied, the first
        said = error.args[0][0][2] if isinstance(error, shutil.Error) else error
        raise CourseError(f"{folder} was not handed in: {said}") from None
    where = Path(giver.inbound_path) / giver.assignment_filename
    student = where.name.split("+")[0]
    return HandedIn(app.coursedir.course_id, student, giver.timestamp, str(where), giver.release_path)
