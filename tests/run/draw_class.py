"""Draw what long_scale.py measured: `python tests/run/draw_class.py FIGURES PICTURE`. Needs the extra `bench`."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

HUNDRED = 100
MIB = 2**20
NAMES = {"grade": "the command", "gradebook": "gradebook's writer", "zygote": "zygote", "worker": "workers"}
# Okabe and Ito's colours, which people who see colours differently tell apart; each line has its name beside it all the same
COLOURS = {"grade": "#0072B2", "gradebook": "#D55E00", "zygote": "#009E73", "worker": "#CC79A7"}


def hundreds(times: list[float]) -> list[float]:
    """Milliseconds for each of a hundred, hundred by hundred."""
    marks = times[::HUNDRED] + times[-1:]
    return [1000 * (later - earlier) / HUNDRED for earlier, later in itertools.pairwise(marks)]


def draw(figures: dict, picture: Path) -> None:
    """Three panels over the number of reports: time of each, gradebook and pages, and memory of each part."""
    mpl.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "graders",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    sheet = Figure(figsize=(9, 8), layout="constrained")
    whole, parts, memory = sheet.subplots(3, 1)
    times = figures["times"]
    edges = [*range(0, len(times), HUNDRED), len(times)]
    whole.stairs(hundreds(times), edges, color=COLOURS["grade"])
    whole.set(title="From one report to the next", ylabel="ms", ylim=(0, None), xlim=(0, len(times)))
    for name, values, part in (
        ("gradebook, CPU time", figures["gradebook_ms"], "gradebook"),
        ("a feedback page", hundreds(figures["pages"]), "zygote"),
    ):
        parts.stairs(values, edges, color=COLOURS[part], label=name)
    parts.set(title="What each report costs beside the examination", ylabel="ms", ylim=(0, None), xlim=(0, len(times)))
    parts.legend(frameon=False)
    for part, looks in figures["seen"].items():
        kind = part.split()[0]
        known = set(memory.get_legend_handles_labels()[1])
        name = NAMES[kind] if NAMES[kind] not in known else None
        memory.plot([at for at, _, _ in looks], [held / MIB for _, held, _ in looks], color=COLOURS[kind], label=name)
    memory.set(title="Resident memory", ylabel="MiB", xlabel="seconds", ylim=(0, None), xlim=(0, times[-1]))
    memory.legend(frameon=False, loc="lower right", ncols=4)
    parts.set_xlabel("reports")
    whole.set_xlabel("reports")
    sheet.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
