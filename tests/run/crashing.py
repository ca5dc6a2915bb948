"""Kill `watch` where it writes: one process for each point, and another that starts again afterwards.

Run as a program: `crashing.py FOLDER STEP [network|full]` kills at every STEP-th point and prints what is then not as it must be, a line each,
and at the end how many points there were; `network` takes away what only local file systems can. With `full` nothing is killed: the disk
of FOLDER has room for so many blocks, and a point is one block more, until all of it fits. Else a point is a change to a file of the course or the exchange, or a begin or commit in the gradebook. The
examination itself is the one thing that is made up: an answer `a = 3` earns 3 points.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from decimal import Decimal
from pathlib import Path

from delivery import deliver, open_exchange, put

from graders import config, nbgrader_parts
from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.coursework import Reference
from graders.errors import FullError, InfrastructureError, VerifyError
from graders.kernels import syscalls
from graders.records import ExerciseResult, Kind, Report, Status, to_json
from graders.results import database, feedback, journal, receipts, report, standings
from graders.results.folders import hash_submission
from graders.run import bookkeeping, desk, pipeline
from graders.run.inbox import Inbox
from graders.run.pipeline import Course, Graded, Job
from graders.run.watch import Watch

SECRETS = {"student-01": "1" * 128, "student-02": "2" * 128}  # the last two digits are the hour
FULL = 3
INBOUND = "exchange/small/inbound"
WRITES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.chmod"}


def cell(id: str, source: str, **more: object) -> dict[str, object]:
    """One cell with nbgrader's metadata."""
    marks = {"grade_id": id, "schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    kept = {"cell_type": "code", "id": id, "source": source, "execution_count": None, "outputs": []}
    return kept | {"metadata": {"nbgrader": marks | more}}


def notebook(answer: str) -> bytes:
    """The lesson with this answer."""
    test = cell("a-test", "assert a", grade=True, locked=True, points=3)
    cells = [cell("a", answer, solution=True), test]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def hand_in(settings: Settings, student: str, answer: str, hour: int) -> None:
    """The lesson with this answer, handed in at this hour."""
    when = f"2026-11-12 {hour:02d}:00:00.000000 UTC"
    deliver(settings, student, {"lesson.ipynb": notebook(answer)}, when, f"{SECRETS[student][2:]}{hour:02d}")


def make(home: Path) -> Path:
    """A course in which student-01 is graded and has handed in again, and student-02 for the first time."""
    from nbgrader.api import Gradebook

    course = home / "course"
    put(course / "source/ps1/lesson.ipynb", notebook("### BEGIN SOLUTION\na = 3\n### END SOLUTION"))
    put(course / "release/ps1/lesson.ipynb", notebook("# YOUR CODE HERE\nraise NotImplementedError()"))
    put(
        course / "course_config.py",
        b'c.CourseDirectory.course_id = "small"\nc.Exchange.root = "exchange"\nc.ExchangeCollect.check_owner = False\n',
    )
    nbgrader_parts.without_alembic_command()
    with Gradebook(database.default_url(course), "small") as book:
        book.add_assignment("ps1")
        book.add_notebook("lesson", "ps1")
        book.add_grade_cell("a-test", "lesson", "ps1", max_score=3, cell_type="code")
        book.add_solution_cell("a", "lesson", "ps1")
    os.chdir(course)  # the exchange is named from there
    open_exchange(config.load(course))
    hand_in(config.load(course), "student-01", "a = 1", 9)
    watch_once(course)
    hand_in(config.load(course), "student-01", "a = 2", 10)
    hand_in(config.load(course), "student-02", "a = 3", 10)
    return course


class HereAndNow:
    """The gradebook's writer in this process."""

    def __init__(
        self, *_: object, initializer: Callable[..., None], initargs: tuple[object, ...], **__: object
    ) -> None:
        initializer(*initargs)

    def submit(self, work: Callable[..., object], *given: object) -> Future[object]:
        """Do it."""
        future: Future[object] = Future()
        future.set_result(work(*given))
        return future

    def shutdown(self) -> None:
        """Nothing waits."""


class Examined:
    """Workers that read the points in the answer, and note that they were asked."""

    def __init__(self, course: Course) -> None:
        self._course = course

    def grade(self, jobs: Iterable[Job | None]) -> Iterator[Graded]:
        """A report for each job."""
        for job in filter(None, jobs):
            answer = json.loads(job.files["lesson.ipynb"])["cells"][0]["source"]
            score = Decimal(answer[-1])
            one = ExerciseResult("a-test", "lesson", Kind.exercise, score, Decimal(3), answers=("a",), answer=answer)
            receipt = pipeline.not_graded(job, self._course, "").report.receipt
            fields = {"exercises": (one,), "submitted": job.submitted, "receipt": receipt}
            with Path("../examined.txt").open("a") as log:
                log.write(f"{job.student} {job.sha256}\n")
            found = Report(job.student, "ps1", Status.graded, score, Decimal(3), **fields)
            yield Graded(found, {"lesson": json.loads(job.files["lesson.ipynb"])})

    open = close = lambda self: None

    def __enter__(self) -> Examined:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""


def ready(settings: Settings) -> Course:
    """The assignment, as if its solution had been run."""
    assignment = read_assignment(settings.course, "ps1")
    return Course(assignment, Reference(assignment.sha256, {}), pipeline.conditions_of(settings, "ps1"))


def watch_once(home: Path) -> None:
    """What `watch` does when it starts: everything that is there, once."""
    settings = config.load(home)
    watch = Watch(settings, "ps1", 1, lambda text: None, lambda done: None)
    course = ready(settings)
    with desk.Desk(settings, course, Examined(course), "watch") as warm:
        warm.open()
        inbox = Inbox(settings, "ps1", lambda text: None)
        if inbox.waiting():
            watch._burst(warm, inbox)


def child(work: Callable[[], None]) -> int:
    """Do it in a process of its own: how that ended."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killing(point: int, course: Path) -> Callable[[], None]:
    """`watch_once` that is killed at the `point`-th change."""
    from sqlalchemy import Engine, event

    left = [point]

    def count(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def seen(name: str, given: tuple[object, ...]) -> None:
        if name in WRITES or (name == "open" and isinstance(given[1], str) and set(given[1]) & set("wa+x")):
            count()

    def work() -> None:
        event.listen(Engine, "begin", count)
        event.listen(Engine, "commit", count)
        sys.addaudithook(seen)
        watch_once(course)

    return work


def filling(blocks: int, course: Path) -> Callable[[], None]:
    """`watch_once` on a disk that has room for so many blocks more; an error of ours ends it with 3."""

    def work() -> None:
        room = shutil.disk_usage(course)
        (course.parent / "ballast").write_bytes(bytes(room.free - blocks * 4096))
        try:
            watch_once(course)
        except (FullError, InfrastructureError) as error:
            os._exit(FULL if "bytes are free" in str(error) else 1)

    return work


def examined(course: Path) -> list[str]:
    """Who was examined, in order: student and hash."""
    return (course.parent / "examined.txt").read_text().splitlines()


def is_stored(course: Path, student: str) -> bool:
    """Whether the report of what was handed in last is there, whole."""
    path, last = course / "autograded" / student / "ps1/report.json", max((course / INBOUND).glob(f"{student}+*"))
    try:
        return receipts.verify(path, course).submission_sha256 == hash_submission(last)
    except VerifyError:
        return False


def wrong(course: Path) -> Iterator[str]:
    """What is not as it must be once all is graded."""
    rows = {row.student: row for row in standings.statuses(course)}
    for student, answer, score in (("student-01", "a = 2", 2), ("student-02", "a = 3", 3)):
        if (course / "submitted" / student / "ps1/lesson.ipynb").read_bytes() != notebook(answer):
            yield f"what {student} handed in last is lost"
        path = course / "autograded" / student / "ps1/report.json"
        found = report.read(path)
        if not is_stored(course, student) or found.score != score:
            yield f"the report of {student} is not of what was handed in"
        if rows[student].report_sha256 != hashlib.sha256(path.read_bytes()).hexdigest():
            yield f"the row of {student} is of another report"
        if grade(course, student) != score:
            yield f"nbgrader's gradebook has other points of {student}"
        page = course / "feedback" / student / "ps1"
        if (page / "feedback.json").read_bytes() != to_json(feedback.student_copy(found)):
            yield f"the page of {student} is of another report"
        given = {one.read_bytes() for one in (course / "exchange/small/feedback").iterdir()}
        if (page / "lesson.html").read_bytes() not in given:
            yield f"{student} does not find the page in the exchange"
    if not [one for one in journal.lines(course) if (one.old["score"], one.new["score"]) == (1, 2)]:
        yield "the journal lacks the change"
    yield from left_over(course)


def left_over(course: Path) -> Iterator[str]:
    """Files and folders that were not finished."""
    rooms = [course / "submitted", course / "autograded", course / "feedback", course / "exchange/small/feedback"]
    yield from (f"{one} is left" for room in rooms for one in room.rglob(".*"))


def grade(course: Path, student: str) -> float | None:
    """The machine's points in nbgrader's own table."""
    from sqlalchemy import text

    asked = text("select g.auto_score from grade g join submitted_notebook n on n.id = g.notebook_id "
                 "join submitted_assignment a on a.id = n.assignment_id where a.student_id = :student")  # fmt: skip
    with database.opened(course, "") as engine, engine.connect() as connection:
        return connection.execute(asked, {"student": student}).scalar()


def no_exchange(one: str, other: str) -> None:
    """What a network file system says."""
    raise OSError(errno.EINVAL, "Invalid argument")


def main(home: Path, step: int, how: str) -> None:
    """Kill at each point, or fill the disk, start again, and look."""
    warnings.simplefilter("ignore")
    if how == "network":
        syscalls.exchange = no_exchange
    stopped, stopping = (FULL, filling) if how == "full" else (-signal.SIGKILL, killing)
    nbgrader_parts.without_servers()
    bookkeeping.ProcessPoolExecutor = HereAndNow  # type: ignore[assignment, misc]
    course = make(home)
    point, ended = 1, stopped
    while ended == stopped:
        trial = home / f"trial-{point}"
        shutil.copytree(course, trial / "course")
        shutil.copy(home / "examined.txt", trial)
        course_now = trial / "course"
        os.chdir(course_now)
        ended = child(stopping(point, course_now))
        if how == "full":
            (trial / "ballast").unlink()
            for one in left_over(course_now):
                print(f"point {point}: {one}")
        before, kept = len(examined(course_now)), [one for one in SECRETS if is_stored(course_now, one)]
        if child(lambda here=course_now: watch_once(here)) != 0:
            print(f"point {point}: the next start failed")
        problems = [*wrong(course_now)]
        again = [line.split()[0] for line in examined(course_now)[before:]]
        if sorted([*again, *kept]) != sorted(SECRETS):
            problems.append(f"examined again: {again}, though stored were {kept}")
        for one in problems:
            print(f"point {point}: {one}")
        os.chdir(home)
        shutil.rmtree(trial)
        point += step
    print(point)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "".join(sys.argv[3:]))
