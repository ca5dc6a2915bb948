"""The execution record: our own run of an assignment, kept beside its release.

Comes in: settings and the name of a released assignment. Goes out: `release/A/execution-record.json`, or that of another target. Must not: keep anything
that the solution says, shows or computes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from graders import __version__
from graders.config import Settings
from graders.course.assignments import execution_record, is_record, read_assignment
from graders.course.reference import reference_of, solve
from graders.coursework import Assignment
from graders.errors import VerifyError
from graders.records import ExecutionRecord, Outcome, to_json
from graders.results.folders import write_file
from graders.results.receipts import environment_sha256
from graders.run import grading, pipeline
from graders.runs import Run


def record(
    settings: Settings, name: str, isolation: str | None = None, target: str = "cpu"
) -> tuple[Path, ExecutionRecord]:
    """Run the solution once on a target, with no compiled program at hand, and write down how that went.

    Raises:
        SettingsError: there is no such target.
        AcceleratorError: this machine has nothing of what the target asks for, or not now.
        CourseError: the assignment is not released, or its solution does not get full marks.
        IsolationError: the walls that the course demands cannot be had.
    """
    conditions = pipeline.conditions_of(settings, name, isolation, target)
    assignment = read_assignment(settings.course, name)
    grading.expect_accelerator(conditions.target)
    with pipeline.new_zygote(conditions.target) as zygote:
        run, started = pipeline.patiently(conditions, "the solution", lambda one: solve(assignment, one, zygote))
        wall_s = (datetime.now(UTC) - started).total_seconds()
    reference_of(assignment, run)
    checks = [one.outcome for test in run.tests for one in test.checks]
    checks += [Outcome.passed for test in run.tests if not test.checks]  # a test without a check is one, and it passed
    made = ExecutionRecord(
        assignment=name,
        assignment_sha256=assignment.sha256,
        environment_sha256=environment_sha256(),
        graders=__version__,
        examine=settings.examine,
        isolation=conditions.isolation,
        places=run.places,
        started=started.isoformat(timespec="milliseconds"),
        wall_s=round(wall_s, 3),
        cpu_s=round(run.cpu_s, 3),
        seconds=_seconds(assignment, run),
        checks=len(checks),
        passed=checks.count(Outcome.passed),
        restarts=run.restarts,
        target=target,
        compile_s=pipeline.rounded(run.compile_s),
    )
    path = settings.course / "release" / name / execution_record(target)
    write_file(path, msgspec.json.format(to_json(made), indent=1) + b"\n")
    return path, made


def _seconds(assignment: Assignment, run: Run) -> dict[str, dict[str, float]]:
    """Seconds of every cell and test that ran, by notebook and id."""
    home = {cell.id: name for name, cells in assignment.notebooks.items() for cell in cells}
    made: dict[str, dict[str, float]] = {name: {} for name in assignment.notebooks}
    for cell in run.cells:
        made[cell.notebook][cell.id or f"cell {cell.position}"] = round(cell.seconds, 3)
    for test in run.tests:
        made[home[test.id]][test.id] = round(test.seconds, 3)
    return made


def verify(path: Path, course: Path) -> ExecutionRecord:
    """Read a record and check that it is one of the released version, in which every check passed.

    Raises:
        VerifyError: it cannot be read, the assignment is another by now, or a check did not pass.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=ExecutionRecord)
    except (OSError, msgspec.DecodeError) as error:
        raise VerifyError(f"{path} is no execution record: {error}. Next step: graders record A.") from None
    now = read_assignment(course, found.assignment).sha256
    if found.assignment_sha256 != now:
        raise VerifyError(
            f"{path} is of version {found.assignment_sha256[:12]} of {found.assignment}, and released is {now[:12]}. "
            f"Next step: graders record {found.assignment}."
        )
    if found.passed < found.checks:
        raise VerifyError(
            f"{path} is of a run on target {found.target!r} in which {found.passed} of {found.checks} checks passed. Wanted: all. "
            f"Next step: see what differs there with graders gate {found.assignment}, mend it, and record it again."
        )
    return found


def keep(before: Path | None, course: Path, assignment: Assignment) -> None:
    """Put back the records that stood in the release before this one, if they are of the same version."""
    for kept in sorted(before.iterdir()) if before else ():
        if is_record(kept.name) and kept.is_file():
            try:
                verify(kept, course)
            except VerifyError:
                continue
            write_file(course / "release" / assignment.name / kept.name, kept.read_bytes())
