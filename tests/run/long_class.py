"""Laws of big classes and big outputs, by hand: `make test-long`. Each prints its figures."""

from __future__ import annotations

import gc
import os
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from graders import config
from graders.course.assignments import read_assignment
from graders.course.reference import run_solution
from graders.course.simulate import simulate
from graders.kernels.nursery import best_level
from graders.records import Report, Status
from graders.run import demo, grading, pipeline, releasing, trials

ROOT = Path(__file__).resolve().parents[2]
STUDENTS = 300
DESCRIPTORS = 256
MIB = 2**20


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """As after `ulimit -n 256`."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that nobody else uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def held() -> tuple[int, int, int]:
    """Descriptors, threads and children of this process, zombies included."""
    gc.collect()
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), len(children)


def resident_bytes() -> int:
    """What this process holds in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_three_hundred_submissions_in_one_run(tmp_path: Path, few_descriptors: None, temporary: Path) -> None:
    """300 submissions of a whole lesson, six of them hostile, get their known points in one run that may open 256 files, and
    leave no descriptor, thread, process or temporary file behind."""
    settings = demo.make_course(config.load(ROOT), tmp_path / "course")
    releasing.release(settings, demo.ASSIGNMENT, best_level())
    settings = msgspec.structs.replace(settings, cell_timeout_s=demo.CELL_TIMEOUT_S)
    assignment = read_assignment(settings.course, demo.ASSIGNMENT)
    wanted = {
        one.student: one.total for one in simulate(settings.course, assignment, settings.answers, STUDENTS, seed=7)
    }
    ready = grading.prepare(settings, demo.ASSIGNMENT, best_level())
    grading.grade_class(
        settings, ready, sorted(wanted)[:2], 2, False, lambda report: None
    )  # what is kept for good is kept now
    before, stored, memory, begun = held(), sorted(temporary.iterdir()), [resident_bytes()], time.monotonic()
    found: dict[str, Report] = {}

    def done(report: Report) -> None:
        found[report.student] = report
        memory.append(resident_bytes())

    grading.grade_class(settings, ready, sorted(wanted), 2, True, done)
    seconds = time.monotonic() - begun
    assert {student: report.score for student, report in found.items()} == wanted
    assert {report.status for report in found.values()} == {Status.graded}
    assert (held(), sorted(temporary.iterdir())) == (before, stored)
    print(
        f"\n{STUDENTS} submissions in {seconds:.0f} s; this process grew from {memory[0] / MIB:.0f} to {max(memory) / MIB:.0f} MiB"
    )
    assert max(memory) - memory[0] < 60 * MIB


def test_a_gigabyte_of_output_is_cut_while_it_streams() -> None:
    """A cell that prints 1 GB to its end is judged as if it had printed nothing, and the worker grows by less than 50 MB."""
    where = ROOT / "tests" / "submissions" / "course"
    assignment = read_assignment(where, "ps1")
    conditions = msgspec.structs.replace(
        pipeline.conditions_of(config.load(where), "ps1", best_level()),
        cell_timeout_s=250.0,
        submission_timeout_s=280.0,
    )
    [cells] = assignment.notebooks.values()
    [double] = [cell for cell in cells if cell.id == "double"]
    flood = f"{double.source}\nfor _ in range(1024):\n    print('x' * (2**20 - 1))"
    with pipeline.new_zygote() as zygote:
        course = pipeline.Course(assignment, run_solution(assignment, conditions, zygote), conditions)
        source = where / "source" / "ps1"
        calm = pipeline.grade(trials.job(where, source, assignment, "student-01", {}), course, zygote).report
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        begun = time.monotonic()
        loud = pipeline.grade(
            trials.job(where, source, assignment, "student-02", {"double": flood}), course, zygote
        ).report
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    print(f"\n1 GB printed in {time.monotonic() - begun:.0f} s; the peak of this process rose by {grown / MIB:.1f} MiB")
    assert loud.score == calm.score
    assert grown < 50 * MIB
