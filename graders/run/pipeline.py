"""One submission from its bytes to its report, and what every examination of an assignment has in common.

Comes in: a `Job`. Goes out: a `Graded`. Must not: write anything, import jax, or let a fault of ours become a score.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from graders import __version__
from graders.config import Settings
from graders.course.notebooks import read_submission
from graders.coursework import Assignment, Reference
from graders.errors import AcceleratorError, InfrastructureError, SubmissionError
from graders.exam import plan
from graders.exam.pair import PRELOAD, Conditions
from graders.exam.session import examine
from graders.exam.topologies import chip_of
from graders.kernels import chips
from graders.kernels.nursery import PRELOAD as KERNEL_PRELOAD
from graders.kernels.nursery import Limits, Nursery, Zygote
from graders.records import Flag, Receipt, Record, Report, to_json
from graders.results.executed import executed
from graders.results.receipts import environment_sha256
from graders.results.report import SHOWN
from graders.results.scoring import assemble_report, not_graded_report
from graders.results.times import utc
from graders.run import lease
from graders.runs import Run
from graders.targets import CPU, Target

ATTEMPTS = 3
_PAUSES_S = (0.0,) * (ATTEMPTS - 1)
MOST_SHOWN = 20  # files that a page lists
_IN_KERNEL = (
    Flag(
        "examined_in_kernel", "The tests of this course run inside the notebook's own process and can be forged there."
    ),
)


class Job(Record):
    """One submission as it stands on disk: files by relative name, what of it was not read, its hash and its time.

    `notes` are flags about the submission as a whole that its files do not tell.
    """

    student: str
    files: dict[str, bytes]
    left_out: tuple[Flag, ...]
    sha256: str
    submitted: str | None = None
    unreadable: str | None = None
    notes: tuple[Flag, ...] = ()


class Course(Record):
    """What every examination of one assignment has in common."""

    assignment: Assignment
    reference: Reference
    conditions: Conditions
    examine: str = "sealed"


class Graded(Record):
    """The report of one submission, its executed notebooks as nbformat 4 dictionaries by name, and what goes beside them."""

    report: Report
    notebooks: dict[str, dict[str, object]] = msgspec.field(default_factory=dict)
    files: dict[str, bytes] = msgspec.field(default_factory=dict)


def conditions_of(settings: Settings, assignment: str, isolation: str | None = None, target: str = "cpu") -> Conditions:
    """The conditions that the settings ask for on a target; `isolation` instead of theirs is for the demo alone.

    Raises:
        SettingsError: there is no such target, or its topology is of no chip that is known.
    """
    where = settings.target(target)
    if where.topology:
        chip_of(where.topology)
    settings = msgspec.structs.replace(settings.of(assignment), **where.limits)
    limits = Limits(settings.memory_bytes, settings.disk_bytes, settings.processes)
    return Conditions(
        isolation or settings.isolation,
        limits,
        settings.cell_timeout_s,
        settings.submission_timeout_s,
        settings.output_bytes,
        sealed=settings.examine == "sealed",
        target=where,
    )


def new_zygote(target: Target = CPU) -> Zygote:
    """A warm process for candidates and examiners, and one beside it for those that hold an accelerator, if the target has one."""
    modules = (*KERNEL_PRELOAD, *PRELOAD)
    beside = Zygote(modules, environment=chips.environment(target, 0)) if target.holder else None
    return Zygote(modules, beside=beside)


def grade(job: Job, course: Course, nursery: Nursery) -> Graded:
    """Grade one submission. A fault of ours is tried again and then told as `not_graded`; a busy accelerator is waited for.

    Raises:
        IsolationError: the walls that the course demands cannot be had.
    """
    if job.unreadable is not None:
        return not_graded(job, course, job.unreadable)
    try:
        sealed = planned(job, course)
    except SubmissionError as error:
        return not_graded(job, course, str(error))
    seed = int(hashlib.sha256((job.sha256 + course.assignment.sha256).encode()).hexdigest()[:8], 16)
    conditions = msgspec.structs.replace(course.conditions, seed=seed)
    try:
        run, started = patiently(conditions, job.student, lambda one: examine(sealed, one, nursery))
    except InfrastructureError as error:
        return not_graded(job, course, f"The fault is ours, not yours, and it will be graded again: {error}")
    return _graded(job, course, sealed, run, _receipt(job, course, run, seed, started))


def patiently(conditions: Conditions, whose: str, run: Callable[[Conditions], Run]) -> tuple[Run, datetime]:
    """What comes of `run` while the target's accelerator is ours, and when that began.

    A fault of ours is tried twice again, at once; an accelerator that is not there or not free as often as the target says.

    Raises:
        InfrastructureError: the last fault.
    """
    tried = 0
    while True:
        try:
            with lease.of(conditions.target, whose, conditions.submission_timeout_s) as slot:
                started = datetime.now(UTC)
                return run(msgspec.structs.replace(conditions, slot=slot)), started
        except InfrastructureError as error:
            pauses = conditions.target.patience_s if isinstance(error, AcceleratorError) else _PAUSES_S
            if tried >= len(pauses):
                raise
            time.sleep(pauses[tried])
            tried += 1


def planned(job: Job, course: Course) -> plan.ExamPlan:
    """What will be done with a submission. Raises `SubmissionError` when it cannot be read."""
    submission = read_submission(job.files, job.left_out, job.student, course.assignment)
    return _fitting(plan.seal(course.assignment, submission), course.conditions.limits.disk_bytes)


def _fitting(sealed: plan.ExamPlan, disk_bytes: int) -> plan.ExamPlan:
    """The plan with those of the student's own files that the candidate's folder can hold; the largest give way first."""
    files, flags = dict(sealed.files), []
    for path in sorted(files, key=lambda path: -len(files[path])):
        readable = path.encode("utf-8", "replace").decode()
        own = path not in sealed.course_files
        if readable != path:
            flags.append(Flag("file_left_out", f"The name of {readable} is not UTF-8; the file was left out."))
            del files[path]
        elif own and sum(map(len, files.values())) > disk_bytes // 2:
            text = f"{path} was left out: your files may have {disk_bytes // 2:,} bytes together, and it has {len(files[path]):,}."
            flags.append(Flag("file_left_out", text))
            del files[path]
    return msgspec.structs.replace(sealed, files=files, flags=(*sealed.flags, *flags))


def _graded(job: Job, course: Course, sealed: plan.ExamPlan, run: Run, receipt: Receipt) -> Graded:
    report = assemble_report(
        course.assignment,
        course.reference,
        run,
        student=job.student,
        answers=plan.answers(course.assignment, sealed),
        flags=(*sealed.flags, *job.notes, *_time_flags(job), *_IN_KERNEL[: not course.conditions.sealed]),
        submitted=job.submitted,
        receipt=receipt,
    )
    notebooks = {one.name: executed(course.assignment, one, run, report) for one in sealed.notebooks}
    return Graded(report, notebooks, {SHOWN: to_json({one.name: one.shown for one in sealed.notebooks})})


def _time_flags(job: Job) -> tuple[Flag, ...]:
    """A time that is there and cannot be read is told; whoever has none, such as a folder put there by hand, is not late."""
    unknown = bool(job.submitted) and utc(job.submitted) is None
    text = "The time of hand-in cannot be read, so whether it was late is not known."
    return (Flag("time_unknown", text),) if unknown else ()


def not_graded(job: Job, course: Course, reason: str) -> Graded:
    """A report that says why there is no score."""
    report = not_graded_report(
        job.student,
        course.assignment,
        reason,
        flags=(*job.left_out, *job.notes),
        submitted=job.submitted,
        receipt=_receipt(job, course, None, 0, datetime.now(UTC)),
        arrived=_arrived(job.files),
    )
    return Graded(report)


def _arrived(files: dict[str, bytes]) -> list[str]:
    """What was handed in and read, for the page of a student whose submission has no score."""
    # `or`: this also tells of jobs that a mistake of ours made, and must not fail on what that failed on
    shown = [f"{path}, {len(files[path] or b''):,} bytes" for path in sorted(files)[:MOST_SHOWN]]
    return shown + [f"and {len(files) - MOST_SHOWN:,} more files"][: len(files) > MOST_SHOWN]


def _receipt(job: Job, course: Course, run: Run | None, seed: int, started: datetime) -> Receipt:
    return Receipt(
        graders=__version__,
        python=platform.python_version(),
        target=course.conditions.target.name,
        examine=course.examine,
        isolation=course.conditions.isolation,
        places=run.places if run else (),
        submission_sha256=job.sha256,
        assignment_sha256=course.assignment.sha256,
        environment_sha256=environment_sha256(),
        seed=seed,
        started=started.isoformat(timespec="milliseconds"),
        wall_s=round((datetime.now(UTC) - started).total_seconds(), 3),
        cpu_s=round(run.cpu_s, 3) if run else 0.0,
        phases_s=rounded(run.phases_s) if run else {},
        compile_s=rounded(run.compile_s) if run else {},
        restarts=run.restarts if run else 0,
        peak_bytes=run.peak_bytes if run else 0,
        compilation=run.compilation if run else None,
        tolerances=course.conditions.target.tolerances,
    )


def rounded(seconds: dict[str, float]) -> dict[str, float]:
    """To milliseconds, as a receipt has them."""
    return {name: round(one, 3) for name, one in seconds.items()}
