"""The gate: what an assignment must keep before students receive it, tried and not only read.

Comes in: settings and the name of an assignment. Goes out: a `Gate`. Must not: print, touch source/, release/ or the
gradebook, or refuse anything itself: findings have levels, and the caller decides.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.files import read_files
from graders.course.leaks import leaks
from graders.course.lint import lint
from graders.course.reference import establish, run_solution, with_caches
from graders.course.release import generate
from graders.coursework import Assignment, Reference
from graders.errors import CourseError, InfrastructureError
from graders.exam.pair import Conditions
from graders.findings import Finding, Gate, Level
from graders.kernels.nursery import Zygote
from graders.records import Status
from graders.run import pipeline, proofs, trials
from graders.run.pipeline import Course

SEEDS = 5
TIMES = 2
# A mutant that never ends costs a cell's whole time limit, and there may be many of them.
TRIAL_CELL_S = 10

Tell = Callable[[str], None]


def gate(
    settings: Settings, name: str, workers: int, isolation: str | None = None, tell: Tell = lambda _: None
) -> Gate:
    """Try everything. The assignment is released into a folder of the gate's own.

    Raises:
        CourseError: there is no such assignment, or nbgrader cannot read it.
        IsolationError: the walls that the course demands cannot be had.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    conditions = pipeline.conditions_of(settings, name, isolation)
    author = read_assignment(settings.course, name, released=False)
    ran: dict[str, str] = {}
    with pipeline.new_zygote() as zygote:
        tell("reading the assignment, and running its solution")
        found = lint(author, conditions.sealed)
        wrong = reference(author, conditions, zygote, SEEDS, TIMES, kernel=True)
        modes = "sealed and in the kernel" if conditions.sealed else "in the kernel"
        ran["reference"] = f"the solution, {SEEDS} seeds, {TIMES} times each, {modes}"
        home = settings.course / ".graders" / "gate" / name
        tell("releasing it aside, and handing that in")
        assignment, more = _aside(settings, name, home)
        found += wrong + more
        if assignment is None:
            return Gate(name, author.sha256, started, ran, tuple(found))
        after, known = released(home, settings.course / "source" / name, assignment, conditions, zygote, not wrong)
        found += [one for one in after if one not in found]
        ran |= {
            "leaks": "every text of every released file",
            "seal": "the text of every cell",
            "stability": "every test",
        }
        made = Gate(name, assignment.sha256, started, ran, tuple(found))
        if known is None:
            return made
        course = Course(assignment, known, with_caches(conditions, home, assignment), settings.examine)
        place = trials.Place(home, settings.course / "source" / name, settings.answers / name, workers, zygote)
        return _tried(made, place, course, settings.mutation_floor, tell)


def _tried(made: Gate, place: trials.Place, course: Course, floor: float | None, tell: Tell) -> Gate:
    """Known answers, then mutants."""
    hasty = min(course.conditions.cell_timeout_s, TRIAL_CELL_S)
    course = msgspec.structs.replace(
        course, conditions=msgspec.structs.replace(course.conditions, cell_timeout_s=hasty)
    )
    tell("trying the known answers")
    made = proofs.known_answers(made, place, course)
    tell("trying wrong answers made from the solution")
    return proofs.mutation(made, place, course, floor)


def reference(
    assignment: Assignment, conditions: Conditions, zygote: Zygote, seeds: int, times: int, kernel: bool
) -> list[Finding]:
    """Run the solution with each seed; `kernel`: also inside the candidate. One finding a mode, for the first failure."""
    found = []
    for sealed in [True] * conditions.sealed + [False] * (kernel or not conditions.sealed):
        where = "sealed" if sealed else "in the kernel"
        try:
            for seed in (seed for seed in range(seeds) for _ in range(times)):
                last = seed
                run_solution(assignment, msgspec.structs.replace(conditions, sealed=sealed, seed=seed), zygote)
        except CourseError as error:
            text = f"{where}, seed {last}: {error}"
            found.append(Finding("reference: full marks", Level.error, "", "", None, text))
    return found


def released(
    home: Path, source: Path, assignment: Assignment, conditions: Conditions, zygote: Zygote, passes: bool
) -> tuple[list[Finding], Reference | None]:
    """What only a release shows: leaks, and what is earned by handing it in unchanged.

    Args:
        home: the folder that holds release/.
        source: the author's folder.
        assignment: read with the release.
        conditions: of the course.
        zygote: a warm one.
        passes: whether the solution gets full marks; without that nothing can be judged.
    """
    found = lint(assignment, conditions.sealed)
    found += leaks(assignment, read_files(source), read_files(home / "release" / assignment.name))
    if not passes:
        return found, None
    try:
        known = establish(home, assignment, conditions, zygote)
    except CourseError as error:
        return [*found, Finding("reference: full marks", Level.error, "", "", None, str(error))], None
    course = Course(assignment, known, with_caches(conditions, home, assignment))
    report = pipeline.grade(trials.job(home, source, assignment, "as released", None), course, zygote).report
    if report.status is not Status.graded:
        raise InfrastructureError(f"The release could not be examined: {report.reason or report.status.value}")
    for one in report.exercises:
        if one.score:
            text = (
                f"the release, handed in unchanged, earns {one.score} of {one.max_score} here. Wanted: 0. "
                "Test something that the released text does not do yet."
            )
            found.append(Finding("reference: blank", Level.error, one.notebook, one.id, None, text))
    return found, known


def _aside(settings: Settings, name: str, home: Path) -> tuple[Assignment | None, list[Finding]]:
    """Release the assignment into `home`, with a gradebook of its own."""
    for part in ("source", "release"):
        shutil.rmtree(home / part, ignore_errors=True)
    (home / "source").mkdir(parents=True, exist_ok=True)
    shutil.copytree(settings.course / "source" / name, home / "source" / name)
    for path in (settings.course / "source").iterdir():
        if path.is_file():  # a header or footer that nbgrader adds
            shutil.copy(path, home / "source" / path.name)
    for path in settings.course.glob("*.py"):
        shutil.copy(path, home / path.name)
    try:
        generate(home, settings.course_id, name, f"sqlite:///{home / 'gradebook.db'}")
        return read_assignment(home, name), []
    except CourseError as error:
        return None, [Finding("reference: release", Level.error, "", "", None, str(error))]


def refusals(found: Sequence[Finding]) -> str:
    """The findings that refuse a release, as lines."""
    return "\n  ".join(f"[{one.rule}] {one.where}: {one.text}" for one in found if one.level is Level.error)
