"""Commands about a whole class: overview, export.

Comes in: parsed options. Goes out: text, files, an exit status. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from graders import config
from graders.commands.terminal import confirmed, interactive, out
from graders.errors import GradersError
from graders.records import Report

if TYPE_CHECKING:
    from graders.results.classbook import Entry

MOST_SHOWN = 20  # places that a line each is written for


def class_of(settings: config.Settings, name: str) -> tuple[list[Report], tuple[Entry, ...]]:
    """The stored reports of an assignment, and where each student stands."""
    from graders.results import classbook
    from graders.run import grading

    reports = [report for report, _ in grading.stored(settings.course, name)]
    if not reports:
        raise GradersError(f"Nothing of {name!r} is graded in {settings.course}. Next step: graders grade {name}.")
    return reports, classbook.entries(settings.course, name, reports, settings.db_url)


def overview(options: argparse.Namespace) -> int:
    """The class page of an assignment."""
    from graders.course.assignments import read_assignment
    from graders.results import likeness, overview, overviewpage, review

    settings, name = config.load(options.course), options.assignment
    reports, entries = class_of(settings, name)
    alike = likeness.groups(read_assignment(settings.course, name), reports)
    made = overview.build(name, entries, alike, likeness.together, review.settled(settings.course, name))
    page = overviewpage.write(settings.course, made, datetime.now(UTC).isoformat(timespec="seconds"))
    out.print(f"The class page, for staff only: {page}", markup=False)
    return 0


def export(options: argparse.Namespace) -> int:
    """The scores of a class, on stdout or in a file that other users of the machine may not read."""
    from graders.results import classbook, exports
    from graders.results.folders import write_file
    from graders.run import grading

    settings = config.load(options.course)
    known = classbook.assignments(settings.course, settings.db_url)
    classes = {}
    for name in options.assignments or known:
        reports = [report for report, _ in grading.stored(settings.course, name)]
        if name not in known and not reports:
            raise GradersError(
                f"Nothing of {name!r} is graded in {settings.course}, and the gradebook does not know it. "
                f"It knows: {', '.join(known) or 'nothing yet'}. Next step: graders grade {name}."
            )
        classes[name] = classbook.entries(settings.course, name, reports, settings.db_url)
    text = exports.FORMATS[options.format](classes)
    if options.output is None:
        sys.stdout.write(text)
        return 0
    try:
        write_file(options.output, text.encode("utf-8", "replace"), mode=0o640)
    except OSError as error:
        raise GradersError(f"{options.output} cannot be written: {error}. Name another file.") from error
    return 0


def forget(options: argparse.Namespace) -> int:
    """Delete a student's data, once a person has agreed; 1 when the id still stands somewhere."""
    from graders.run import forgetting

    settings, student = config.load(options.course), options.student
    if not options.yes:
        for path in (*forgetting.stored(settings, student), *forgetting.class_pages(settings.course)):
            out.print(f"  {path}", markup=False)
        out.print(
            "and what the gradebook and the journal have of this student. Nothing but the class pages comes back."
        )
        if not interactive():
            raise GradersError("Nothing was deleted: nobody can be asked here. Next step: the same command with --yes.")
        if not confirmed(f"Delete all this of {student!r}?"):
            return 1
    for line in forgetting.forget(settings, student):
        out.print(f"Deleted: {line}", markup=False)
    left = forgetting.mentions(settings.course, student)
    for path in left[:MOST_SHOWN]:
        out.print(f"Still named here, so a person has to look: {path}", markup=False)
    if len(left) > MOST_SHOWN:
        out.print(f"and in {len(left) - MOST_SHOWN} more places")
    out.print("graders overview makes the class pages again. Exports and backups elsewhere are yours to delete.")
    return int(bool(left))
