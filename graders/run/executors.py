"""Many submissions on this machine: worker processes, each with a warm zygote of its own.

Comes in: jobs. Goes out: `Graded`s as they are done. Must not: let one submission's crash cost another its grade.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from graders.errors import GradersError, InfrastructureError
from graders.kernels.nursery import Zygote
from graders.run import pipeline
from graders.run.pipeline import Course, Graded, Job

_AHEAD = 4  # jobs in flight for each worker: enough to keep it busy, few enough to keep memory flat

_course: Course | None = None
_zygote: Zygote | None = None


def _start(course: Course) -> None:
    global _course, _zygote
    _course, _zygote = course, pipeline.new_zygote()
    # not atexit: a worker of multiprocessing leaves by another door
    multiprocessing.util.Finalize(None, _zygote.close, exitpriority=10)


def _grade(job: Job) -> Graded:
    if _course is None or _zygote is None:
        raise InfrastructureError("A worker was asked to grade before it had started.")
    try:
        return pipeline.grade(job, _course, _zygote)
    except GradersError:
        raise  # such as walls that cannot be had, which is so for every submission
    except Exception as error:  # a mistake of ours that only this submission brings to light
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__}: {error} ({frame.filename}, line {frame.lineno})"
        return pipeline.not_graded(job, _course, f"The fault is ours, not yours, and a person will look at it: {where}")


def _pool(workers: int, course: Course) -> ProcessPoolExecutor:
    # spawn, not fork: the parent may hold threads, and a worker must start clean
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(course,))


def local(jobs: Iterable[Job], course: Course, workers: int) -> Iterator[Graded]:
    """Grade `jobs` in `workers` processes; results come in the order in which they are done."""
    waiting = iter(jobs)
    suspects: list[Job] = []
    while True:
        yield from _until_broken(waiting, course, workers, suspects)
        if not suspects:
            return
        for (
            job
        ) in suspects:  # a worker died on one of these; each gets one of its own, so that only the culprit suffers
            yield _alone(job, course)
        suspects.clear()


def _until_broken(waiting: Iterator[Job], course: Course, workers: int, suspects: list[Job]) -> Iterator[Graded]:
    running: dict[Future[Graded], Job] = {}
    with _pool(workers, course) as pool:
        try:
            for job in waiting:
                running[pool.submit(_grade, job)] = job
                if len(running) >= workers * _AHEAD:
                    yield from _finished(running)
            while running:
                yield from _finished(running)
        except BrokenProcessPool:
            suspects += running.values()


def _finished(running: dict[Future[Graded], Job]) -> Iterator[Graded]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        graded = future.result()
        del running[future]
        yield graded


def _alone(job: Job, course: Course) -> Graded:
    for _ in range(pipeline.ATTEMPTS - 1):
        try:
            with _pool(1, course) as pool:
                return pool.submit(_grade, job).result()
        except BrokenProcessPool:
            continue
    return pipeline.not_graded(
        job, course, "The process that graded this submission was lost. A person will look at it."
    )
