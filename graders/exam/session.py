"""Examine one submission: its cells in the candidate, its tests in the examiner, in released order.

Comes in: an `ExamPlan` and `Conditions`. Goes out: a `Run`. Must not: import jax, judge a result, or let one exercise's
death, loop or flood cost another exercise anything.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable

import msgspec

from graders.errors import InfrastructureError
from graders.exam import control
from graders.exam.plan import ExamPlan, NotebookPlan, Step
from graders.kernels.births import Limits, Spawn
from graders.kernels.client import CellEnd, Kernel, Start, died
from graders.kernels.nursery import Child, Zygote
from graders.records import CellRun, Ended, Flag, Place, Record, Role, Run, TestRun

HOOK = "graders.exam.candidate:install"
OUTSTREAM = "graders.exam.capped.CappedOutput"
PRELOAD = ("graders.exam.candidate", "graders.exam.examiner")
_OVERRUN_S = 3.0  # how long an examiner has to answer once its candidate is gone
_MEET_S = 60.0


class Conditions(Record):
    """What holds for every examination of a course. Caches are folders of compiled programs, read-only inside.

    The candidates' cache was filled by the released notebook alone: one filled by the solution would hold it.
    """

    isolation: str
    limits: Limits
    cell_timeout_s: float
    submission_timeout_s: float
    output_bytes: int
    seed: int = 0
    candidate_cache: str | None = None
    examiner_cache: str | None = None
    fill_caches: bool = False


def examine(plan: ExamPlan, conditions: Conditions, zygote: Zygote) -> Run:
    """Examine every notebook of a submission.

    Raises:
        IsolationError: the walls that `conditions` demand cannot be had.
        InfrastructureError: a process of ours failed.
    """
    runs = []
    deadline = time.monotonic() + conditions.submission_timeout_s
    for notebook in plan.notebooks:
        with Examination(plan, notebook, conditions, zygote, deadline) as examination:
            runs.append(examination.run())
    return _merge(runs)


def _merge(runs: Iterable[Run]) -> Run:
    runs = list(runs)
    phases: dict[str, float] = {}
    for run in runs:
        for name, seconds in run.phases_s.items():
            phases[name] = phases.get(name, 0.0) + seconds
    return Run(
        tuple(cell for run in runs for cell in run.cells),
        tuple(test for run in runs for test in run.tests),
        tuple(flag for run in runs for flag in run.flags),
        runs[0].places if runs else (),
        phases,
        sum(run.cpu_s for run in runs),
        sum(run.restarts for run in runs),
    )


class Examination:
    """One notebook: a candidate and an examiner, each of which may have to be replaced on the way."""

    def __init__(
        self, plan: ExamPlan, notebook: NotebookPlan, conditions: Conditions, zygote: Zygote, deadline: float
    ) -> None:
        self._plan = plan
        self._notebook = notebook
        self._conditions = conditions
        self._zygote = zygote
        self._deadline = deadline
        self._kernel: Kernel | None = None
        self._examiner: Child | None = None
        self._control: socket.socket | None = None
        self._killers: set[int] = set()
        self._cells: dict[int, CellRun] = {}
        self._tests: list[TestRun] = []
        self._flags: list[Flag] = []
        self._places: tuple[Place, ...] = ()
        self._phases = {"start": 0.0, "cells": 0.0, "tests": 0.0, "replay": 0.0}
        self._cpu_s = 0.0
        self._restarts = 0
        self._after_hidden = False
        self._lost_names = False

    def __enter__(self) -> Examination:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_candidate()
        self._end_examiner()

    def run(self) -> Run:
        """Go through the steps; everything that a submission can do to itself ends as a value in the `Run`."""
        self._start()
        for step in self._notebook.steps:
            if step.cell_type != "code":
                continue
            if step.role is Role.test:
                self._tests.append(self._test(step))
            else:
                self._cell(step)
        self._end_candidate()
        self._end_examiner()
        cells = tuple(self._cells[position] for position in sorted(self._cells))
        return Run(
            cells, tuple(self._tests), tuple(self._flags), self._places, self._phases, self._cpu_s, self._restarts
        )

    # --- processes ----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        begun = time.monotonic()
        if self._examiner is None:
            ours, theirs = socket.socketpair()
            with theirs:
                self._control = ours
                self._examiner = self._zygote.spawn(self._examiner_spawn(), [theirs.fileno()])
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._kernel = Kernel(self._candidate_start(theirs.fileno()), self._conditions.output_bytes)
            assert self._control is not None
            control.send(self._control, control.Meet(), (ours.fileno(),))
        self._meet()
        self._phases["start"] += time.monotonic() - begun

    def _meet(self) -> None:
        assert self._control is not None and self._kernel is not None and self._examiner is not None
        told = self._answer(_MEET_S)
        if not isinstance(told, control.Met):
            raise InfrastructureError(
                "The examiner did not meet its candidate in time. The examination is tried again."
            )
        if told.lost is not None:
            raise InfrastructureError(f"The candidate was lost before its first cell: {told.lost}. It is tried again.")
        if not self._places:
            walls = {"examiner": self._examiner.walls, "candidate": self._kernel.walls}
            self._places = tuple(_place(one, walls[str(one["role"])]) for one in told.places)

    def _limits(self) -> dict[str, object]:
        return {
            "limits": self._conditions.limits,
            "isolation": self._conditions.isolation,
            "seed": self._conditions.seed,
        }

    def _examiner_spawn(self) -> Spawn:
        return Spawn(
            entry="graders.exam.examiner:main",
            files=self._plan.course_files,
            cache=self._conditions.examiner_cache,
            cache_writable=self._conditions.fill_caches,
            **self._limits(),  # type: ignore[arg-type]
        )

    def _candidate_start(self, channel: int) -> Start:
        return Start(
            files=self._plan.files,
            hook=HOOK,
            options={"output_bytes": self._conditions.output_bytes},
            fds=(channel,),
            outstream=OUTSTREAM,
            cache=self._conditions.candidate_cache,
            cache_writable=self._conditions.fill_caches,
            **self._limits(),  # type: ignore[arg-type]
        )

    def _end_candidate(self) -> None:
        if self._kernel is not None:
            gone = self._kernel.close()
            self._cpu_s += gone.cpu_s if gone else 0.0
            self._kernel = None

    def _end_examiner(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._examiner is not None:
            self._examiner.kill()
            gone = self._examiner.wait(10)
            self._cpu_s += gone.cpu_s if gone else 0.0
            self._examiner.close()
            self._examiner = None

    def _restart(self, before: Step) -> None:
        """A new candidate with the cells before `before` run again, but for those that killed one."""
        self._end_candidate()
        self._restarts += 1
        self._start()
        begun = time.monotonic()
        for step in self._notebook.steps[: before.position]:
            if step.cell_type == "code" and step.role is not Role.test and step.position not in self._killers:
                if not self._execute(step).alive:
                    self._killers.add(step.position)
                    self._phases["replay"] += time.monotonic() - begun
                    return self._restart(before)
        self._phases["replay"] += time.monotonic() - begun
        return None

    # --- cells --------------------------------------------------------------------------------------------------------

    def _left(self) -> float:
        return min(self._conditions.cell_timeout_s, self._deadline - time.monotonic())

    def _execute(self, step: Step) -> CellEnd:
        assert self._kernel is not None
        return self._kernel.run(step.source, max(0.1, self._left()))

    def _cell(self, step: Step) -> None:
        if self._left() <= 0:
            self._cells[step.position] = self._cell_run(step, Ended.budget, self._budget())
            return
        if self._kernel is None:
            self._restart(step)
        begun = time.monotonic()
        end = self._execute(step)
        self._phases["cells"] += time.monotonic() - begun
        if not end.alive:
            self._end_candidate()
            if step.author and self._blame_earlier(step, end):
                self._cell(step)
                return
            self._killers.add(step.position)
        reason = None if end.ended in (Ended.ok, Ended.error) else self._sentence(end.ended)
        self._cells[step.position] = self._cell_run(step, end.ended, reason, end)

    def _cell_run(self, step: Step, ended: Ended, reason: str | None, end: CellEnd | None = None) -> CellRun:
        return CellRun(
            position=step.position,
            id=step.id,
            ended=ended,
            outputs=end.outputs if end else (),
            problem=end.problem if end else None,
            reason=reason,
            after_hidden=self._after_hidden,
            seconds=end.seconds if end else 0.0,
            notebook=self._notebook.name,
        )

    def _blame_earlier(self, step: Step, end: CellEnd) -> bool:
        """A cell of the instructor does not kill: the student's last cell before it left something that did."""
        suspects = [
            one.position
            for one in self._notebook.steps[: step.position]
            if one.cell_type == "code" and not one.author and one.position not in self._killers
        ]
        if not suspects:
            return False
        self._killers.add(suspects[-1])
        run = self._cells[suspects[-1]]
        self._cells[suspects[-1]] = msgspec.structs.replace(run, ended=end.ended, reason=self._sentence(end.ended))
        return True

    # --- tests --------------------------------------------------------------------------------------------------------

    def _test(self, step: Step) -> TestRun:
        identity = step.id or f"cell {step.position}"
        if self._left() <= 0:
            return TestRun(identity, Ended.budget, reason=self._budget())
        names = step.names or control.Names((), ())
        if self._lost_names and names.earlier:
            reason = "An earlier test, whose names this one needs, was lost. A person will look at it."
            return TestRun(identity, Ended.examiner_lost, reason=reason)
        if self._kernel is None:
            self._restart(step)
        assert self._control is not None and self._kernel is not None
        begun = time.monotonic()
        control.send(self._control, control.Examine(identity, step.segments, names))
        told = self._answer(self._left())
        late = told is None
        if late:  # whoever hangs, the candidate goes first; an examiner that waited for it answers at once
            self._kernel.kill()
            told = self._answer(_OVERRUN_S)
        self._phases["tests"] += time.monotonic() - begun
        if not isinstance(told, control.Judged):
            return self._examiner_lost(identity)
        self._after_hidden = self._after_hidden or (told.asked > 0 and any(one.hidden for one in step.segments))
        return self._judged(told, late)

    def _judged(self, told: control.Judged, late: bool) -> TestRun:
        assert self._kernel is not None
        test, printed = told.test, self._kernel.drain()
        ended, reason = test.ended, None
        if late or told.candidate_lost is not None:
            gone = self._kernel.exit()
            ended = Ended.timeout if late else died(gone)
            reason = self._sentence(ended, called=True)
            self._end_candidate()
        return TestRun(
            test.id,
            ended,
            test.checks,
            test.problem,
            test.value,
            test.number,
            test.output + printed,
            reason,
            test.seconds,
        )

    def _answer(self, timeout_s: float) -> control.Told | None:
        assert self._control is not None
        try:
            return control.receive(self._control, timeout_s)[0]
        except EOFError:
            return None

    def _examiner_lost(self, identity: str) -> TestRun:
        self._end_candidate()
        self._end_examiner()
        self._lost_names = True
        return TestRun(identity, Ended.examiner_lost)

    # --- sentences ----------------------------------------------------------------------------------------------------

    def _budget(self) -> str:
        return f"The {self._conditions.submission_timeout_s:g} s for the whole submission were used up before this."

    def _sentence(self, ended: Ended, called: bool = False) -> str:
        subject = "Your code, called by a test," if called else "This cell"
        if ended is Ended.timeout:
            return f"{subject} did not finish within {self._conditions.cell_timeout_s:g} s and was stopped."
        if ended is Ended.memory:
            return f"{subject} used more than {self._conditions.limits.memory_bytes / 2**20:,.0f} MiB of memory and was stopped."
        return f"{subject} ended the Python process it ran in (os._exit, a crash, or a kill)."


def _place(told: dict[str, object], walls: object) -> Place:
    devices = told.get("devices")
    return Place(
        str(told["role"]),
        str(told.get("platform", "")),
        tuple(map(str, devices)) if isinstance(devices, list) else (),
        str(getattr(walls, "level", "")),
        tuple(getattr(walls, "held", ())),
        str(told.get("python", "")),
        str(told.get("jax", "")),
        str(told.get("jaxlib", "")),
    )
