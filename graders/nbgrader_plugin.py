"""The door for formgrader's buttons, `nbgrader autograde` and `nbgrader generate_feedback`; course_config.py names both classes.

Comes in: a converter of nbgrader's that is about to convert. Goes out: what `graders grade` and `graders feedback` make, and their
words in nbgrader's log, which formgrader shows. Must not: leave anything for nbgrader to convert, since its way runs a student's
code without walls and its pages show hidden tests.

nbgrader has no setting for who grades. It has one for the exporter, which a converter makes when it knows what it was asked for
and before it touches a file. So each exporter here does the whole work when it is made, and then nothing is left to convert.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from nbconvert.exporters import Exporter
from nbgrader.converters.base import NbGraderException

from graders import config
from graders.config import Settings
from graders.errors import GradersError
from graders.records import Report, Status
from graders.results.numbers import plain
from graders.run import grading, returning


class Examination(Exporter):
    """`c.Autograde.exporter_class`: grades as `graders grade` does; `--force`, which formgrader gives, is `--again`."""

    def __init__(self, parent: Any, **more: Any) -> None:
        """`parent` is nbgrader's converter."""
        super().__init__(parent=parent, **more)  # type: ignore[no-untyped-call]
        _instead(parent, _grade)


class Pages(Exporter):
    """`c.GenerateFeedback.exporter_class`: writes the pages that `graders feedback` writes."""

    def __init__(self, parent: Any, **more: Any) -> None:
        """`parent` is nbgrader's converter."""
        super().__init__(parent=parent, **more)  # type: ignore[no-untyped-call]
        _instead(parent, _write)


def _instead(converter: Any, work: Any) -> None:
    """Do `work`, and leave nothing for the converter to do; what stops us is told as nbgrader tells such things."""
    directory = converter.coursedir
    try:
        settings = config.load(Path(directory.root))
        # nbgrader's own options, such as --db, hold
        work(converter, msgspec.structs.replace(settings, course_id=directory.course_id, db_url=directory.db_url))
    except GradersError as error:
        converter.log.error("%s", error)
        raise NbGraderException(str(error)) from error
    converter.assignments = {}


def _grade(converter: Any, settings: Settings) -> None:
    assignment, log = converter.coursedir.assignment_id, converter.log
    who = _chosen(converter, grading.students(settings.course, assignment))
    if not converter.create_student:
        _refuse_strangers(settings, who)
    failed: list[str] = []

    def done(one: Report) -> None:
        if one.status is Status.not_graded:
            failed.append(one.student)
            log.error("%s: not graded. %s", one.student, one.reason)
        else:
            points = "no" if one.score is None else plain(one.score)
            log.info("%s: %s, %s of %s points.", one.student, one.status.value, points, plain(one.max_score))
        for flag in one.flags:
            log.info("%s: to look at: %s: %s", one.student, flag.name, flag.text)

    course = grading.prepare(settings, assignment)
    grading.grade_class(settings, course, who, os.cpu_count() or 1, converter.force, done)
    if failed:
        raise NbGraderException(f"No score for {', '.join(sorted(failed))}; the reasons stand in the log.")


def _write(converter: Any, settings: Settings) -> None:
    assignment = converter.coursedir.assignment_id
    known = [report.student for report, _ in grading.stored(settings.course, assignment)]
    for one in returning.write(settings, assignment, _chosen(converter, known)):
        converter.log.info("%s: written: %s", one.student, ", ".join(one.pages))


def _chosen(converter: Any, known: Collection[str]) -> list[str]:
    """Of `known` students those that nbgrader was asked for: `*` is its word for all of them."""
    wanted, left_out = converter.coursedir.student_id, converter.coursedir.student_id_exclude.split(",")
    return [one for one in known if one not in left_out and (one == wanted or fnmatchcase(one, wanted))]


def _refuse_strangers(settings: Settings, who: Collection[str]) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(settings.db_url, settings.course_id) as book:
        strangers = sorted(set(who) - {one.id for one in book.students})
    if strangers:
        raise GradersError(
            f"The gradebook does not know {', '.join(strangers)}, and c.Autograde.create_student is off. "
            f"Next step: nbgrader db student add {strangers[0]}"
        )
