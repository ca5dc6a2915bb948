"""The two processes of one examination: a candidate that runs cells, an examiner that runs tests, and the line between.

Comes in: what the folders hold and under which conditions. Goes out: how cells ended and what tests came to. Must not:
decide what the end of a process means for a score.
"""

from __future__ import annotations

import socket
from typing import Any

from graders.errors import InfrastructureError
from graders.exam import attest, control
from graders.exam.compiling import PLATFORM
from graders.exam.plan import ExamPlan
from graders.kernels import chips
from graders.kernels.births import Exit, Limits, Spawn
from graders.kernels.child import Birth
from graders.kernels.client import CellEnd, Kernel, Start
from graders.kernels.nursery import Child, Nursery
from graders.kernels.stacks import StackPipe
from graders.records import Place, Record
from graders.targets import CANDIDATE, CPU, EXAMINER, Target

HOOK = "graders.exam.candidate:install"
OUTSTREAM = "graders.exam.capped.CappedOutput"
PRELOAD = ("graders.exam.candidate", "graders.exam.examiner", "graders.exam.checker")
_OVERRUN_S = 3.0  # how long an examiner has to answer once its candidate is gone
_EXIT_S = 2.0  # how long after its channel broke a candidate may take to be gone; one that only hung up is ended
_MEET_S = 60.0


class Conditions(Record):
    """What holds for every examination of a course. Caches are folders of compiled programs, read-only inside.

    `slot` is the number of the target's slot that this examination has. `sealed` is whether tests run in the examiner. No solution is in the candidates' cache (see `graders.course.reference`). `seed` seeds random and numpy.random.
    """

    isolation: str
    limits: Limits
    cell_timeout_s: float
    submission_timeout_s: float
    output_bytes: int
    sealed: bool = True
    seed: int = 0
    candidate_cache: str | None = None
    examiner_cache: str | None = None
    fill_caches: bool = False
    unjitted: bool = False
    target: Target = CPU
    slot: int = 0


class Answer(Record):
    """What came back for a test: `judged` is None when the examiner died or never answered; `late` when time ran out.

    `called` is whether student code was asked for more than its names; `lost` whether the candidate went meanwhile; `stack` what
    the candidate was doing when time ran out, or the examiner if that never answered.
    """

    judged: control.Judged | None
    called: bool
    lost: bool
    late: bool
    exit: Exit | None
    printed: str
    stack: str = ""


