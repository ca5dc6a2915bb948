"""The executed notebook, for staff or for the student: what ran, in the order in which it ran, with what came out of it.

Comes in: a plan, a run and the results. Goes out: an nbformat 4 dictionary with nbgrader's metadata, which formgrader
reads. Must not: keep an output that a browser would render as anything but text or a picture, let HTML of a student stand
between the cells, or give a student what a hidden test says, or what was printed after one could have told the student's code its values.
"""

from __future__ import annotations

import msgspec

from graders.coursework import ANSWERS, Assignment, ReleasedCell, Role
from graders.exam.plan import NotebookPlan, Step
from graders.records import CheckResult, ExerciseResult, Report
from graders.results.hints import student_reads
from graders.results.inert import inert
from graders.runs import CellRun, Run, TestRun

_SIGNS = {"passed": "✓", "failed": "✗", "not_run": "–", "broken": "!"}


def executed(
    assignment: Assignment, plan: NotebookPlan, run: Run, report: Report, *, public: bool = False
) -> dict[str, object]:
    """One notebook as it was examined. `public`: as its student may have it, tests as released and with what feedback says."""
    known: dict[str | None, ReleasedCell] = {cell.id: cell for cell in assignment.notebooks[plan.name] if cell.id}
    cells = {(plan.name, one.position): one for one in run.cells if one.notebook == plan.name}
    tests: dict[str | None, TestRun] = {one.id: one for one in run.tests}
    results: dict[str | None, ExerciseResult] = {one.id: one for one in report.exercises}
    made: list[object] = [] if public else _notes(report)
    for number, step in enumerate(plan.steps):
        outputs: list[object] = []
        if step.role is Role.test and public:
            step = msgspec.structs.replace(step, source=known[step.id].released)
            outputs = _public_outputs(results.get(step.id))
        elif step.role is Role.test and step.id in tests:
            outputs = _test_outputs(tests[step.id], results.get(step.id))
        elif (ran := cells.get((plan.name, step.position))) and not (public and ran.after_hidden):
            outputs = _cell_outputs(ran)
        made.append(_cell(number, step, known.get(step.id), outputs))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": made}


def _notes(report: Report) -> list[object]:
    """A cell above all others with the flags, where a TA who opens the notebook in formgrader begins."""
    lines = [f"{flag.name}{f' ({flag.cell})' if flag.cell else ''}: {flag.text}" for flag in report.flags]
    if not lines:
        return []
    cell: dict[str, object] = {"id": "flags", "cell_type": "code", "metadata": {}, "source": "# To look at"}
    return [cell | {"execution_count": None, "outputs": [_text("\n".join(lines).encode("utf-8", "replace").decode())]}]


def _cell(number: int, step: Step, known: ReleasedCell | None, outputs: list[object]) -> dict[str, object]:
    metadata: dict[str, object] = {}
    if known is not None:
        metadata["nbgrader"] = _nbgrader(known)
        metadata["graders"] = {"kind": known.kind.value, "outcome": known.outcome}
    cell: dict[str, object] = {
        "id": f"step-{number}",
        "cell_type": step.cell_type,
        "metadata": metadata,
        "source": step.source if step.author or step.cell_type == "code" else inert(step.source),
    }
    if step.cell_type == "code":
        cell |= {"execution_count": None, "outputs": outputs}
    return cell


def _nbgrader(cell: ReleasedCell) -> dict[str, object]:
    """nbgrader's own metadata of a cell, schema version 3."""
    graded = cell.role in (Role.test, Role.written)
    meta: dict[str, object] = {
        "grade_id": cell.id,
        "grade": graded,
        "solution": cell.role in ANSWERS,
        "locked": cell.role in (Role.test, Role.locked, Role.task),
        "task": cell.role is Role.task,
        "cell_type": cell.cell_type,
        "schema_version": 3,
    }
    if graded or cell.role is Role.task:
        meta["points"] = float(cell.points)
    return meta


def _cell_outputs(run: CellRun) -> list[object]:
    outputs: list[object] = list(run.outputs)
    return outputs if run.reason is None else [*outputs, _text(run.reason)]


def _test_outputs(test: TestRun, result: ExerciseResult | None) -> list[object]:
    """What staff reads below a test: each check with its evidence, then what was printed and the first error."""
    lines = []
    for check in result.checks if result else ():
        lines.append(f"{_SIGNS[check.outcome.value]} {check.title}: {check.earned} of {check.points}")
        lines += [f"    {label}: {text}" for label, text in _evidence(check) if text]
    if result is not None:
        lines += [line for line in (result.reason, result.advice) if line]
    parts = ["\n".join(lines), test.output, test.problem.traceback if test.problem else ""]
    return [_text(part) for part in parts if part]


def _public_outputs(result: ExerciseResult | None) -> list[object]:
    """What the student reads below a test, as on the feedback page."""
    lines = []
    for check in result.checks if result else ():
        lines.append(f"{_SIGNS[check.outcome.value]} {check.title}: {check.earned} of {check.points}")
        lines += [f"    {hint}" for hint in (student_reads(check),) if hint]
    if result is not None and result.reason:
        lines.append(result.reason)
    return [_text("\n".join(lines))] if lines else []


def _evidence(check: CheckResult) -> list[tuple[str, str | None]]:
    values = [(label, getattr(check, label)) for label in ("message", "expected", "actual")]
    return [("the student reads", student_reads(check)), *values]


def _text(text: str) -> dict[str, object]:
    return {"output_type": "stream", "name": "stdout", "text": text + "\n"}
