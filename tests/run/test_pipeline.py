"""Laws of a fault of ours: it is tried again, and never becomes a student's score."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graders import config
from graders.course.assignments import read_assignment
from graders.course.reference import run_solution
from graders.errors import InfrastructureError
from graders.exam import session
from graders.kernels import client
from graders.kernels.nursery import Zygote, best_level
from graders.records import Status
from graders.run import pipeline, trials
from graders.run.pipeline import Course, Job

SUBMISSIONS = Path(__file__).resolve().parents[1] / "submissions" / "course"


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """One warm process for these tests."""
    with pipeline.new_zygote() as warm:
        yield warm


@pytest.fixture(scope="module")
def course(zygote: Zygote) -> Course:
    """The small assignment of tests/submissions."""
    assignment = read_assignment(SUBMISSIONS, "ps1")
    conditions = pipeline.conditions_of(config.load(SUBMISSIONS), "ps1", best_level())
    return Course(assignment, run_solution(assignment, conditions, zygote), conditions)


@pytest.fixture(scope="module")
def job(course: Course) -> Job:
    """A submission with the author's own answers."""
    return trials.job(SUBMISSIONS, SUBMISSIONS / "source" / "ps1", course.assignment, "student-01", {})


def test_the_cpu_needs_no_second_zygote(zygote: Zygote) -> None:
    """A target on which no process holds an accelerator starts one warm process and none beside it."""
    assert zygote.beside is None


@pytest.mark.parametrize("faults", [1, 2, 3])
def test_a_kernel_that_is_slow_to_start_is_tried_twice_again(
    course: Course, job: Job, zygote: Zygote, monkeypatch: pytest.MonkeyPatch, faults: int
) -> None:
    """A kernel that does not come up in time, once or twice, costs nothing; three times, and there is no score and a reason."""
    waits = iter([0.0] * faults)

    class Slow(client.Kernel):
        def _await_welcome(self) -> None:
            with monkeypatch.context() as patched:
                patched.setattr(client, "_START_S", next(waits, client._START_S))
                super()._await_welcome()

    monkeypatch.setattr("graders.exam.pair.Kernel", Slow)
    report = pipeline.grade(job, course, zygote).report
    assert next(waits, None) is None
    if faults < 3:
        assert (report.status, report.score) == (Status.graded, 5)
    else:
        assert (report.status, report.score) == (Status.not_graded, None)
        assert "The fault is ours, not yours" in (report.reason or "")
        assert "did not come up" in (report.reason or "")


def test_a_lost_zygote_makes_no_score(course: Course, job: Job) -> None:
    """When no process can be made at all there is no score, and the reason says whose fault that is."""
    gone = pipeline.new_zygote()
    gone.await_ready()
    gone.close()
    report = pipeline.grade(job, course, gone).report
    assert (report.status, report.score, [one.score for one in report.exercises]) == (Status.not_graded, None, [])
    assert "The fault is ours" in (report.reason or "")


def test_a_fault_in_mid_run_leaves_nothing_behind(
    course: Course, job: Job, zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An examination that we broke off counts for nothing: the next try starts anew, with fresh processes."""
    seen: list[int] = []
    whole = session.Examination._test

    def breaks(self: session.Examination, step: object) -> object:
        seen.append(id(self))
        if len(set(seen)) == 1 and len(seen) == 2:
            raise InfrastructureError("the second test of the first try broke off")
        return whole(self, step)  # type: ignore[arg-type]

    monkeypatch.setattr(session.Examination, "_test", breaks)
    report = pipeline.grade(job, course, zygote).report
    assert (report.status, report.score) == (Status.graded, 5)
    assert len(set(seen)) == 2
    assert report.receipt is not None
    assert report.receipt.restarts == 0
