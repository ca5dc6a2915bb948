"""Many submissions on this machine: worker processes that share one warm zygote, each on a processor of its own.

Comes in: jobs. Goes out: `Graded`s as they are done. Must not: let one submission's crash cost another its grade.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import socket
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import msgspec

from graders.errors import GradersError, InfrastructureError
from graders.kernels.nursery import Nursery, Zygote
from graders.results.folders import writing
from graders.run import pipeline
from graders.run.orphans import end_with_parent
from graders.run.pipeline import Course, Graded, Job

_LOOK_S = 0.25  # how often new jobs are asked for while others run
_AHEAD = 4  # jobs in flight for each worker: enough to keep it busy, few enough to keep memory flat

_course: Course | None = None
_nursery: Nursery | None = None


def _start(
    course: ctypes.Array[ctypes.c_char],
    control: socket.socket,
    beside: socket.socket | None,
    started: Synchronized[int],
) -> None:
    """Begin as a worker: what is born for it runs on one processor, where XLA starts few threads and its two processes,
    of which one waits for the other, share what is in the cache: 10 % fewer CPU-seconds.
    """
    global _course, _nursery
    end_with_parent()
    with started.get_lock():
        number = started.value
        started.value += 1
    processors = sorted(os.sched_getaffinity(0))
    # two gradings on one machine should not begin on the same one
    cpu = processors[(os.getppid() + number) % len(processors)]
    _course = msgspec.msgpack.decode(course.raw, type=Course)
    _nursery = Nursery(control, cpu, Nursery(beside) if beside is not None else None)


def _grade(job: Job) -> Graded:
    global _nursery
    if _course is None or _nursery is None:
        raise InfrastructureError("A worker was asked to grade before it had started.")
    if not _nursery.alive:
        _nursery = pipeline.new_zygote(
            _course.conditions.target
        )  # the shared one was lost; the rest of the class must not be
    try:
        with writing(Path(tempfile.gettempdir())):
            return pipeline.grade(job, _course, _nursery)
    except GradersError:
        raise  # such as walls that cannot be had, or a full disk, which is so for every submission
    except Exception as error:  # a mistake of ours that only this submission brings to light
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__}: {error} ({frame.filename}, line {frame.lineno})"
        return pipeline.not_graded(job, _course, f"The fault is ours, not yours, and a person will look at it: {where}")


def _pool(workers: int, course: Course, zygote: Zygote) -> ProcessPoolExecutor:
    """Workers that have begun to start, beside a zygote that may still be warming."""
    # spawn, not fork: the parent may hold threads, and a worker must start clean
    context = multiprocessing.get_context("spawn")
    beside = zygote.beside.control if zygote.beside is not None else None
    # in shared memory: through a pipe, which holds 64 KiB, each worker would be started only once the last one reads
    shared = context.RawArray("c", msgspec.msgpack.encode(course))
    begin = (shared, zygote.control, beside, context.Value("i", 0))
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=begin)
    for _ in range(workers):
        pool.submit(os.getpid)  # a worker is started when there is something to do
    try:
        zygote.await_ready()
    except GradersError:
        pool.shutdown()
        raise
    return pool


def local(jobs: Iterable[Job], course: Course, workers: int) -> Iterator[Graded]:
    """Grade `jobs` in `workers` processes; results come in the order in which they are done."""
    with Workers(course, workers) as warm:
        yield from warm.grade(jobs)


class Workers:
    """A context manager: processes that start with the first job and stay warm until the end."""

    def __init__(self, course: Course, workers: int) -> None:
        self._course, self._workers = course, workers
        self._open = ExitStack()
        self._warm: tuple[Zygote, ProcessPoolExecutor] | None = None

    def grade(self, jobs: Iterable[Job | None]) -> Iterator[Graded]:
        """Results in the order in which they are done. A job that is None says that there is none just now, but may be soon."""
        waiting = iter(jobs)
        suspects: list[Job] = []
        while True:
            yield from self._until_broken(waiting, suspects)
            if not suspects:
                return
            # a worker died on one of these; each gets one of its own, so that only the culprit suffers
            for job in suspects:
                yield _alone(job, self._course, self._ready()[0])
            suspects.clear()
            self.close()

    def open(self) -> None:
        """Start now and not with the first job. Raises `GradersError` when that fails."""
        self._ready()

    def close(self) -> None:
        """End all processes."""
        self._warm = None
        self._open.close()

    def _ready(self) -> tuple[Zygote, ProcessPoolExecutor]:
        if self._warm is None:
            zygote = self._open.enter_context(pipeline.new_zygote(self._course.conditions.target))
            self._warm = zygote, self._open.enter_context(_pool(self._workers, self._course, zygote))
        return self._warm

    def _until_broken(self, waiting: Iterator[Job | None], suspects: list[Job]) -> Iterator[Graded]:
        running: dict[Future[Graded], Job] = {}
        try:
            for job in waiting:
                if job is None:
                    yield from _finished(running, _LOOK_S)
                    continue
                suspects.append(job)  # until a worker has it: a pool may be found broken when it is asked
                future = self._ready()[1].submit(_grade, job)
                running[future] = suspects.pop()
                if len(running) >= self._workers * _AHEAD:
                    yield from _finished(running)
            while running:
                yield from _finished(running)
        except BrokenProcessPool:
            suspects += running.values()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _finished(running: dict[Future[Graded], Job], patience_s: float | None = None) -> Iterator[Graded]:
    done, _ = wait(running, patience_s, return_when=FIRST_COMPLETED)
    for future in done:
        graded = future.result()
        del running[future]
        yield graded


def _alone(job: Job, course: Course, zygote: Zygote) -> Graded:
    for _ in range(pipeline.ATTEMPTS - 1):
        try:
            with _pool(1, course, zygote) as pool:
                return pool.submit(_grade, job).result()
        except BrokenProcessPool:
            continue
    return pipeline.not_graded(
        job, course, "The process that graded this submission was lost. A person will look at it."
    )
