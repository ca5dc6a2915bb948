"""Laws of an examination on an accelerator, with the CPU in its place: the same way, its own zygote, and every way to fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec
import one_exercise
import pytest
from one_exercise import job

from graders.kernels.nursery import Nursery, Zygote
from graders.records import Report, Status
from graders.run import executors, lease, pipeline
from graders.run.pipeline import Course
from graders.targets import BUILT_IN, Target

DEVICE = "/dev/zero"
LOOK = f"""
def look():
    import os
    try:
        with open({DEVICE!r}, "rb") as device:
            opened = device.read(1) == bytes(1)
    except OSError:
        opened = False
    return [os.environ.get("MARK", ""), opened, os.environ["JAX_PLATFORMS"]]
"""
ANSWER = f"{LOOK}\nimport jax\na = look()\n@jax.jit\ndef twice(x):\n    return x + x"
PLAIN = Target("stand-in", "candidate", environment={"MARK": "slot {slot}"}, devices=(DEVICE,), slots=1, patience_s=())


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """A warm process, and beside it one with the environment of the stand-in."""
    with pipeline.new_zygote(PLAIN) as warm:
        yield warm


def on(target: Target, test: str = "assert a == 1") -> Course:
    """The assignment with this test, examined there."""
    course = one_exercise.course()
    [answer, old] = course.assignment.notebooks["lesson"]
    cells = (answer, msgspec.structs.replace(old, source=test, released=test))
    assignment = msgspec.structs.replace(course.assignment, notebooks={"lesson": cells})
    limits = msgspec.structs.replace(course.conditions.limits, processes=target.limits.get("processes", 64))
    return Course(
        assignment, course.reference, msgspec.structs.replace(course.conditions, target=target, limits=limits)
    )


def graded(target: Target, nursery: Nursery, test: str = "assert a == 1", answer: str = "a = 1") -> Report:
    """The report of one submission."""
    return pipeline.grade(job("student-01", answer), on(target, test), nursery).report


@pytest.mark.parametrize("holder", ["candidate", "examiner"])
def test_the_holder_alone_has_environment_and_device(zygote: Zygote, holder: str) -> None:
    """The process that holds the accelerator has its environment and device; the other one has neither; programs cross between them."""
    mine, others = "['slot 0', True, 'cpu']", "['', False, 'cpu']"
    candidate, examiner = (mine, others) if holder == "candidate" else (others, mine)
    crossing = "import jax\nassert float(jax.jit(lambda x: twice(x))(2.0)) == 4.0"
    test = f"{LOOK}\nassert list(a) == {candidate}, a\nassert look() == {examiner}, look()\n{crossing}"
    report = graded(msgspec.structs.replace(PLAIN, holder=holder), zygote, test, ANSWER)
    assert (report.status, report.score, report.exercises[0].checks[0].message) == (Status.graded, 3, None)
    assert report.receipt is not None
    assert report.receipt.target == "stand-in"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"platform": "tpu"},
            "it runs on 'cpu' and not on 'tpu', to which JAX fell back without a word. Here this machine has no TPU",
        ),
        ({"device_kind": "TPU v5 lite"}, "its device is 'cpu 0', and a 'TPU v5 lite' is wanted"),
        ({"device_count": 4}, "it has 1 devices (cpu 0), and 4 are wanted"),
    ],
)
@pytest.mark.parametrize("holder", ["candidate", "examiner"])
def test_another_place_than_the_target_wants_is_no_score(
    zygote: Zygote, holder: str, changes: dict[str, object], told: str
) -> None:
    """A holder on another platform, kind or number of devices is our fault: a status with a sentence, and nothing was run."""
    target = msgspec.structs.replace(PLAIN, holder=holder, **changes)
    report = graded(target, zygote)
    assert (report.status, report.score, report.exercises) == (Status.not_graded, None, ())
    assert report.reason is not None
    assert (
        f"The fault is ours, not yours, and it will be graded again: The {holder} does not run where target"
        in report.reason
    )
    assert told in report.reason


def test_without_a_chip_the_target_tpu_gives_no_score() -> None:
    """The real target on a machine that has nothing for it: JAX's own words, what they mean, and the next step."""
    tpu = msgspec.structs.replace(BUILT_IN["tpu"], patience_s=())
    with pipeline.new_zygote(tpu) as zygote:
        report = graded(tpu, zygote)
    assert (report.status, report.score) == (Status.not_graded, None)
    assert report.reason is not None
    assert "The candidate does not run where target 'tpu' wants it: " in report.reason
    assert "(JAX: Unable to initialize backend 'tpu'" in report.reason
    assert "Here this machine has no TPU" in report.reason
    assert "Next step: grade on a TPU VM (docs/tpu.md), or with --target tpu-compile" in report.reason


@pytest.mark.system
def test_workers_share_both_zygotes_and_queue_for_the_chip() -> None:
    """Two workers and one slot: every submission is examined on the target, one at a time."""
    test = "assert list(a) == ['slot 0', True, 'cpu'], a"
    jobs = [job(f"student-{number:02d}", ANSWER) for number in range(3)]
    found = [one.report for one in executors.local(jobs, on(PLAIN, test), 2)]
    assert [(one.score, one.status) for one in found] == [(3, Status.graded)] * 3
    receipts = sorted((one.receipt for one in found if one.receipt), key=lambda one: one.started)
    begun = [datetime.fromisoformat(one.started).timestamp() for one in receipts]
    ended = [start + sum(one.phases_s.values()) for start, one in zip(begun, receipts, strict=True)]
    assert len(receipts) == 3
    assert all(end <= start + 0.01 for end, start in zip(ended, begun[1:], strict=False))


@pytest.mark.parametrize("patience_s", [(), (0.05,) * 100])
def test_a_chip_that_is_not_free_is_waited_for(
    zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience_s: tuple[float, ...]
) -> None:
    """Who overstays with the chip costs the student nothing: it is tried again, and without patience there is no score, but a name."""
    monkeypatch.setattr(lease, "FOLDER", tmp_path)
    target = msgspec.structs.replace(PLAIN, patience_s=patience_s)
    taken, free = threading.Event(), threading.Event()

    def overstay() -> None:
        with lease.of(target, "student-02", -1000.0):
            taken.set()
            free.wait(20)

    other = threading.Thread(target=overstay)
    other.start()
    assert taken.wait(10)
    threading.Timer(0.2 if patience_s else 5.0, free.set).start()
    start = time.monotonic()
    report = graded(target, zygote)
    free.set()
    other.join()
    if patience_s:
        assert (report.status, report.score, time.monotonic() - start > 0.2) == (Status.graded, 3, True)
    else:
        assert (report.status, report.score) == (Status.not_graded, None)
        assert "(for student-02, since " in (report.reason or "")
        assert "which should have given it back by now. Next step: see what it does, or end it (kill " in (
            report.reason or ""
        )
