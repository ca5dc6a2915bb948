"""Commands about a whole class: overview, export.

Comes in: parsed options. Goes out: text, files, an exit status. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from graders import config
from graders.commands.terminal import out
from graders.errors import GradersError


def overview(options: argparse.Namespace) -> int:
    """The class page of an assignment."""
    from graders.course.assignments import read_assignment
    from graders.results import classbook, likeness, overview, overviewpage
    from graders.run import grading

    settings, name = config.load(options.course), options.assignment
    reports = [report for report, _ in grading.stored(settings.course, name)]
    if not reports:
        raise GradersError(f"Nothing of {name!r} is graded in {settings.course}. Next step: graders grade {name}.")
    entries = classbook.entries(settings.course, name, reports, settings.db_url)
    alike = likeness.groups(read_assignment(settings.course, name), reports)
    made = overview.build(name, entries, alike, likeness.together)
    page = overviewpage.write(settings.course, made, datetime.now(UTC).isoformat(timespec="seconds"))
    out.print(f"The class page, for staff only: {page}", markup=False)
    return 0
