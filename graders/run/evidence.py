"""Export a student's portfolio: every graded assignment, run once more without its tests, in one folder.

Comes in: settings and a student. Goes out: `evidence/STUDENT/` with a page, the same as JSON, and executed notebooks. Must not: let
a hidden test near the run that a student gets to see; what it prints can then quote none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from graders.config import Settings
from graders.coursework import Role
from graders.errors import CourseError, GradersError, SubmissionError, VerifyError
from graders.exam.plan import ExamPlan
from graders.exam.session import examine
from graders.kernels.nursery import Nursery
from graders.records import Receipt, Report, Status
from graders.results import portfoliopage, receipts, report
from graders.results.executed import executed
from graders.results.folders import folder, replace_folder, subfolders
from graders.results.markbook import marks_of
from graders.results.marks import NO_MARKS
from graders.results.portfolio import EVIDENCE, Portfolio, Work, as_json, statement
from graders.run import grading, pipeline, submissions
from graders.run.pipeline import Course, Job

PAGE = "portfolio.html"
DATA = "portfolio.json"
_CHANGED = (
    "The report, or what was handed in, is no longer what was signed at grading, so the notebooks were left out. "
    "It has to be graded again."
)
_OTHER_VERSION = "The assignment was released anew since this was graded, so the notebooks were left out."


def export(settings: Settings, student: str, isolation: str | None = None) -> Path:
    """Write the portfolio and return the path of its page.

    Raises:
        GradersError: nothing of this student is graded.
        IsolationError: the walls that the course demands cannot be had.
    """
    reports = _reports(settings.course, student)
    works: list[Work] = []
    files: dict[str, bytes] = {}
    with pipeline.new_zygote() as zygote:
        for one in reports:
            work, notebooks = _work(settings, one, zygote, isolation)
            given = marks_of(settings.course, one.assignment, settings.db_url).get(student, NO_MARKS)
            works.append(msgspec.structs.replace(work, marks=given))
            files |= notebooks
    made = Portfolio(student, datetime.now(UTC).isoformat(timespec="seconds"), tuple(works))
    files |= {DATA: as_json(made), PAGE: portfoliopage.render(made).encode("utf-8", "replace")}
    target = folder(settings.course, "evidence", student, "any").parent
    replace_folder(target, files)
    return target / PAGE


def _reports(course: Path, student: str) -> list[Report]:
    """Every stored report of a student, by the name of its assignment."""
    root = folder(course, "autograded", student, "any").parent
    found = []
    for name in _folders(root):
        path = root / name / report.REPORT
        if path.is_file():
            try:
                found.append(report.read(path))
            except msgspec.DecodeError as error:
                raise GradersError(
                    f"{path} is not a report of this version: {error}. Next step: graders grade {name} --student {student}."
                ) from None
    if not found:
        others = ", ".join(_folders(root.parent)[:10]) or "nobody yet"
        raise GradersError(
            f"Nothing of {student!r} is graded below {root.parent}, and a portfolio shows what is. Graded are: {others}. "
            f"Next step: graders grade A --student {student}."
        )
    return found


def _folders(root: Path) -> list[str]:
    return [name for name in subfolders(root) if name[:1] != "."]


def _work(settings: Settings, found: Report, nursery: Nursery, isolation: str | None) -> tuple[Work, dict[str, bytes]]:
    """One assignment, and its executed notebooks by their path in the portfolio."""
    path = folder(settings.course, "autograded", found.student, found.assignment) / report.REPORT
    try:
        signed = receipts.verify(path, settings.course).report_sha256
    except VerifyError:
        return Work(found, note=_CHANGED), {}
    if found.status is Status.not_graded or found.receipt is None:
        return Work(found, signed), {}
    try:
        course = grading.prepare(settings, found.assignment, isolation)
    except CourseError:
        return Work(found, signed, note=_OTHER_VERSION), {}
    if course.assignment.sha256 != found.receipt.assignment_sha256:
        return Work(found, signed, note=_OTHER_VERSION), {}
    job = submissions.read_job(settings.course, found.student, course.assignment)
    return _run_again(job, course, found, found.receipt, nursery, signed)


def _run_again(
    job: Job, course: Course, found: Report, receipt: Receipt, nursery: Nursery, signed: str
) -> tuple[Work, dict[str, bytes]]:
    try:
        sealed = pipeline.planned(job, course)
    except SubmissionError as error:
        return Work(found, signed, note=str(error)), {}
    conditions = msgspec.structs.replace(course.conditions, seed=receipt.seed)
    run = examine(without_tests(sealed), conditions, nursery)
    notebooks = {
        f"{found.assignment}/{one.name}.ipynb": executed(course.assignment, one, run, found, public=True)
        for one in sealed.notebooks
    }
    statements = tuple(statement(cell) for cell in run.cells if cell.id == EVIDENCE)
    files = {path: msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n" for path, made in notebooks.items()}
    return Work(found, signed, tuple(notebooks), statements), files


def without_tests(sealed: ExamPlan) -> ExamPlan:
    """The same plan, in which no test runs; positions stay."""
    return msgspec.structs.replace(
        sealed,
        notebooks=tuple(
            msgspec.structs.replace(
                one,
                steps=tuple(
                    msgspec.structs.replace(step, cell_type="raw") if step.role is Role.test else step
                    for step in one.steps
                ),
            )
            for one in sealed.notebooks
        ),
    )
