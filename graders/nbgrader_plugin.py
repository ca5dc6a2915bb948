"""The doors for formgrader's buttons and for nbgrader's commands of the same names; course_config.py names these classes.

Comes in: what nbgrader was asked to do. Goes out: what `graders grade`, `feedback`, `collect` and `feedback --release` do, and their words in
nbgrader's log, which formgrader shows. Must not: leave anything for nbgrader to do, since its way runs a student's code
without walls, its pages show hidden tests, and its exchange follows links.

nbgrader has settings for who collects and releases, and none for who grades. It has one for the exporter, which a converter makes
when it knows what it was asked for and before it touches a file. So an exporter here does the whole work when it is made, and then
nothing is left to convert.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from nbconvert.exporters import Exporter
from nbgrader.converters.base import NbGraderException
from nbgrader.exchange import ExchangeError
from nbgrader.exchange.abc import ExchangeCollect, ExchangeReleaseFeedback

from graders import config
from graders.config import Settings
from graders.errors import GradersError
from graders.records import Report, Status
from graders.results.numbers import plain
from graders.run import collecting, grading, returning

_Work = Callable[[Any, Settings, str], None]


class Examination(Exporter):
    """`c.Autograde.exporter_class`: grades as `graders grade` does; `--force`, which formgrader gives, is `--again`."""

    def __init__(self, parent: Any, **more: Any) -> None:
        """`parent` is nbgrader's converter."""
        super().__init__(parent=parent, **more)  # type: ignore[no-untyped-call]
        _instead(parent, _grade)
        parent.assignments = {}


class Pages(Exporter):
    """`c.GenerateFeedback.exporter_class`: writes the pages that `graders feedback` writes."""

    def __init__(self, parent: Any, **more: Any) -> None:
        """`parent` is nbgrader's converter."""
        super().__init__(parent=parent, **more)  # type: ignore[no-untyped-call]
        _instead(parent, _write)
        parent.assignments = {}


class Collect(ExchangeCollect):
    """`c.ExchangeFactory.collect`: collects as `graders collect` does."""

    def start(self) -> None:
        """Collect everybody's newest submission."""
        _instead(self, _collect, ExchangeError)


class Return(ExchangeReleaseFeedback):
    """`c.ExchangeFactory.release_feedback`: writes the pages anew and releases them as `graders feedback --release` does."""

    def start(self) -> None:
        """Put pages into the exchange."""
        _instead(self, _return, ExchangeError)


def _instead(asked: Any, work: _Work, failure: type[Exception] = NbGraderException) -> None:
    """Do `work` in the place of a class of nbgrader's; what stops us is told as nbgrader tells such things."""
    directory = asked.coursedir
    try:
        settings = config.load(Path(directory.root))
        # nbgrader's own options, such as --db, hold
        settings = msgspec.structs.replace(settings, course_id=directory.course_id, db_url=directory.db_url)
        work(asked, settings, directory.assignment_id)
    except GradersError as error:
        asked.log.error("%s", error)
        raise failure(str(error)) from error


def _grade(asked: Any, settings: Settings, assignment: str) -> None:
    who = _chosen(asked, grading.students(settings.course, assignment))
    if not asked.create_student:
        _refuse_strangers(settings, who)
    failed: list[str] = []

    def done(one: Report) -> None:
        if one.status is Status.not_graded:
            failed.append(one.student)
            asked.log.error("%s: not graded. %s", one.student, one.reason)
        else:
            points = "no" if one.score is None else plain(one.score)
            asked.log.info("%s: %s, %s of %s points.", one.student, one.status.value, points, plain(one.max_score))
        for flag in one.flags:
            asked.log.info("%s: to look at: %s: %s", one.student, flag.name, flag.text)

    course = grading.prepare(settings, assignment)
    grading.grade_class(settings, course, who, os.cpu_count() or 1, asked.force, done)
    if failed:
        raise NbGraderException(f"No score for {', '.join(sorted(failed))}; the reasons stand in the log.")


def _write(asked: Any, settings: Settings, assignment: str) -> None:
    for one in returning.write(settings, assignment, _graded(asked, settings, assignment)):
        asked.log.info("%s: written: %s", one.student, ", ".join(one.pages))


def _return(asked: Any, settings: Settings, assignment: str) -> None:
    for one in returning.release_feedback(settings, assignment, _graded(asked, settings, assignment)):
        if one.why is None:
            asked.log.info("%s: in the exchange.", one.student)
        else:
            asked.log.warning("%s: not in the exchange. %s", one.student, one.why)


def _collect(asked: Any, settings: Settings, assignment: str) -> None:
    found = collecting.collect(settings, assignment)
    for one in found.students:
        (asked.log.warning if one.problem else asked.log.info)("%s: %s", one.student, one.text)
    for name in found.unknown:
        asked.log.warning("Not understood: %s", name)


def _graded(asked: Any, settings: Settings, assignment: str) -> list[str]:
    return _chosen(asked, [report.student for report, _ in grading.stored(settings.course, assignment)])


def _chosen(asked: Any, known: Collection[str]) -> list[str]:
    """Of `known` students those that nbgrader was asked for: `*` is its word for all of them."""
    wanted, left_out = asked.coursedir.student_id or "*", asked.coursedir.student_id_exclude.split(",")
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