class Pair:
    """A candidate and an examiner that have met. Either may be lost; `start` replaces what is missing."""

    def __init__(self, plan: ExamPlan, conditions: Conditions, nursery: Nursery) -> None:
        self._plan = plan
        self._conditions = conditions
        self._nursery = nursery
        self._kernel: Kernel | None = None
        self._examiner: Child | None = None
        self._control: socket.socket | None = None
        self._stacks: StackPipe | None = None
        self.places: tuple[Place, ...] = ()
        self.cpu_s = 0.0
        self.peak_bytes = 0

    @property
    def alive(self) -> bool:
        """Whether there is a candidate that can run a cell."""
        return self._kernel is not None

    def start(self) -> None:
        """Bear a candidate, and an examiner if there is none, and let them meet.

        Raises:
            IsolationError: the walls cannot be had.
            InfrastructureError: one of them did not come up.
            AcceleratorError: one of them does not run on what the target asks for.
        """
        birth = self._bear_examiner() if self._examiner is None else None
        ours, theirs = socket.socketpair()
        with ours, theirs:
            try:
                start = self._candidate_start(theirs.fileno())
                self._kernel = Kernel(start, self._conditions.output_bytes, self._nursery_of(CANDIDATE))
            finally:
                self._examiner = birth.child() if birth else self._examiner
            target = self._conditions.target
            meet = control.Meet(target.tolerances, PLATFORM if target.topology else "")
            control.send(self._line(), meet, (ours.fileno(),))
        told = attest.met(self._receive(_MEET_S), self._conditions.target)
        walls = {role: one.walls for role, one in ((EXAMINER, self._examiner), (CANDIDATE, self._kernel)) if one}
        self.places = self.places or tuple(attest.place(one, walls[str(one["role"])]) for one in told.places)

    def _bear_examiner(self) -> Birth:
        self._control, theirs = socket.socketpair()
        self._stacks = StackPipe()
        spawn = Spawn(entry="graders.exam.examiner:main", files=self._plan.course_files, **self._given(EXAMINER))
        with theirs:
            birth = self._nursery_of(EXAMINER).begin(spawn, [theirs.fileno(), self._stacks.theirs])
        self._stacks.born()
        return birth

    def bereft(self) -> bool:
        """Whether the examiner was found dead between two tests; its candidate is then ended too."""
        dead = self._examiner is not None and self._examiner.wait(0) is not None
        if dead:
            self.end()
        return dead

    def run(self, source: str, timeout_s: float, name: str) -> CellEnd:
        """Run one cell in the candidate; a candidate that is dead afterwards is let go of."""
        if self._kernel is None:
            raise InfrastructureError("There is no candidate to run a cell in.")
        end = self._kernel.run(source, timeout_s, name)
        if not end.alive:
            self.end_candidate()
        return end

    def lives(self, wait_s: float) -> bool:
        """Whether the candidate still answers, and does not end within some seconds; a dead one is let go of."""
        if self._kernel is not None:
            self._kernel.drain()
            if self._kernel.exit(max(0.0, wait_s)) is not None:
                self.end_candidate()
        return self.alive

    def ask(self, test: control.Examine, timeout_s: float) -> Answer:
        """Run one test in the examiner. When time runs out the candidate goes first: an examiner that waits for it
        then answers at once, and one that does not is stuck itself and goes too.
        """
        if self._kernel is None:
            raise InfrastructureError("There is no candidate to test.")
        control.send(self._line(), test)
        told = self._receive(timeout_s)
        late = told is None and self._examiner is not None and self._examiner.wait(0) is None
        stack = ""
        if late:
            stack = self._kernel.stack()
            self._kernel.kill()
            told = self._receive(_OVERRUN_S)
            if told is None and self._stacks and self._examiner:
                stack = self._stacks.ask(self._examiner)
        judged = told if isinstance(told, control.Judged) else None
        lost = judged is not None and judged.candidate_lost is not None
        called = judged is None or judged.asked > bool(test.names.candidate)
        exit, printed = self._kernel.exit(_EXIT_S if lost else 0.0), self._kernel.drain() if called or lost else ""
        if judged is None:
            self.end()
        elif late or lost:
            self.end_candidate()
        return Answer(judged, called, lost, late, exit, printed, stack)

    def compiled(self) -> dict[str, float]:
        """Wall seconds of compiling by role, as each process that is still there says itself."""
        if self._control is None or self._kernel is None:
            return {}
        try:
            control.send(self._control, control.Account())
        except InfrastructureError:
            return {}
        told = self._receive(_OVERRUN_S)
        return told.compile_s if isinstance(told, control.Accounted) else {}

    def end_candidate(self) -> None:
        """End the candidate and all inside it."""
        if self._kernel is not None:
            gone = self._kernel.close()
            if gone is not None:
                self.cpu_s += gone.cpu_s
                self.peak_bytes = max(self.peak_bytes, gone.peak_bytes)
            self._kernel = None

    def end(self) -> None:
        """End both, at the same time."""
        if self._examiner is not None:
            self._examiner.kill()
        self.end_candidate()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._stacks is not None:
            self._stacks.close()
            self._stacks = None
        if self._examiner is not None:
            gone = self._examiner.close()
            self.cpu_s += gone.cpu_s if gone else 0.0
            self._examiner = None

    def _nursery_of(self, role: str) -> Nursery:
        if role != self._conditions.target.holder:
            return self._nursery
        if self._nursery.beside is None:
            raise InfrastructureError(
                f"There is no zygote of target {self._conditions.target.name!r} to bear the {role}."
            )
        return self._nursery.beside

    def _line(self) -> socket.socket:
        if self._control is None:
            raise InfrastructureError("There is no examiner to talk to.")
        return self._control

    def _receive(self, timeout_s: float) -> control.Told | None:
        try:
            return control.receive(self._line(), timeout_s)[0]
        except EOFError:
            return None

    def _candidate_start(self, channel: int) -> Start:
        return Start(
            files=self._plan.files,
            hook=HOOK,
            options={"output_bytes": self._conditions.output_bytes, "unjitted": self._conditions.unjitted},
            fds=(channel,),
            outstream=OUTSTREAM,
            **self._given(CANDIDATE),
        )

    def _given(self, role: str) -> dict[str, Any]:
        """What a process of this role is started with."""
        conditions, target = self._conditions, self._conditions.target
        cache = conditions.candidate_cache if role == CANDIDATE else conditions.examiner_cache
        given = {
            "limits": conditions.limits,
            "isolation": conditions.isolation,
            "seed": conditions.seed,
            "cache": cache,
            "cache_writable": conditions.fill_caches,
        }
        # what is in the cache was compiled for the CPU
        return given | chips.given(target, conditions.slot) | {"cache": None} if role == target.holder else given
