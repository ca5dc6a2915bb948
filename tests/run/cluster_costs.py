"""What grading on a Dask cluster costs on this machine: `.venv/bin/python tests/run/cluster_costs.py > docs/cluster.json`, three minutes.

Comes in: nothing; the lesson performance-02 and simulated submissions of it. Goes out: one JSON object, of which `cluster_model.py` draws what
more hosts would bring. Must not: count a hostile submission, or anything but one run on a machine that does nothing else.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from dask_processes import Cluster

from graders import config
from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.simulate import simulate
from graders.kernels.nursery import best_level
from graders.run import cluster, demo, grading, releasing
from graders.run.desk import Desk
from graders.run.executors import Workers
from graders.run.pipeline import Course, Graded, Job
from graders.run.submissions import read_job

ROOT = Path(__file__).resolve().parents[2]
STUDENTS = 30
ROUNDS = 3
REFUSED = 400  # submissions that are told to be unreadable: all that a task costs but the examination
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Cost:
    """Wall seconds since it began, and CPU-seconds of this process and of others by pid."""

    def __init__(self, *pids: int) -> None:
        self._pids, self._wall, self._own = pids, time.perf_counter(), time.process_time()
        self._theirs = sum(map(cpu_s, pids))

    def each(self, count: int, name: str, theirs: str = "") -> dict[str, float]:
        """Per submission."""
        found = {f"{name}_wall_s": time.perf_counter() - self._wall, f"{name}_cpu_s": time.process_time() - self._own}
        others = {theirs: sum(map(cpu_s, self._pids)) - self._theirs} if theirs else {}
        return {key: value / count for key, value in (found | others).items()}


def cpu_s(pid: int) -> float:
    """CPU-seconds of a process that runs, its threads included and its children not."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def lesson(home: Path) -> tuple[Settings, Course, list[Job], float]:
    """A course with the lesson and its honest submissions, and how long one takes to be read."""
    settings = demo.make_course(config.load(ROOT), home)
    settings = msgspec.structs.replace(settings, isolation=best_level())
    releasing.release(settings, demo.ASSIGNMENT)
    assignment = read_assignment(home, demo.ASSIGNMENT)
    made = simulate(home, assignment, settings.answers, STUDENTS, seed=5)
    honest = [one.student for one in made if one.honest]
    begun = time.perf_counter()
    jobs = [read_job(home, one, assignment) for one in honest]
    return settings, grading.prepare(settings, demo.ASSIGNMENT), jobs, (time.perf_counter() - begun) / len(jobs)


@contextmanager
def running(home: Path, workers: int) -> Iterator[tuple[Cluster, float]]:
    """A scheduler with so many workers, and how long one of them took to register."""
    home.mkdir()
    here = Cluster(home, {})
    try:
        begun = time.perf_counter()
        for _ in range(workers):
            here.add()
        yield here, (time.perf_counter() - begun) / workers
    finally:
        here.close()


def scores(graded: list[Graded]) -> dict[str, object]:
    """Who has which score."""
    return {one.report.student: one.report.score for one in graded}


def measure_cluster(home: Path, course: Course, jobs: list[Job], workers: int) -> tuple[dict[str, Any], list[Graded]]:
    """What so many workers bring, once each of them is warm."""
    with running(home, workers) as (here, register_s), cluster.Cluster(course, here.address) as crew:
        begun = time.perf_counter()
        list(crew.grade(jobs[:1] * workers * 2))
        found: dict[str, Any] = {"register_s": register_s, "first_s": time.perf_counter() - begun}
        walls, graded = [], []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            graded = list(crew.grade(jobs))
            walls.append((time.perf_counter() - begun) / len(jobs))
        refused = [
            msgspec.structs.replace(jobs[n % len(jobs)], unreadable="It is refused at once.") for n in range(REFUSED)
        ]
        cost = Cost(here.processes[0].pid)
        list(crew.grade(refused))
        found |= cost.each(REFUSED, "task", "scheduler_cpu_s")
    return found | {"examination_s": median(walls), "examination_rounds_s": walls}, graded


def measure_books(settings: Settings, course: Course, graded: list[Graded]) -> dict[str, float]:
    """What it takes to store a report, beside a writer that is warm; both work at once."""
    with Desk(settings, course, Workers(course, 1)) as desk:
        desk.keep(graded)
        [writer] = desk._book._pool._processes
        cost = Cost(writer)
        desk.keep(graded)
        return cost.each(len(graded), "store", "writer_cpu_s")


def main() -> dict[str, Any]:
    """All figures of one run."""
    with tempfile.TemporaryDirectory() as folder:
        settings, course, jobs, read_s = lesson(Path(folder, "course"))
        one, graded = measure_cluster(Path(folder, "one"), course, jobs, 1)
        two, again = measure_cluster(Path(folder, "two"), course, jobs, 2)
        assert scores(graded) == scores(again), "two workers gave other scores than one"
        shutil.rmtree(settings.course / "autograded", ignore_errors=True)
        gc.collect()
        books = measure_books(settings, course, graded)
    sizes = {
        "job_bytes": median(len(msgspec.msgpack.encode(job)) for job in jobs),
        "result_bytes": median(len(msgspec.msgpack.encode(each)) for each in graded),
        "plan_bytes": len(msgspec.msgpack.encode(cluster._portable(course))),
    }
    about = {"submissions": len(jobs), "rounds": ROUNDS, "processors": os.cpu_count(), "isolation": best_level()}
    return about | {"one_worker": one, "two_workers": two, "read_s": read_s} | books | sizes


if __name__ == "__main__":
    json.dump(main(), sys.stdout, indent=2)
