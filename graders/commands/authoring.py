"""Commands of an author: release, gate, record, simulate.

Comes in: parsed options. Goes out: text and an exit status. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rich.table import Table

from graders import config
from graders.commands.terminal import confirmed, err, interactive, out, print_findings
from graders.findings import Gate

if TYPE_CHECKING:
    from graders.run.releasing import Affected


def release(options: argparse.Namespace) -> int:
    """Make what students receive, and say what the quick part of the gate found."""
    from graders.run import releasing

    settings = config.load(options.course)
    for name in options.assignments:
        concerned = releasing.affected(settings, name)
        if concerned is not None and not _wanted(name, concerned):
            return 1
        found = releasing.release(settings, name, force=options.force_gate)
        print_findings(found.findings)
        if found.reference is None:
            out.print(f"{name}: released, but its solution fails, so nothing handed in for it can be graded.")
            continue
        checks = sum(len(one) for one in found.reference.checks.values())
        out.print(f"{name}: released; its solution passes all {checks} checks. Students receive {found.folder}.")
        out.print(f"Its version is {found.sha256[:12]}.")
        out.print(f"This was the quick part of the gate; all of it is: graders gate {name}")
    return 0


def _wanted(name: str, concerned: Affected) -> bool:
    """Say who is affected before anything changes; a person at a terminal is asked."""
    many = f"{len(concerned.handed_in)} have handed in, and {len(concerned.graded)} of them are graded"
    out.print(
        f"{name} changes: {many} as of {concerned.version[:12] or 'an earlier version'} ({', '.join(concerned.handed_in)}). "
        f"Their points stay until `graders regrade {name} --apply`.",
        markup=False,
    )
    return not interactive() or confirmed(f"Release the new version of {name}?")


def record(options: argparse.Namespace) -> int:
    """Run the solution of a released assignment and keep a record of that run beside the release."""
    from graders.run import recording

    settings = config.load(options.course)
    for name in options.assignments:
        with err.status(f"{name}: running its solution …"):
            path, made = recording.record(settings, name, target=options.target)
        where = ", ".join(f"{one.role} on {one.platform} with JAX {one.jax}" for one in made.places)
        out.print(
            f"{name}: {made.passed} of {made.checks} checks passed in {made.wall_s:g} s ({where}). The record: {path}",
            markup=False,
        )
    return 0


def gate(options: argparse.Namespace) -> int:
    """Prove that an assignment grades well; 1 when it is refused."""
    from graders.results import gatepage
    from graders.run import gating

    settings = config.load(options.course)
    refused = 0
    for name in options.assignments:
        with err.status(f"{name}: …") as status:
            made = gating.gate(
                settings, name, options.jobs, tell=lambda step, name=name: status.update(f"{name}: {step} …")
            )
        page = gatepage.write(settings.course, made)
        _print_gate(made)
        verdict = f"refused for {len(made.refused)} reasons" if made.refused else "the gate is open"
        out.print(f"{name}: {verdict}, {len(made.warnings)} warnings. The page: {page}", markup=False)
        refused += bool(made.refused)
    return 1 if refused else 0


def _print_gate(made: Gate) -> None:
    print_findings(made.findings)
    table = Table("group", "looked at", "refused", "warnings", title=f"Gate of {made.assignment}", title_justify="left")
    for group, what in made.ran.items():
        own = [one for one in made.findings if one.group == group]
        refused = sum(one in made.refused for one in own)
        table.add_row(group, what, str(refused), str(len(own) - refused))
    out.print(table)
    if made.score is None:
        return
    table = Table("exercise", "check", "notices", "alone", title="Wrong answers", title_justify="left")
    for one in made.checks:
        table.add_row(one.exercise, one.title, str(one.killed), str(one.alone))
    out.print(table)
    for figures in made.exercises:
        left = figures.tried - figures.killed - figures.equivalent
        out.print(
            f"{figures.exercise}: {figures.tried} wrong answers, {figures.killed} noticed, {left} got full marks, "
            f"{figures.equivalent} explained as right."
        )
    for survivor in made.survivors:
        if not survivor.reason:
            told = "\n".join(f"    {line}" for line in survivor.diff.splitlines())
            out.print(f"Not noticed in {survivor.cell}: {survivor.what}\n{told}", markup=False)
    out.print(f"Mutation score: {made.score:.1%}")


def simulate(options: argparse.Namespace) -> int:
    """A synthetic class below submitted/."""
    from graders.course.assignments import read_assignment
    from graders.course.simulate import simulate

    settings = config.load(options.course)
    assignment = read_assignment(settings.course, options.assignment)
    made = simulate(settings.course, assignment, settings.answers, options.students, options.seed)
    hostile = sum(not one.honest for one in made)
    out.print(
        f"{len(made)} submissions of {assignment.name} are in {settings.course / 'submitted'}; {hostile} are hostile."
    )
    return 0
