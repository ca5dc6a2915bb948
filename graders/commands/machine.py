"""Commands about this machine: doctor, bench, demo.

Comes in: parsed options. Goes out: text and an exit status. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from rich.table import Table

from graders import config
from graders.commands.grading import grade_class
from graders.commands.terminal import err, out, print_lines
from graders.targets import BUILT_IN, Target, chosen


def doctor(options: argparse.Namespace) -> int:
    """Try each forbidden thing at each level; 1 when a wall is open or the demanded level cannot be had.

    With a target: what this machine has of it, without starting anything; 1 when something is missing.
    """
    from graders.kernels.nursery import LEVELS, best_level
    from graders.kernels.probes import doctor

    settings = config.load(options.course) if (options.course / "course_config.py").is_file() else None
    if options.target:
        return _doctor_of(chosen(options.target, settings.targets if settings else BUILT_IN, "--target"))
    wanted = settings.isolation if settings else "namespaces"
    best = best_level()
    failed = 0
    for level in reversed(LEVELS):
        if LEVELS.index(level) > LEVELS.index(best):
            out.print(f"Level {level}: cannot be put up on this machine.")
            continue
        table = Table("wall", "tried from inside", "", "seen", title=f"Level {level}", title_justify="left")
        for probe in doctor(level):
            failed += not probe.held
            table.add_row(probe.wall, probe.name, "holds" if probe.held else "OPEN", probe.detail)
        out.print(table)
    enough = LEVELS.index(best) >= LEVELS.index(wanted)
    verdict = "grading runs" if enough else "grading refuses to run"
    out.print(f"course_config.py demands {wanted!r}; the best level here is {best!r}: {verdict}.")
    return 0 if enough and not failed else 1


def _doctor_of(target: Target) -> int:
    from graders.kernels import chips

    found = chips.look()
    rows: dict[str, Sequence[str]] = {"libtpu": [found.library]} if target.holder or target.topology else {}
    if target.holder:
        rows = {
            "chips on the PCI bus": found.chips,
            "device nodes": found.nodes,
            "closed to candidates": found.closed,
        } | rows
        rows["in use by"] = [f"process {one.pid} ({one.name}): {one.what}" for one in found.holders]
    for what, told in rows.items():
        out.print(f"{what + ':':<22}{', '.join(told) or 'none'}", markup=False)
    lacks = chips.missing(target, found)
    busy = chips.held(found.holders) if target.holder and not lacks else ""
    verdict = f"cannot be had here: {lacks}." if lacks else f"waits: {busy}." if busy else "can be had here."
    out.print(f"Target {target.name!r} {verdict}", markup=False)
    return int(bool(lacks or busy))


def bench(options: argparse.Namespace) -> int:
    """Measure beside others that could grade the same, and beside the floor."""
    from graders.bench import contenders, outcome
    from graders.kernels.nursery import best_level

    settings, level = config.load(options.course), best_level()
    with err.status("Measuring …") as status:
        found = outcome.run(settings, level, options.students, options.rounds, lambda what: status.update(f"{what} …"))
    title = f"{found.submissions} honest submissions, walls: {level}, medians of {options.rounds} rounds"
    table = Table("", "CPU-s a submission", "wall-s", "CPU-s each further", "wall-s", "peak MiB, whole", title=title)
    for name, one in found.whole.items():
        seconds = (one.cpu_s, one.wall_s, found.further[name].cpu_s, found.further[name].wall_s)
        table.add_row(name, *(f"{each:.2f}" for each in seconds), str(found.peak_mib[name]))
    out.print(table)
    for name, ratio in found.ratios.items():
        out.print(f"{name}: {ratio:.2f}, and {found.further_ratios[name]:.2f} without the start", markup=False)
    out.print(
        f"One submission, warm: median {found.alone_median_s:.2f} s, worst {found.alone_worst_s:.2f} s; unchanged: "
        f"{found.unchanged_s * 1000:.1f} ms. A slot holds {found.slot_mib} MiB for itself."
    )
    out.print(f"All figures and the picture: {contenders.home_of(settings)}/bench.json, bench.svg", markup=False)
    return 0


def demo(options: argparse.Namespace) -> int:
    """Grade a class whose scores are known; 1 when one differs."""
    from graders.kernels.nursery import best_level
    from graders.run import demo, returning

    level = best_level()
    err.print("Making a course of its own with a class of 24 …")
    settings, made = demo.prepare(config.load(options.course), level)
    if level != "namespaces":
        err.print(
            f"The walls of level 'namespaces' cannot be put up here; the class is our own, so it runs with {level!r}."
        )
    lines = grade_class(settings, demo.ASSIGNMENT, None, os.cpu_count() or 1, True, False, isolation=level)
    pages = [page for one in returning.write(settings, demo.ASSIGNMENT) for page in one.pages]
    print_lines(lines, {one.student: one.what for one in made})
    expected = {one.student: one.total for one in made}
    wrong = [one.student for one in lines if one.points != expected[one.student]]
    out.print(f"Walls: {level}. {len(lines) - len(wrong)} of {len(lines)} scores are the known ones.")
    if wrong:
        out.print(f"Not as known: {', '.join(wrong)}.")
    out.print(f"Pages to open, one a student, such as:\n  {pages[0]}\n  {pages[-1]}")
    return 1 if wrong else 0
