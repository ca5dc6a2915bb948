"""Many submissions on many machines, through a Dask cluster whose workers need this package and nothing of ours on disk.

Comes in: jobs and the address of a scheduler. Goes out: `Graded`s as they are done. Must not: send a path, believe that a worker is
like this machine without asking it, or let a lost worker become a score.

Records travel as MessagePack of this package's own types; TLS and all else about the connection is Dask's configuration.
"""

from __future__ import annotations

import functools
import gc
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack
from pathlib import Path

import msgspec
from distributed import Client, Future, KilledWorker, wait

from graders.course.reference import establish, with_caches
from graders.errors import GradersError
from graders.kernels.nursery import Zygote
from graders.results.receipts import environment_sha256
from graders.run import pipeline
from graders.run.pipeline import Course, Graded, Job
from graders.targets import CPU, Target

SLOT = "slots"  # so many examinations run at once on a worker that declares it; on one that does not, one a thread
_AHEAD = 4  # tasks in flight for each place: enough to keep it busy, few enough to keep memory flat
_CONNECT_S = 10
_LOOK_S = 0.1  # how often new jobs are asked for while others run


class Cluster:
    """A context manager: the workers of the scheduler at `address`, as `executors.Workers` for one course."""

    def __init__(self, course: Course, address: str) -> None:
        self._course, self._address = course, address
        self._open = ExitStack()
        self._submit: Callable[[bytes], Future[bytes]] | None = None
        self._most = 0

    def grade(self, jobs: Iterable[Job | None]) -> Iterator[Graded]:
        """Results in the order in which they are done. A job that is None says that there is none just now, but may be soon.

        Raises:
            GradersError: as `open`; or a worker is not like this machine, or its walls cannot be had.
        """
        running: dict[Future[bytes], Job] = {}
        for job in jobs:
            if job is None:
                yield from self._finished(running, _LOOK_S)
                continue
            running[self._ready()(msgspec.msgpack.encode(job))] = job
            if len(running) >= self._most:
                yield from self._finished(running)
        while running:
            yield from self._finished(running)

    def open(self) -> None:
        """Connect now and not with the first job. Raises `GradersError` when nobody answers, or there is no worker."""
        self._ready()

    def _ready(self) -> Callable[[bytes], Future[bytes]]:
        if self._submit is None:
            client = self._open.enter_context(_connected(self._address))
            places, resources = _places(client, self._address, self._course.conditions.target.resource)
            self._most = places * _AHEAD
            # a task, which is done again when every worker that has its result is lost; what is scattered would be gone
            plan = client.submit(_plan, msgspec.msgpack.encode(_portable(self._course)), pure=False)
            begin = functools.partial(client.submit, _grade, plan, environment_sha256())
            self._submit = functools.partial(begin, pure=False, resources=resources)
        return self._submit

    def _finished(self, running: dict[Future[bytes], Job], patience_s: float | None = None) -> Iterator[Graded]:
        if not running:
            time.sleep(patience_s or 0.0)
            return
        try:
            done = wait(list(running), patience_s, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            return
        except CancelledError:
            raise GradersError(
                f"The scheduler at {self._address} was lost. What was graded until then is stored. "
                f"Next step: start it and its workers again, then the same command, which grades the rest."
            ) from None
        for future in done:
            yield self._result(future, running.pop(future))

    def _result(self, future: Future[bytes], job: Job) -> Graded:
        try:
            return msgspec.msgpack.decode(future.result(), type=Graded)
        except KilledWorker:
            why = "The worker that graded this submission was lost, again and again. A person will look at it."
            return pipeline.not_graded(job, self._course, why)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def _connected(address: str) -> Client:
    try:
        return Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError, TypeError) as error:  # the last is Dask's word for TLS without certificates
        why = str(error)
    # Dask closes a client that did not come about when it is collected, and waits for ever if that is while another one starts
    gc.collect()
    raise GradersError(
        f"No Dask scheduler answers at {address!r}: {why}. Wanted: an address such as tcp://host:8786 or tls://host:8786. "
        f"Next step: start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`."
    )


def _places(client: Client, address: str, resource: str) -> tuple[int, dict[str, float]]:
    """How many examinations run at once, and what a task asks for: the target's resource, or a slot, where workers declare slots."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        raise GradersError(
            f"The scheduler at {address} has no worker. Next step: `dask worker {address} --nthreads 1` on each host."
        )
    slots = sum(int(one["resources"].get(resource or SLOT, 0)) for one in workers)
    if resource and not slots:
        raise GradersError(
            f"No worker of the scheduler at {address} declares {resource}, which the target asks for. "
            f'Next step: `dask worker {address} --nthreads 1 --resources "{resource}=1"` on each host that has it.'
        )
    return (slots, {resource or SLOT: 1.0}) if slots else (sum(one["nthreads"] for one in workers), {})


def _portable(course: Course) -> Course:
    """The course without folders of this machine. A worker fills caches of its own: programs are compiled for one kind of processor."""
    conditions = msgspec.structs.replace(course.conditions, candidate_cache=None, examiner_cache=None)
    return msgspec.structs.replace(course, conditions=conditions)


# What follows runs in a worker.


def _plan(course: bytes) -> bytes:
    """What every task needs; it crosses the network once, and workers hand it to each other."""
    return course


def _grade(plan: bytes, environment: str, job: bytes) -> bytes:
    """One task: the report of one submission."""
    if environment != environment_sha256():
        raise GradersError(
            "A worker has other packages than the machine that grades, so its scores might differ. "
            "Next step: install the same requirements.lock on every host."
        )
    course, zygote = _seat.ready(plan)
    return msgspec.msgpack.encode(pipeline.grade(msgspec.msgpack.decode(job, type=Job), course, zygote))


class _Seat:
    """What a worker process keeps between tasks: a warm zygote for each kind of target, and the caches of each assignment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._zygotes: dict[bytes, Zygote] = {}
        self._courses: dict[bytes, Course] = {}
        self._home = tempfile.TemporaryDirectory(prefix="graders-worker-")

    def ready(self, plan: bytes) -> tuple[Course, Zygote]:
        """A course with caches of this machine, and the zygote; the author's own notebook runs here first."""
        with self._lock:
            if plan not in self._courses:
                course, home = msgspec.msgpack.decode(plan, type=Course), Path(self._home.name)
                on_cpu = msgspec.structs.replace(course.conditions, target=CPU)
                establish(home, course.assignment, on_cpu, self._zygote(CPU))
                conditions = with_caches(course.conditions, home, course.assignment)
                self._courses[plan] = msgspec.structs.replace(course, conditions=conditions)
            course = self._courses[plan]
            return course, self._zygote(course.conditions.target)

    def _zygote(self, target: Target) -> Zygote:
        key = msgspec.msgpack.encode(target if target.holder else CPU)
        if key not in self._zygotes or not self._zygotes[key].alive:
            self._zygotes[key] = pipeline.new_zygote(target)  # the last one was lost; the rest of the class must not be
        return self._zygotes[key]


_seat = _Seat()
