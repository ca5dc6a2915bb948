"""A whole benchmark: every contender in several rounds, one submission at a time, memory of a slot.

Comes in: settings of a course with the lesson. Goes out: an `Outcome`, and the JSON and the picture of it. Must not: let figures stand
that come from wrong scores.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from statistics import mean, median

import msgspec

from graders import config
from graders.bench import contenders, rounds, warm
from graders.bench.contenders import AT_ONCE, FLOOR, OURS, Contender, Contest
from graders.bench.rounds import Cost
from graders.config import Settings
from graders.errors import InfrastructureError
from graders.records import Record
from graders.run import demo, grading

MIB = 2**20
_FEW = 8  # students, six of them hostile: a command that is all start


class Outcome(Record):
    """Seconds are for each submission, medians of rounds: of whole commands in `whole`, start included, and without it in `further`.

    MiB are peaks, shared pages counted once. `ratios` are what the table is about: of CPU to the floor, of throughput to
    `nbgrader autograde`, and of sealing to the same without; those of `further` submissions likewise.
    """

    submissions: int
    rounds: tuple[Cost, ...]
    whole: dict[str, Cost]
    further: dict[str, Cost]
    ratios: dict[str, float]
    further_ratios: dict[str, float]
    peak_mib: dict[str, int]
    slot_mib: int
    phases_s: dict[str, float]
    alone_median_s: float
    alone_worst_s: float
    unchanged_s: float


def run(settings: Settings, isolation: str, students: int, count: int, told: Callable[[str], None]) -> Outcome:
    """Measure, and leave `bench.json` and `bench.svg` in `.graders/bench`.

    Raises:
        InfrastructureError: a contender failed, or a score of ours is not the known one.
    """
    told("the same class hands in for each contender")
    home = contenders.home_of(settings)
    shutil.rmtree(home, ignore_errors=True)
    contest = contenders.prepare(settings, isolation, students, home / "class")
    few = contenders.prepare(settings, isolation, _FEW, home / "few")
    peaks = {one.name: _peak(one, same, told) for one, same in zip(contest.contenders, few.contenders, strict=True)}
    ours = contest.contenders[0]
    slot = rounds.slot_bytes(msgspec.structs.replace(ours, arguments=(*ours.arguments, "--jobs", "1")))
    measured = [rounds.measure(contest, few, told) for _ in range(count)]
    told("one submission at a time")
    phases_s = _checked(contest)
    waits = warm.measure(config.load(Path(contest.ours)), list(contest.known))
    costs, more = (tuple(chain.from_iterable(kind)) for kind in zip(*measured, strict=True))
    whole, further = rounds.medians(costs), rounds.medians(more)
    found = Outcome(
        submissions=len(contest.known),
        rounds=costs,
        whole=whole,
        further=further,
        ratios=ratios(whole),
        further_ratios=ratios(further),
        peak_mib={name: peak // MIB for name, peak in peaks.items()},
        slot_mib=slot // MIB,
        phases_s=phases_s,
        alone_median_s=median(waits.submissions_s),
        alone_worst_s=max(waits.submissions_s),
        unchanged_s=waits.unchanged_s,
    )
    _write(found, home, isolation)
    return found


def _peak(one: Contender, same: Contender, told: Callable[[str], None]) -> int:
    """The memory of a contender; its caches are full afterwards, for the few too."""
    told(f"{one.name}, its memory, and its caches are filled")
    rounds.peak_bytes(same)
    return rounds.peak_bytes(one)


def _checked(contest: Contest) -> dict[str, float]:
    """The mean seconds of each phase, by the receipts of a class whose scores are the known ones."""
    reports = [report for report, _ in grading.stored(Path(contest.ours), demo.ASSIGNMENT)]
    if {one.student: one.score for one in reports} != contest.known:
        raise InfrastructureError(
            f"The scores below {contest.ours} are not the known ones; such speed is worth nothing."
        )
    phases = [one.receipt.phases_s for one in reports if one.receipt]
    return {name: mean(one.get(name, 0.0) for one in phases) for name in phases[0]}


def ratios(middle: dict[str, Cost]) -> dict[str, float]:
    """What the table is about: CPU beside the floor and beside weaker settings of ours, throughput beside others."""
    ours = middle[OURS]
    found = {"CPU, ours to the floor": ours.cpu_s / middle[FLOOR].cpu_s}
    found |= {
        f"throughput, ours to {name}": one.wall_s / ours.wall_s
        for name, one in middle.items()
        if name != FLOOR and not name.startswith(OURS)
    }
    others = [name for name in middle if name.startswith(f"{OURS},")]
    return found | {
        f"CPU, ours to ours with{name.removeprefix(f'{OURS},')}": ours.cpu_s / middle[name].cpu_s for name in others
    }


def _write(found: Outcome, home: Path, isolation: str) -> None:
    from graders.bench.picture import draw

    (home / "bench.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    title = f"{found.submissions} honest submissions of {demo.ASSIGNMENT}, {AT_ONCE} at once, walls: {isolation}"
    draw(found.whole, found.phases_s, title, home / "bench.svg")
