"""An assignment with one exercise, and submissions of it made in memory."""

from __future__ import annotations

import json
from decimal import Decimal

from graders.coursework import Assignment, Reference, ReleasedCell, Role
from graders.exam.pair import Conditions
from graders.kernels.nursery import Limits, best_level
from graders.run.pipeline import Course, Job

SLEEP = "import time\ntime.sleep(1)\na = 1"


def course() -> Course:
    """One exercise worth three points."""
    cells = (
        ReleasedCell("lesson", 0, "a", Role.answer, "code", "a = 1", "a = 0"),
        ReleasedCell("lesson", 1, "a-test", Role.test, "code", "assert a == 1", "assert a == 1", Decimal(3)),
    )
    assignment = Assignment("lesson", {"lesson": cells}, {}, "0" * 64)
    conditions = Conditions(best_level(), Limits(), cell_timeout_s=20.0, submission_timeout_s=60.0, output_bytes=20_000)
    return Course(assignment, Reference(assignment.sha256, {}), conditions)


def job(student: str, answer: str) -> Job:
    """A submission of this answer."""
    cells = [
        {"cell_type": "code", "source": answer, "metadata": {"nbgrader": {"grade_id": "a", "solution": True}}},
        {"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": "a-test", "grade": True}}},
    ]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    return Job(student, {"lesson.ipynb": json.dumps(notebook).encode()}, (), "1" * 64)
