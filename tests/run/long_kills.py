"""Laws of a `watch` that is killed, by hand: `make test-long`. Once at every change of a file or the gradebook, and 100 times at random."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO

import pytest
from delivery import deliver, open_exchange
from test_crashes import killed_at_every

from graders import config
from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.errors import VerifyError
from graders.kernels.nursery import best_level
from graders.records import Report, to_json
from graders.results import feedback, receipts, report, standings
from graders.run import grading, releasing, trials

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("KILLS", "100"))
PATIENCE_S = 120.0
ANSWERS = {
    "right": {},
    "half": {"double": "def double(x):\n    return 0"},
    "wrong": {"double": "", "total": "total = 1"},
}
POINTS = {"right": 5, "half": 3, "wrong": 0}


@pytest.mark.parametrize("more", [[], ["network"]])
def test_every_point_can_be_the_last(tmp_path: Path, more: list[str]) -> None:
    """Wherever watch is killed, the next start makes it good, on a network file system too."""
    *wrong, last = killed_at_every(1, tmp_path, *more)
    print(f"\nkilled at {last} points")
    assert wrong == []


class Class:
    """A course with an exchange, and who handed in what last."""

    def __init__(self, home: Path) -> None:
        self.settings = small_course(home)
        self.last: dict[str, tuple[str, bytes]] = {}
        self._count = 0
        self._assignment = read_assignment(self.settings.course, "ps1")

    def hand_in(self, student: str, kind: str) -> None:
        """Files that nobody handed in before, worth the points of their kind."""
        self._count += 1
        cells = {name: f"{text}\n# {self._count}" for name, text in ANSWERS[kind].items()}
        cells["why"] = f"Since {self._count}."
        course = self.settings.course
        files = trials.job(course, course / "source/ps1", self._assignment, student, cells).files
        when = datetime(2026, 11, 12, tzinfo=UTC) + timedelta(seconds=self._count)
        deliver(self.settings, student, files, f"{when:%Y-%m-%d %H:%M:%S.%f} UTC", f"{self._count:0128x}")
        self.last[student] = (kind, files["lesson.ipynb"])


def small_course(home: Path) -> Settings:
    """The small assignment, released, and an exchange."""
    course = home / "course"
    shutil.copytree(ROOT / "tests/submissions/course", course)
    with (course / "course_config.py").open("a") as file:
        file.write(f"c.Exchange.root = {str(home / 'exchange')!r}\nc.ExchangeCollect.check_owner = False\n")
        file.write(f"c.Graders.isolation = {best_level()!r}\n")
    settings = config.load(course)
    releasing.release(settings, "ps1")
    grading.prepare(settings, "ps1")
    open_exchange(settings)
    return settings


@contextlib.contextmanager
def watching(course: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """`graders watch ps1`, and what it prints; killed at the end."""
    command = [sys.executable, "-m", "graders.cli", "watch", "ps1", "--jobs", "1"]
    mine = os.environ | {"KILLED_BY_THIS_TEST": str(course)}
    with subprocess.Popen(command, cwd=course, env=mine, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, process.stdout
        finally:
            process.kill()


def reports(course: Path) -> dict[str, tuple[str, bytes]]:
    """Every report that is whole: the hash of its submission, and its bytes."""
    found = {}
    for one, _ in grading.stored(course, "ps1"):
        path = course / "autograded" / one.student / "ps1/report.json"
        assert one.receipt
        found[one.student] = (one.receipt.submission_sha256, path.read_bytes())
    return found


def orphans(course: Path) -> list[str]:
    """Processes of a killed watch that live on."""
    found = []
    for one in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if one.name.isdigit() and f"KILLED_BY_THIS_TEST={course}\0".encode() in (one / "environ").read_bytes():
                found.append((one / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def wrong(made: Class) -> Iterator[str]:
    """What is not as it must be when all is done."""
    course = made.settings.course
    rows = {row.student: row for row in standings.statuses(course)}
    pages = {path.read_bytes() for path in (course.parent / "exchange/small/feedback").iterdir()}
    for student, (kind, handed) in made.last.items():
        home = course / "autograded" / student / "ps1"
        found = read(home / report.REPORT, course)
        if (course / "submitted" / student / "ps1/lesson.ipynb").read_bytes() != handed:
            yield f"{student}: what was handed in last is lost"
        if found is None or found.score != POINTS[kind]:
            yield f"{student}: {found and found.score} points, {POINTS[kind]} are right"
        elif rows[student].report_sha256 != standings.digest(found) or rows[student].score != Decimal(POINTS[kind]):
            yield f"{student}: the row is of another report"
        elif (course / "feedback" / student / "ps1/feedback.json").read_bytes() != to_json(
            feedback.student_copy(found)
        ):
            yield f"{student}: the page is of another report"
        elif (course / "feedback" / student / "ps1/lesson.html").read_bytes() not in pages:
            yield f"{student}: the page is not in the exchange"


def read(path: Path, course: Path) -> Report | None:
    """A report that verifies, against what lies in `submitted/` too."""
    try:
        receipts.verify(path, course)
    except VerifyError:
        return None
    return report.read(path)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Killed at random, while it starts or while it grades, watch loses no submission, grades none twice whose report is stored, and in
    the end report, row, page and exchange agree; nothing that it had started lives on."""
    made, draw = Class(tmp_path), random.Random(11)
    course = made.settings.course
    kept: dict[str, tuple[str, bytes]] = {}
    caught = {"while it started": 0, "while it graded": 0}
    latency_s = 1.0
    for number in range(KILLS):
        made.hand_in(f"student-{draw.randrange(12):02d}", draw.choice([*ANSWERS]))
        with watching(course) as (process, lines):
            if number % 3 == 0:
                time.sleep(draw.uniform(0, 5))
                caught["while it started"] += 1
            else:
                lines.readline()  # it is warm
                begun = time.monotonic()
                made.hand_in(f"student-{draw.randrange(12):02d}", draw.choice([*ANSWERS]))
                if number < 3:
                    lines.readline()
                    latency_s = time.monotonic() - begun
                time.sleep(draw.uniform(0, 1.2 * latency_s))
                caught["while it graded"] += 1
            process.kill()
        now = reports(course)
        again = [student for student, old in kept.items() if now[student][0] == old[0] and now[student] != old]
        assert again == [], f"kill {number}: graded twice"
        kept = now
    time.sleep(1)
    assert orphans(course) == []
    with watching(course):
        end = time.monotonic() + PATIENCE_S
        while [*wrong_or_none(made)] and time.monotonic() < end:
            time.sleep(1)
    print(f"\n{json.dumps(caught)}; {len(made.last)} students, {made._count} submissions")
    assert [*wrong(made)] == []
    assert list(course.glob("*/*/.ps1.*")) == []


def wrong_or_none(made: Class) -> Iterator[str]:
    """As above, while watch is still at it."""
    try:
        yield from wrong(made)
    except (OSError, KeyError) as error:
        yield str(error)
