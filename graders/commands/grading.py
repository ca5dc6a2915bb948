"""Commands that grade and show it: grade, regrade, feedback, evidence, verify.

Comes in: parsed options. Goes out: text or JSON lines, and an exit status. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from graders import config
from graders.commands.terminal import Line, err, line, out, print_changes, print_lines, progress
from graders.errors import GradersError, SettingsError
from graders.records import Report
from graders.results import journal
from graders.results.shifts import Change


def grade(options: argparse.Namespace) -> int:
    """Examine submissions and store their scores; 1 when something needs a person."""
    settings = config.load(options.course)
    scheduler = _scheduler(options)
    lines = grade_class(
        settings,
        options.assignment,
        options.student,
        options.jobs,
        options.again,
        options.json,
        scheduler=scheduler,
        target=options.target,
    )
    if not options.json:
        print_lines(lines)
        print_groups(settings, options.assignment)
    return _needs_person(settings.course, options.assignment, lines)


def _scheduler(options: argparse.Namespace) -> str | None:
    if (options.executor == "dask") != (options.scheduler is not None):
        raise SettingsError(
            "--executor dask and --scheduler ADDR belong together: examinations then run on that Dask cluster. "
            "Name both, or neither to grade on this machine."
        )
    return str(options.scheduler) if options.scheduler else None


def grade_class(
    settings: config.Settings,
    assignment: str,
    chosen: Sequence[str] | None,
    jobs: int,
    again: bool,
    json: bool,
    isolation: str | None = None,
    scheduler: str | None = None,
    target: str = "cpu",
) -> list[Line]:
    """Grade a class with a progress bar on a terminal, or one JSON line a report; what can be shown of each."""
    from graders.results.report import json_line
    from graders.run import grading

    settings.target(target)  # a slip is told before anything runs
    who = _chosen(settings, assignment, chosen)
    course = grading.prepare(settings, assignment, isolation, target)
    lines: list[Line] = []
    with progress(len(who), hidden=json) as step:

        def done(report: Report) -> None:
            lines.append(line(report))
            step()
            if json:
                sys.stdout.write(json_line(report).decode() + "\n")
                sys.stdout.flush()

        grading.grade_class(settings, course, who, jobs, again, done, scheduler)
    return sorted(lines, key=lambda one: one.student)


def print_groups(settings: config.Settings, assignment: str) -> None:
    """Answers of the whole class that a person may want to see side by side."""
    from graders.course.assignments import read_assignment
    from graders.results import likeness
    from graders.run import grading

    reports = [report for report, _ in grading.stored(settings.course, assignment)]
    found = likeness.groups(read_assignment(settings.course, assignment), reports)
    if found:
        out.print("Near-identical answers, for a person to compare; it changes no score:")
    for one in found:
        out.print(f"  {one.exercise}: {', '.join(one.students)} ({one.likeness:.0%} or more)", markup=False)


def regrade(options: argparse.Namespace) -> int:
    """Show who would change and why; store it with --apply. 1 when somebody changes."""
    from graders.run import grading, regrading

    settings = config.load(options.course)
    who = _chosen(settings, options.assignment, options.student)
    course = grading.prepare(settings, options.assignment)
    found: list[Change] = []
    with err.status(f"{options.assignment}: examining {len(who)} submissions again …"):
        regrading.regrade(settings, course, who, options.jobs, options.apply, found.extend)
    print_changes(found)
    if options.apply and found:
        out.print(f"{len(found)} new results were stored. The old ones stand in {settings.course / journal.JOURNAL}.")
    elif found:
        out.print(f"Nothing was stored. Next step: graders regrade {options.assignment} --apply", markup=False)
    return int(bool(found))


def _chosen(settings: config.Settings, assignment: str, chosen: Sequence[str] | None) -> Sequence[str]:
    from graders.run import grading

    found = grading.students(settings.course, assignment)
    for student in chosen or ():
        if student not in found:
            raise GradersError(
                f"{student!r} has handed in nothing for {assignment!r} below {settings.course / 'submitted'}. "
                f"Name one who has: {_some(found)}."
            )
    return chosen or found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") or "nobody yet"


def evidence(options: argparse.Namespace) -> int:
    """The portfolio of one student."""
    from graders.run import evidence

    with err.status(f"{options.student}: running what was handed in once more, without tests …"):
        page = evidence.export(config.load(options.course), options.student)
    out.print(f"The portfolio of {options.student} is in {page.parent}; its page: {page}", markup=False)
    return 0


def _needs_person(course: Path, assignment: str, lines: Sequence[Line]) -> int:
    from graders.results import review  # with SQLAlchemy, 0.3 s that nothing else here needs before the grading

    settled = review.settled(course, assignment)
    return int(any(one not in settled for line in lines for one in line.waiting))


def verify(options: argparse.Namespace) -> int:
    """Check a stored report against its signature and its submission, or an execution record against what is released."""
    from graders.course.assignments import is_record
    from graders.results.receipts import verify
    from graders.run import recording

    if is_record(options.file.name):
        ran = recording.verify(options.file, options.course.resolve())
        out.print(
            f"{options.file}: a run of {ran.assignment} as it is released now, on target {ran.target!r} ({ran.started}). It is not signed."
        )
        return 0
    found = verify(options.file, options.course.resolve())
    out.print(
        f"{options.file}: {found.assignment} of {found.student}, {found.status}, is what was signed at grading "
        f"({found.started}), and so is the submission. Key {found.key[:16]}…"
    )
    return 0
