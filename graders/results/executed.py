"""The executed notebook for staff: what ran, in the order in which it ran, with what came out of it.

Comes in: a plan, a run and the results. Goes out: an nbformat 4 dictionary with nbgrader's metadata, which formgrader
reads. Must not: keep an output that a browser would render as anything but text or a picture.
"""

from __future__ import annotations

from graders.coursework import Assignment, ReleasedCell, Role
from graders.exam.plan import NotebookPlan, Step
from graders.records import ExerciseResult, Report
from graders.runs import CellRun, Run, TestRun

_SIGNS = {"passed": "✓", "failed": "✗", "not_run": "–", "broken": "!"}


def executed(assignment: Assignment, plan: NotebookPlan, run: Run, report: Report) -> dict[str, object]:
    """One notebook as it was examined."""
    known: dict[str | None, ReleasedCell] = {cell.id: cell for cell in assignment.notebooks[plan.name] if cell.id}
    cells = {(plan.name, one.position): one for one in run.cells if one.notebook == plan.name}
    tests: dict[str | None, TestRun] = {one.id: one for one in run.tests}
    results: dict[str | None, ExerciseResult] = {one.id: one for one in report.exercises}
    made = []
    for number, step in enumerate(plan.steps):
        outputs: list[object] = []
        if step.role is Role.test and step.id in tests:
            outputs = _test_outputs(tests[step.id], results.get(step.id))
        elif (plan.name, step.position) in cells:
            outputs = _cell_outputs(cells[plan.name, step.position])
        made.append(_cell(number, step, known.get(step.id), outputs))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": made}


def _cell(number: int, step: Step, known: ReleasedCell | None, outputs: list[object]) -> dict[str, object]:
    metadata: dict[str, object] = {}
    if known is not None:
        metadata["nbgrader"] = _nbgrader(known)
        metadata["graders"] = {"kind": known.kind.value, "outcome": known.outcome}
    cell: dict[str, object] = {
        "id": f"step-{number}",
        "cell_type": step.cell_type,
        "metadata": metadata,
        "source": step.source,
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
        "solution": cell.role in (Role.answer, Role.written),
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
    if result is not None and result.reason:
        lines.append(result.reason)
    parts = ["\n".join(lines), test.output, test.problem.traceback if test.problem else ""]
    return [_text(part) for part in parts if part]


def _evidence(check: object) -> list[tuple[str, str | None]]:
    return [(label, getattr(check, label)) for label in ("misconception", "message", "expected", "actual")]


def _text(text: str) -> dict[str, object]:
    return {"output_type": "stream", "name": "stdout", "text": text + "\n"}
