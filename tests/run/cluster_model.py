"""What more hosts bring, predicted from what was measured on one: `.venv/bin/python tests/run/cluster_model.py docs/cluster.json docs/cluster.svg`.

Comes in: the figures of `cluster_costs.py`. Goes out: a picture, and a line of JSON about where the curve bends. Must not: measure.

Examinations are independent, so hosts add up, until one of the parts that there is only one of is full: the scheduler, its network, the process
that grades, or the gradebook's writer. A class takes as long as a worker needs to start, its examinations at that rate, and the last of them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

CORES = 8  # of a host, each of them a worker's
HOSTS = 50
CLASSES = (300, 2_000, 20_000)
LINK_BYTES_PER_S = 125e6  # 1 Gbit/s, and both ways at once
PARTS = ("gradebook's writer", "process that grades", "scheduler", "scheduler's network")

Measured = dict[str, Any]


def examination_s(measured: Measured) -> float:
    """How long one takes on a worker while every processor works."""
    return float(measured["two_workers"]["examination_s"]) * 2


def hosts_rate(measured: Measured, hosts: float) -> float:
    """Submissions per second that the workers of so many hosts examine."""
    return hosts * CORES / examination_s(measured)


def limits(measured: Measured) -> dict[str, float]:
    """Submissions per second at which each part that there is only one of is full.

    Of both runs of tasks the dearer counts. A job and its result both go into the scheduler and out of it again.
    """
    task = {
        key: max(measured[run][key] for run in ("one_worker", "two_workers"))
        for key in ("task_cpu_s", "scheduler_cpu_s")
    }
    seconds = (
        measured["writer_cpu_s"],
        measured["read_s"] + task["task_cpu_s"] + measured["store_cpu_s"],
        task["scheduler_cpu_s"],
        (measured["job_bytes"] + measured["result_bytes"]) / LINK_BYTES_PER_S,
    )
    return {part: 1 / each for part, each in zip(PARTS, seconds, strict=True)}


def rate(measured: Measured, hosts: float) -> float:
    """Submissions per second while all are busy."""
    return min(hosts_rate(measured, hosts), *limits(measured).values())


def start_s(measured: Measured, hosts: float) -> float:
    """Until every worker is warm: it registers, gets the assignment, starts its zygote and runs the author's notebook.

    The assignment is counted as if one worker had to send it to all others over one link: workers share that in truth.
    """
    two = measured["two_workers"]
    spread = measured["plan_bytes"] * hosts * CORES / LINK_BYTES_PER_S
    return float(two["register_s"] + two["first_s"] - 2 * examination_s(measured) + spread)


def throughput(measured: Measured, hosts: float, students: int) -> float:
    """Submissions per second of a whole class, its start and its last examination included."""
    return students / (start_s(measured, hosts) + students / rate(measured, hosts) + examination_s(measured))


def bend(measured: Measured) -> tuple[float, str]:
    """The hosts beyond which more bring nothing, and the part that is full then."""
    part, least = min(limits(measured).items(), key=lambda one: one[1])
    return least / hosts_rate(measured, 1), part


def draw(measured: Measured, path: Path) -> None:
    """Throughput against hosts, with what was measured and what is full where."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "graders", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    hosts = [1 / CORES * (HOSTS * CORES) ** (n / 200) for n in range(201)]
    axes.loglog(hosts, [rate(measured, one) for one in hosts], color="black", label="while all are busy")
    for students, style in zip(CLASSES, ("-", "--", ":"), strict=True):
        each = [throughput(measured, one, students) for one in hosts]
        axes.loglog(hosts, each, style, color="tab:blue", label=f"a class of {students:,}, start included")
    for part, most in limits(measured).items():
        axes.axhline(most, color="tab:gray", linewidth=0.8)
        axes.annotate(f"{part} is full: {most:.0f} a second", (0.13, most), (0, 3), textcoords="offset points")
    runs = {1 / CORES: "one_worker", 2 / CORES: "two_workers"}
    axes.plot(
        list(runs),
        [1 / measured[run]["examination_s"] for run in runs.values()],
        "o",
        color="tab:red",
        label="measured",
    )
    where, _ = bend(measured)
    axes.axvline(where, color="tab:red", linewidth=0.8, linestyle="--")
    told = f"{where:.1f} hosts:\nmore bring nothing"
    axes.annotate(told, (where, 8), (4, 0), textcoords="offset points", color="tab:red")
    axes.set_xlabel(f"hosts of {CORES} processors (measured: one and two processors)")
    axes.set_ylabel("submissions per second")
    axes.set_xticks([1 / 8, 1 / 4, 1, 2, 5, 10, 20, 50], ["1/8", "1/4", "1", "2", "5", "10", "20", "50"])
    axes.set_yticks([1, 10, 100], ["1", "10", "100"])
    axes.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def main(figures: str, picture: str) -> None:
    """Draw, and tell the figures that docs/cluster.md quotes."""
    measured = json.loads(Path(figures).read_text())
    draw(measured, Path(picture))
    one, two = (measured[run]["examination_s"] for run in ("one_worker", "two_workers"))
    where, part = bend(measured)
    told: dict[str, Any] = {"speed_up_of_two": one / two, "bend_hosts": where, "full": part, "limits": limits(measured)}
    told["start_s"] = start_s(measured, 1)
    told["a_class_of_2000_s"] = {n: 2000 / throughput(measured, n, 2000) for n in (1, 2, 5, 10, 20, HOSTS)}
    told["a_class_of_20000_s"] = {n: 20000 / throughput(measured, n, 20000) for n in (1, 2, 5, 10, 20, HOSTS)}
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
