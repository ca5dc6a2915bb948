"""The picture of a benchmark: what each contender costs, as multiples of the floor, and where our own seconds go.

Comes in: medians and phases. Goes out: an SVG file. Must not: show a figure that is not in the JSON beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graders.bench.contenders import FLOOR, OURS
from graders.bench.rounds import Cost

_INK, _OURS, _OTHERS = "#30343b", "#2563a8", "#9aa0a8"
_PHASES = ("#16406e", "#2563a8", "#6f9bd1", "#b7cce8", "#d9dde3")


def draw(costs: Mapping[str, Cost], phases_s: Mapping[str, float], title: str, path: Path) -> None:
    """Bars of CPU and wall seconds for each submission, and one bar of phases in wall seconds of a slot."""
    with matplotlib.rc_context({"svg.hashsalt": "graders", "font.size": 9, "text.color": _INK}):
        figure = Figure(figsize=(8, 6.4), layout="tight")
        left, right, below = figure.subplots(3, 1, height_ratios=(3, 3, 1))
        figure.suptitle(title, x=0.02, ha="left")
        _bars(left, {name: one.cpu_s for name, one in costs.items()}, "CPU seconds a submission, all processes")
        _bars(right, {name: one.wall_s for name, one in costs.items()}, "wall seconds a submission, whole command")
        _stack(below, phases_s)
        figure.savefig(path, metadata={"Date": None})


def _bars(axes: Axes, seconds: Mapping[str, float], label: str) -> None:
    names = list(seconds)
    colours = [_OURS if name.startswith(OURS) else _OTHERS for name in names]
    axes.barh(names, list(seconds.values()), color=colours, height=0.7)
    for row, name in enumerate(names):
        times = "" if name == FLOOR else f"  ({seconds[name] / seconds[FLOOR]:.1f} × floor)"
        axes.text(seconds[name], row, f" {seconds[name]:.2f}{times}", va="center")
    axes.set_xlim(0, max(seconds.values()) * 1.25)
    axes.set_title(label, loc="left", fontsize=9)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def _stack(axes: Axes, phases_s: Mapping[str, float]) -> None:
    begun = 0.0
    for (name, seconds), colour in zip(phases_s.items(), _PHASES, strict=False):
        axes.barh([""], [seconds], left=begun, color=colour, label=f"{name} {seconds:.2f} s")
        begun += seconds
    axes.set_title(f"{OURS}: the wall seconds of one submission in its slot, by phase", loc="left", fontsize=9)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.25), ncols=5, frameon=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
