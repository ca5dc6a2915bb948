"""The laws of a whole class, by hand: `make class` for 2,000, `make test-long` for 200. Prints its figures, and keeps them in $FIGURES."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO

import psutil
import pytest

from graders import config
from graders.course.assignments import read_assignment
from graders.course.simulate import simulate
from graders.kernels.nursery import best_level
from graders.run import demo, releasing

ROOT = Path(__file__).resolve().parents[2]
STUDENTS = int(os.environ.get("STUDENTS", "200"))
HUNDRED = 100
LOOK_S = 1.0
MIB = 2**20
FORMATS = ("csv", "json", "canvas", "moodle")


class Watcher(threading.Thread):
    """Looks every second how much memory and CPU time each part of a grading has: (seconds, resident bytes, CPU-s) by part."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self.seen: dict[str, list[tuple[float, int, float]]] = {}
        self._process, self.begun, self._parts = process, time.monotonic(), {}

    def run(self) -> None:
        """Look until the command has ended."""
        while self._process.poll() is None:
            for pid, part in self._named():
                try:
                    one = psutil.Process(pid)
                    spent, memory = sum(one.cpu_times()[:2]), one.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
                if memory:  # else it has just ended
                    self.seen.setdefault(part, []).append((time.monotonic() - self.begun, memory, spent))
            time.sleep(LOOK_S)

    def _named(self) -> Iterator[tuple[int, str]]:
        """The processes that live as long as the command: it starts the gradebook's writer first, then a zygote and workers."""
        yield self._process.pid, "grade"
        for line in Path(f"/proc/{self._process.pid}/task").glob("*/children"):
            for pid in map(int, line.read_text().split()):
                if pid not in self._parts:
                    words = Path(f"/proc/{pid}/cmdline").read_text()
                    spawned = sum(one.startswith(("gradebook", "worker")) for one in self._parts.values())
                    if "graders.kernels.zygote" in words:
                        self._parts[pid] = "zygote"
                    elif "spawn_main" in words:
                        self._parts[pid] = f"worker {spawned}" if spawned else "gradebook"
        yield from self._parts.items()


