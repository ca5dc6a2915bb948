"""Laws of the workers: a submission is graded whatever happens to the process that grades another one."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import msgspec
import one_exercise
import pytest
from one_exercise import SLEEP, job
from processes import alive, below

from graders.records import Status
from graders.run import executors
from graders.run.pipeline import Course, Job


@pytest.fixture(scope="module")
def course() -> Course:
    """One exercise worth three points."""
    return one_exercise.course()


def jobs(count: int) -> list[Job]:
    """Right answers that take a second each."""
    return [job(f"student-{number:02d}", SLEEP) for number in range(count)]


def born() -> set[int]:
    """The zygote that this process started, once a kernel lives below it, and all that was born of it."""
    for pid in below(os.getpid()):
        with contextlib.suppress(OSError):
            if b"graders.kernels.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes() and len(below(pid)) >= 3:
                return {pid} | below(pid)
    return set()


@pytest.fixture
def killer() -> Iterator[Callable[[int], set[int]]]:
    """Kill so many workers, each while something is graded; the zygote and all that was born of it by then."""
    stopped, threads, orphans = threading.Event(), [], set()

    def start(count: int) -> set[int]:
        def kill() -> None:
            left = count
            while left and not stopped.is_set():
                living = born()
                orphans.update(living)
                for worker in multiprocessing.active_children()[:left] if living else ():
                    assert worker.pid
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker.pid, signal.SIGKILL)
                        left -= 1
                    worker.join(10)
                time.sleep(0.05)

        threads.append(threading.Thread(target=kill))
        threads[-1].start()
        return orphans

    yield start
    stopped.set()
    for thread in threads:
        thread.join(20)


def test_results_come_for_every_job(course: Course) -> None:
    """Right and wrong answers are graded under their own names, and a mistake of ours on one costs no other its grade."""
    ours = Job("student-04", {"lesson.ipynb": None}, (), "1" * 64)  # type: ignore[dict-item]
    bulky = {"large.bin": bytes(50 * 2**20), "small.bin": bytes(20 * 2**20), "latin\udce9.txt": b"x", "kept.txt": b"y"}
    look = "import pathlib\na = int(pathlib.Path('kept.txt').exists() and not pathlib.Path('large.bin').exists())"
    todo = [
        job("student-01", "a = 1"),
        ours,
        job("student-02", "a = 2"),
        job("student-03", "import os\nos._exit(1)"),
        msgspec.structs.replace(job("student-05", look), files=job("", look).files | bulky),
    ]
    found = {one.report.student: one.report for one in executors.local(todo, course, 2)}
    assert {student: report.score for student, report in found.items()} == {
        "student-01": 3,
        "student-02": 0,
        "student-03": 0,
        "student-04": None,
        "student-05": 3,
    }
    assert found["student-04"].status is Status.not_graded
    assert "The fault is ours" in (found["student-04"].reason or "")
    left_out = [flag.text for flag in found["student-05"].flags if flag.name == "file_left_out"]
    assert [name for name in ("large.bin", "latin", "small", "kept") if any(name in one for one in left_out)] == [
        "large.bin",
        "latin",
    ]


def test_workers_that_die_cost_nobody_a_grade(course: Course, killer: Callable[[int], set[int]]) -> None:
    """Workers killed while they grade: what was in their hands is graded anew, and the rest as if nothing had happened."""
    orphans = killer(2)
    reports = [one.report for one in executors.local(jobs(3), course, 2)]
    assert sorted(one.student for one in reports) == [f"student-{number:02d}" for number in range(3)]
    assert [(one.status, one.score) for one in reports] == [(Status.graded, 3)] * 3
    assert orphans
    end = time.monotonic() + 10
    while any(map(alive, orphans)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(alive, orphans)), "what was born for a killed worker must go with it"


def test_a_submission_whose_worker_always_dies_is_not_graded_and_alone(
    course: Course, killer: Callable[[int], set[int]]
) -> None:
    """After several attempts it has a reason and no score; it is never a zero."""
    killer(100)
    (graded,) = executors.local(jobs(1), course, 1)
    assert (graded.report.status, graded.report.score) == (Status.not_graded, None)
    assert "A person will look at it" in (graded.report.reason or "")


class Refusing:
    """A pool whose workers died before anything was given to it."""

    def __enter__(self) -> Refusing:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def submit(self, *_: object) -> None:
        """What a broken pool does."""
        raise BrokenProcessPool


def test_a_job_that_no_worker_took_is_graded(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that die between two jobs cost nobody: the job that could not be handed over is graded as well."""
    pools = iter([lambda *_: Refusing()])
    real = executors._pool
    monkeypatch.setattr(executors, "_pool", lambda *given: next(pools, real)(*given))
    reports = [
        one.report for one in executors.local([job("student-01", "a = 1"), job("student-02", "a = 2")], course, 1)
    ]
    assert {one.student: one.score for one in reports} == {"student-01": 3, "student-02": 0}
