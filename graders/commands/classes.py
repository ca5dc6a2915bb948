"""Commands about a whole class: overview, export.

Comes in: parsed options. Goes out: text, files, an exit status. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from graders import config
from graders.commands.terminal import out
from graders.errors import GradersError
from graders.records import Report

if TYPE_CHECKING:
    from graders.results.classbook import Entry


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
