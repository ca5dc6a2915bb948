"""How long a student waits: from the moment at which a submission is whole in the exchange until its page is. `make test-long`; alone:

.venv/bin/python -m pytest -s -o python_files='long_*.py' tests/run/long_watch.py
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from delivery import deliver, open_exchange

from graders import config
from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.simulate import simulate
from graders.kernels.nursery import best_level
from graders.run import demo, grading, releasing

ROOT = Path(__file__).resolve().parents[2]
SUBMISSIONS = int(os.environ.get("SUBMISSIONS", "50"))
WAIT_S = 120.0


@pytest.fixture
def lesson(tmp_path: Path) -> Settings:
    """performance-02, released, with an exchange."""
    made = demo.make_course(config.load(ROOT), tmp_path / "course")
    with (made.course / "course_config.py").open("a") as file:
        file.write(f"\nc.Exchange.root = {str(tmp_path / 'exchange')!r}\nc.ExchangeCollect.check_owner = False\n")
        file.write(f"c.Graders.isolation = {best_level()!r}\nc.Graders.answers = {str(made.answers)!r}\n")
    settings = config.load(made.course)
    releasing.release(settings, demo.ASSIGNMENT)
    grading.prepare(settings, demo.ASSIGNMENT)
    open_exchange(settings)
    return settings


def answers(settings: Settings) -> Iterator[dict[str, bytes]]:
    """What an honest class hands in, from known answers right and wrong."""
    assignment = read_assignment(settings.course, demo.ASSIGNMENT)
    made = simulate(settings.course, assignment, settings.answers, 2 * SUBMISSIONS, seed=3)
    for one in made:
        home = settings.course / "submitted" / one.student / demo.ASSIGNMENT
        files = {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}
        shutil.rmtree(home.parent)
        if one.honest:
            yield files


def test_feedback_comes_in_time(lesson: Settings) -> None:
    """Each of 50 submissions, one after the other, has its page in the exchange; median and worst time are printed."""
    waited, todo = [], list(answers(lesson))[: SUBMISSIONS + 1]
    command = [sys.executable, "-m", "graders.cli", "watch", demo.ASSIGNMENT]
    pages = lesson.course.parent / "exchange" / str(lesson.course_id) / "feedback"
    with subprocess.Popen(command, cwd=lesson.course, stdout=subprocess.DEVNULL) as process:
        try:
            for number, files in enumerate(todo):
                when = datetime(2026, 11, 12, tzinfo=UTC) + timedelta(seconds=number)
                begun, before = time.monotonic(), len(list(pages.iterdir()))
                deliver(
                    lesson, f"student-{number:02d}", files, f"{when:%Y-%m-%d %H:%M:%S.%f} UTC", f"{number + 1:0128x}"
                )
                while len([one for one in pages.iterdir() if one.name[0] != "."]) == before:
                    assert time.monotonic() < begun + WAIT_S, f"submission {number} has no page"
                    time.sleep(0.005)
                waited.append(time.monotonic() - begun)
        finally:
            process.kill()
    first, *warm = waited
    print(
        f"\n{len(warm)} submissions of {demo.ASSIGNMENT}: median {statistics.median(warm):.2f} s, worst {max(warm):.2f} s; "
        f"the first, which waited for watch to start, {first:.1f} s. Load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