class Class:
    """A course on performance-02 with a class whose points are known, and the commands of one who grades it."""

    def __init__(self, home: Path) -> None:
        self.temporary = home / "temporary"
        self.temporary.mkdir()
        settings = demo.make_course(config.load(ROOT), home / "course")
        self.course = settings.course
        with (self.course / "course_config.py").open("a") as file:
            file.write(f"c.Graders.isolation = {best_level()!r}\nc.Graders.cell_timeout_s = {demo.CELL_TIMEOUT_S}\n")
        releasing.release(settings, demo.ASSIGNMENT, best_level())
        made = simulate(self.course, read_assignment(self.course, demo.ASSIGNMENT), settings.answers, STUDENTS, seed=7)
        self.points = {one.student: one.total for one in made}

    def start(self, *words: str, stdout: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
        """A command, begun."""
        mine = os.environ | {"TMPDIR": str(self.temporary), "STARTED_BY_THIS_TEST": str(self.course)}
        command = [sys.executable, "-m", "graders.cli", *words]
        return subprocess.Popen(command, cwd=self.course, env=mine, stdout=stdout, text=True)

    def run(self, *words: str) -> tuple[str, float, float]:
        """What a command prints, its wall seconds, and the MiB of its own process at its peak."""
        begun, peak_kib = time.monotonic(), 0
        with (self.temporary / "printed").open("w+") as file, self.start(*words, stdout=file) as process:
            while process.poll() is None:
                # the largest so far, which is asked for to the end: rusage would count the memory of whoever forked it
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak_kib = max(peak_kib, *(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line), 0)
                time.sleep(0.02)
            seconds = time.monotonic() - begun
            file.seek(0)
            printed = file.read()
        (self.temporary / "printed").unlink()
        assert process.returncode in (0, 1)
        return printed, seconds, peak_kib / 1024

    def written(self, room: str) -> list[float]:
        """When each student's folder of a room was put there, in seconds since the first."""
        found = sorted(one.stat().st_mtime for one in (self.course / room).glob(f"*/{demo.ASSIGNMENT}"))
        return [one - found[0] for one in found]

    def left(self) -> list[str]:
        """Processes, temporary files and half-made folders that nobody needs any more."""
        marked = f"STARTED_BY_THIS_TEST={self.course}\0".encode()
        found = [str(one) for one in self.temporary.iterdir()]
        found += [str(one) for room in ("autograded", "feedback") for one in (self.course / room).rglob(".*")]
        for one in psutil.process_iter():
            try:
                if marked in Path(f"/proc/{one.pid}/environ").read_bytes() + b"\0":
                    found.append(" ".join(one.cmdline()))
            except (OSError, psutil.Error):
                continue
        return found


def graded(whole: Class) -> tuple[dict[str, Decimal], list[float], Watcher]:
    """Grade everybody: points as they come, when each came, and what was seen meanwhile."""
    with whole.start("grade", demo.ASSIGNMENT, "--json") as process:
        watcher, points, times = Watcher(process), {}, []
        watcher.start()
        for line in process.stdout:
            one = json.loads(line, parse_float=Decimal)
            points[one["student"]] = one["score"]
            times.append(time.monotonic() - watcher.begun)
    assert process.returncode in (0, 1)
    watcher.join()
    return points, times, watcher


def hundreds(times: list[float]) -> list[float]:
    """Seconds of each hundred after the first report, which waits for all to start."""
    marks = [times[place] for place in range(0, len(times), HUNDRED)] + [times[-1]]
    return [later - earlier for earlier, later in itertools.pairwise(marks)]


def spent(looks: list[tuple[float, int, float]], times: list[float]) -> list[float]:
    """CPU milliseconds of one part for each report, by hundreds."""

    def until(when: float) -> float:
        return next((cpu for at, _, cpu in looks if at >= when), looks[-1][2])

    marks = [until(times[place]) for place in range(0, len(times), HUNDRED)] + [looks[-1][2]]
    return [1000 * (later - earlier) / HUNDRED for earlier, later in itertools.pairwise(marks)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """The class, handed in."""
    return Class(tmp_path_factory.mktemp("class"))


def test_a_whole_class(whole: Class) -> None:
    """Every score is the known one in grades and exports, memory grows by what the table at the end shows and no more, an unchanged
    submission is not run again, and nothing is left behind."""
    points, times, watcher = graded(whole)
    assert points == whole.points
    stages = {}
    again = {path: path.stat().st_mtime_ns for path in whole.course.glob("autograded/*/*/report.json")}
    for name, words in stage_words(min(points)).items():
        printed, seconds, peak_mib = whole.run(*words)
        stages[name] = (seconds, peak_mib)
        if name == "export json":
            assert {one["student"]: one["score"] for one in json.loads(printed, parse_float=Decimal)} == whole.points
    assert {path: path.stat().st_mtime_ns for path in whole.course.glob("autograded/*/*/report.json")} == again
    assert len(whole.written("feedback")) == STUDENTS
    assert whole.left() == []
    figures = {
        "students": STUDENTS,
        "times": times,
        "pages": whole.written("feedback"),
        "seen": watcher.seen,
        "gradebook_ms": spent(watcher.seen["gradebook"], times),
        "stages": stages,
    }
    tell(figures)
    if where := os.environ.get("FIGURES"):
        Path(where).write_text(json.dumps(figures))
    for part, looks in watcher.seen.items():
        half = [memory for at, memory, _ in looks if at >= times[min(len(times) // 2, HUNDRED)]]
        allowed = 60 * 1024 * STUDENTS if part == "grade" else 0
        assert max(half) - half[0] < 40 * MIB + allowed, part


def stage_words(student: str) -> dict[str, tuple[str, ...]]:
    """The commands after the first grading."""
    name = demo.ASSIGNMENT
    words: dict[str, tuple[str, ...]] = {
        "start alone": ("grade", name, "--json", "--student", student),
        "unchanged": ("grade", name, "--json"),
        "unchanged, on a terminal": ("grade", name),
        "feedback": ("feedback", name),
        "overview": ("overview", name),
    }
    return words | {f"export {one}": ("export", "--format", one) for one in FORMATS}


def tell(figures: dict) -> None:
    """Print what was measured."""
    times, stages = figures["times"], figures["stages"]
    print(f"\n{STUDENTS} submissions in {times[-1]:.0f} s, the first after {times[0]:.1f} s")
    print("seconds of each hundred:", *(f"{one:.1f}" for one in hundreds(times)))
    print("gradebook, CPU-ms a report:", *(f"{one:.1f}" for one in figures["gradebook_ms"]))
    print("pages, seconds of each hundred:", *(f"{one:.2f}" for one in hundreds(figures["pages"])))
    for part, looks in figures["seen"].items():
        memory = [one / MIB for _, one, _ in looks]
        middle = memory[len(memory) // 10]
        print(
            f"{part}: {middle:.0f} MiB after a tenth, {memory[-1]:.0f} at the end, peak {max(memory):.0f}; {looks[-1][2]:.0f} CPU-s"
        )
    for name, (seconds, peak_mib) in stages.items():
        print(f"{name}: {seconds:.1f} s, peak {peak_mib:.0f} MiB")
    each_ms = 1000 * (stages["unchanged"][0] - stages["start alone"][0]) / STUDENTS
    print(f"an unchanged submission: {each_ms:.2f} ms")
