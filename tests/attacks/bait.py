"""What an attack goes for, put out around a course, and the traces that it leaves there.

Comes in: a folder for it all. Goes out: a course with the assignment released, places to name in attacks, and, after a
run, the marks that were found: of files, of the network, of processes. Must not: clear away anything that is not marked.
"""

from __future__ import annotations

import hashlib
import os
import re
import socketserver
import sqlite3
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import msgspec
from assignment import NAME, NOTEBOOK, RIGHT, source_notebook
from corpus import Attack

from graders.course.release import generate

CANARY = "numbat"  # stands in all that is another's: home, environment, gradebook, another's answers
VICTIM = "student-01"
_HEARD_S = 0.5
UNKNOWN = "wombat-unknown"  # a trace that does not say whose it is
CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "classic"
c.Graders.processes = 1024  # without namespaces tasks are counted per user, those of other tests too
c.Graders.cell_timeout_s = 5
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()"}
c.ExecutePreprocessor.timeout = 20
"""
_MARK = re.compile(rb"wombat-[a-z0-9-]+")
_WRITTEN_BY_GRADING = ("autograded", "feedback", "evidence", "gradebook.db", ".graders", "home", "log.txt")
_OPEN_TO_ALL = ("/tmp", "/var/tmp", "/dev/shm", "/run")


def make_course(course: Path) -> None:
    """The course, released, with one student who is right and whose work is nobody else's business."""
    (course / "source" / NAME).mkdir(parents=True)
    (course / "source" / NAME / f"{NOTEBOOK}.ipynb").write_bytes(msgspec.json.encode(source_notebook()))
    for name in ("course_config.py", "nbgrader_config.py"):
        (course / name).write_text(CONFIG)
    generate(course, "classic", NAME)
    with closing(sqlite3.connect(course / "gradebook.db")) as book, book:
        book.execute("INSERT INTO student (id, last_name) VALUES (?, ?)", (VICTIM, CANARY))
    honest = Attack(tries="nothing", seen=(), name=VICTIM, answers=RIGHT | {"why": f"I know, says {CANARY}."})
    hand_in(course, honest, {})
    hand_in(course, Attack(tries="nothing", seen=(), name="wrong"), {})


def hand_in(course: Path, attack: Attack, places: dict[str, str]) -> None:
    """Write a submission as nbgrader's collecting would."""
    released = msgspec.json.decode((course / "release" / NAME / f"{NOTEBOOK}.ipynb").read_bytes())
    folder = course / "submitted" / attack.who() / NAME
    folder.mkdir(parents=True)
    for name, data in attack.submission(released, places).items():
        (folder / name).write_bytes(data)


class _Ear(socketserver.BaseRequestHandler):
    """Notes the mark of whoever gets through."""

    def handle(self) -> None:
        if isinstance(self.request, tuple):
            data = self.request[0]
        else:
            self.request.settimeout(2)
            try:
                data = self.request.recv(4096)
            except OSError:
                data = b""
        self.server.heard |= _marks(data) or {UNKNOWN}


class Bait:
    """A host around one course: a home, an environment and listeners. Use it as a context manager around a run."""

    def __init__(self, root: Path, course: Path) -> None:
        self.course, self.home = course, root / "host"
        self.home.mkdir(parents=True)
        (self.home / "private.txt").write_text(CANARY)
        (self.home / "private.txt").chmod(0o666)
        abstract = f"bait-{os.getpid()}"
        local = "127.0.0.1", 0
        self._ears: list[socketserver.BaseServer] = [
            socketserver.ThreadingTCPServer(local, _Ear),
            socketserver.ThreadingUDPServer(local, _Ear),
            socketserver.ThreadingUnixStreamServer("\0" + abstract, _Ear),
            socketserver.ThreadingUnixStreamServer(str(self.home / "socket"), _Ear),
        ]
        (self.home / "socket").chmod(0o777)
        for ear in self._ears:
            ear.heard = set()  # type: ignore[attr-defined]
        self.places = {
            "COURSE": str(course),
            "HOST": str(self.home),
            "TCP": str(self._ears[0].server_address[1]),
            "UDP": str(self._ears[1].server_address[1]),
            "ABSTRACT": abstract,
            "SOCKET": str(self.home / "socket"),
        }

    def __enter__(self) -> Bait:
        for ear in self._ears:
            threading.Thread(target=ear.serve_forever, args=(0.05,), daemon=True).start()
        os.environ["BAIT"] = CANARY
        self._before = self._contents()
        return self

    def __exit__(self, *_: object) -> None:
        del os.environ["BAIT"]
        for ear in self._ears:
            ear.shutdown()
            ear.server_close()

    def traces(self) -> dict[str, set[str]]:
        """Marks by the sign that they are of, once what was sent last has been heard."""
        time.sleep(_HEARD_S)
        reached = set().union(*(ear.heard for ear in self._ears))  # type: ignore[attr-defined]
        return {"files touched": self._touched(), "network reached": reached, "survivors": _survivors()}

    def _contents(self) -> dict[Path, str]:
        """A hash of everything that grading has no business with."""
        found = {self.course / "gradebook.db": self._victim()}
        for top in (self.course, self.home):
            for path in top.rglob("*"):
                own = path.relative_to(top).parts[0] in _WRITTEN_BY_GRADING
                if not own and path.is_file():
                    found[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def _victim(self) -> str:
        with closing(sqlite3.connect(self.course / "gradebook.db")) as book:
            return repr(book.execute("SELECT * FROM student WHERE id = ?", (VICTIM,)).fetchall())

    def _touched(self) -> set[str]:
        after, found = self._contents(), set()
        for path in after.keys() | self._before.keys():
            if after.get(path) == self._before.get(path):
                continue
            data = path.read_bytes() if path.is_file() and path.suffix != ".db" else after.get(path, "").encode()
            # a program that grades leaves files of its own in its home; what was there before is nobody's to change
            found |= _marks(path.name.encode() + b" " + data) or ({UNKNOWN} if path in self._before else set())
        for name in _WRITTEN_BY_GRADING:  # what grading writes bears names of students, but none that is a mark
            found |= set().union(
                *(_marks(path.name.encode()) for path in (self.course / name).rglob("*wombat-*")), set()
            )
        for place in (*_OPEN_TO_ALL, *filter(os.path.isdir, sys.path), self.course.parent):
            for path in Path(place).glob("wombat-*"):
                found |= _marks(path.name.encode())
                path.unlink()
        return found


def _survivors() -> set[str]:
    """Marks on the command lines of processes that still run."""
    found: set[str] = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if int(path.parent.name) != os.getpid():
            found |= _marks(line)
    return found


def _marks(data: bytes) -> set[str]:
    return {one.decode() for one in _MARK.findall(data)}
