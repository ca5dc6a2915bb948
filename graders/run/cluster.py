"""Many submissions on many machines, through a Dask cluster whose workers need this package and nothing of ours on disk.

Comes in: jobs and the address of a scheduler. Goes out: `Graded`s as they are done. Must not: send a path, believe that a worker is
like this machine without asking it, or let a lost worker become a score.

Records travel as MessagePack of this package's own types; TLS and all else about the connection is Dask's configuration.
"""

from __future__ import annotations

import functools
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from distributed import Client, Future, KilledWorker, as_completed

from graders.course.reference import establish, with_caches
from graders.errors import GradersError
from graders.kernels.nursery import Zygote
from graders.results.receipts import environment_sha256
from graders.run import pipeline
from graders.run.pipeline import Course, Graded, Job

SLOT = (
    "slots"  # a worker that declares this resource runs so many examinations at once; one that does not, one a thread
)
_AHEAD = 4  # tasks in flight for each place: enough to keep it busy, few enough to keep memory flat
_CONNECT_S = 10


def grade(jobs: Iterable[Job], course: Course, address: str) -> Iterator[Graded]:
    """Grade `jobs` on the workers of the scheduler at `address`; results come in the order in which they are done.

    Raises:
        GradersError: nobody answers there, no worker is there, or one is not like this machine.
    """
    with _connected(address) as client:
        places, resources = _places(client, address)
        # scattered once: workers hand it to each other
        plan = client.scatter(msgspec.msgpack.encode(_portable(course)), hash=False)
        begin = functools.partial(client.submit, _grade, plan, environment_sha256(), pure=False, resources=resources)
        waiting = iter(jobs)
        running: dict[str, Job] = {}
        tasks = as_completed(loop=client.loop)

        def refill() -> None:
            for job in waiting:
                future = begin(msgspec.msgpack.encode(job))
                running[future.key] = job
                tasks.add(future)
                if len(running) >= places * _AHEAD:
                    return

        refill()
        for future in tasks:
            yield _result(future, running.pop(future.key), course)
            refill()


def _connected(address: str) -> Client:
    try:
        return Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # the last is Dask's word for TLS without certificates
        raise GradersError(
            f"No Dask scheduler answers at {address!r}: {error}. Wanted: an address such as tcp://host:8786 or tls://host:8786. "
            f"Next step: start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`."
        ) from error


def _places(client: Client, address: str) -> tuple[int, dict[str, float]]:
    """How many examinations run at once, and what a task asks for: a slot, where workers declare slots."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        raise GradersError(
            f"The scheduler at {address} has no worker. Next step: `dask worker {address} --nthreads 1` on each host."
        )
    slots = sum(int(one["resources"].get(SLOT, 0)) for one in workers)
    return (slots, {SLOT: 1.0}) if slots else (sum(one["nthreads"] for one in workers), {})


def _portable(course: Course) -> Course:
    """The course without folders of this machine. A worker fills caches of its own: programs are compiled for one kind of processor."""
    conditions = msgspec.structs.replace(course.conditions, candidate_cache=None, examiner_cache=None)
    return msgspec.structs.replace(course, conditions=conditions)


def _result(future: Future, job: Job, course: Course) -> Graded:
    try:
        return msgspec.msgpack.decode(future.result(), type=Graded)
    except KilledWorker:
        return pipeline.not_graded(
            job, course, "The worker that graded this submission was lost, again and again. A person will look at it."
        )


# What follows runs in a worker.


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
    """What a worker process keeps between tasks: a warm zygote, and the caches of each assignment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None
        self._courses: dict[bytes, Course] = {}
        self._home = tempfile.TemporaryDirectory(prefix="graders-worker-")

    def ready(self, plan: bytes) -> tuple[Course, Zygote]:
        """A course with caches of this machine, and the zygote; the author's own notebook runs here first."""
        with self._lock:
            if self._zygote is None or not self._zygote.alive:
                self._zygote = pipeline.new_zygote()  # the last one was lost; the rest of the class must not be
            if plan not in self._courses:
                course, home = msgspec.msgpack.decode(plan, type=Course), Path(self._home.name)
                establish(home, course.assignment, course.conditions, self._zygote)
                conditions = with_caches(course.conditions, home, course.assignment)
                self._courses[plan] = msgspec.structs.replace(course, conditions=conditions)
            return self._courses[plan], self._zygote


_seat = _Seat()
