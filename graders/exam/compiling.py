"""What becomes of a submission's programs on a TPU: one checker for one submission, which starts with its first program.

Comes in: what examiners noted. Goes out: a `Compilation`. Must not: import jax, lose a submission, or let a checker that dies, hangs
or lies be more than an entry.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from types import TracebackType

from graders.compilations import Compilation, CompiledProgram, CompileOutcome
from graders.errors import GradersError, InfrastructureError
from graders.exam import control
from graders.exam.topologies import chip_of
from graders.kernels import chips, tpucompiler
from graders.kernels.births import Exit, Limits, Spawn
from graders.kernels.nursery import Child, Nursery
from graders.targets import TPU_ENVIRONMENT

PLATFORM = "tpu"
ENTRY = "graders.exam.checker:main"
MOST = 8  # programs of one submission
START_S, COMPILE_S = 30.0, 20.0  # for a checker to be ready, and for all programs of a submission
_OWN_BYTES = 512 * 2**20  # resident, of the compiler itself
_LOST = "could not be compiled here: "


class Compiling:
    """The programs of one submission. Ends its checker when left."""

    def __init__(self, topology: str, isolation: str, limits: Limits, nursery: Nursery) -> None:
        self._topology = topology
        self._chip = chip_of(topology)
        self._isolation = isolation
        self._limits = limits
        self._nursery = nursery
        self._wanted: dict[tuple[object, object], tuple[str, control.Exported]] = {}
        self._checker: Child | None = None
        self._line: socket.socket | None = None
        self._compiler = ""
        self._problem: str | None = None
        self.cpu_s = 0.0

    def add(self, test: str, programs: Sequence[control.Exported]) -> None:
        """Take what a test noted: each function once for each transformation, with shapes that students see if there are such.

        With the first program the checker starts, and gets ready while tests go on.
        """
        for one in programs:
            key = (one.function or one.lowered.program, one.transformed)
            if key not in self._wanted or (one.shown and not self._wanted[key][1].shown):
                self._wanted[key] = (test, one)
        if programs and self._checker is None and self._problem is None:
            self._start()

    def finish(self) -> Compilation:
        """Compile what was taken: what students may read of first, then in the order of the tests."""
        start = time.monotonic()
        chosen = sorted(self._wanted.values(), key=lambda one: not one[1].shown)
        if self._line is not None:
            self._await_ready()
        made = [self._made(test, one, start + COMPILE_S) for test, one in chosen[:MOST]]
        self.end()
        return Compilation(
            topology=self._topology,
            chip=self._chip.name,
            peak=self._chip.peak,
            bandwidth=self._chip.bandwidth,
            compiler=self._compiler,
            wall_s=round(time.monotonic() - start, 3),
            programs=tuple(made),
            left_out=len(chosen[MOST:]),
            problem=self._problem,
        )

    def end(self) -> None:
        """End the checker, if there is one. May be called twice."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._checker is not None:
            gone = self._checker.close()
            self.cpu_s += gone.cpu_s if gone else 0.0
            self._checker = None

    def __enter__(self) -> Compiling:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _start(self) -> None:
        line, theirs = socket.socketpair()
        line.settimeout(COMPILE_S)  # a checker that no longer reads must not hold up who writes to it
        try:
            with theirs:
                library = tpucompiler.find()
                self._compiler = f"libtpu {library.version}"
                spawn = self._spawn(library.path)
                # beside candidate and examiner, which share one processor: it starts while they work
                self._checker = self._nursery.spawn(spawn, [theirs.fileno()], anywhere=True)
            self._line = line
        except GradersError as error:
            line.close()
            self._problem = str(error)

    def _spawn(self, library: str) -> Spawn:
        return Spawn(
            entry=ENTRY,
            argument={"topology": self._topology},
            isolation=self._isolation,
            limits=Limits(self._limits.memory_bytes + _OWN_BYTES, self._limits.disk_bytes, self._limits.processes),
            environment=TPU_ENVIRONMENT | {"TPU_ACCELERATOR_TYPE": self._chip.accelerator, chips.NAME: library},
            readable=tpucompiler.readable(library),
        )

    def _await_ready(self) -> None:
        told, why = self._receive(time.monotonic() + START_S)
        if not isinstance(told, control.Ready) or told.problem:
            self._problem = (
                f"The TPU compiler did not start: {told.problem if isinstance(told, control.Ready) else why}."
            )
            self.end()

    def _made(self, test: str, one: control.Exported, deadline: float) -> CompiledProgram:
        found = self._compiled(one, deadline)
        return CompiledProgram(
            test, one.function, one.arguments, one.transformed, one.shown, found.outcome, found.reason, found.figures
        )

    def _compiled(self, one: control.Exported, deadline: float) -> control.Compiled:
        if one.lowered.problem:
            return control.Compiled(CompileOutcome.refused, f"it does not lower for a TPU: {one.lowered.problem}")
        if self._line is None:
            return _lost(self._problem or "the compiler had been ended by an earlier program")
        try:
            control.send(self._line, control.Compile(one.lowered.program, one.avals))
            told, why = self._receive(deadline)
        except InfrastructureError:
            told, why = None, self._ending()
        if isinstance(told, control.Compiled):
            return told
        self.end()
        return _lost(why)

    def _receive(self, deadline: float) -> tuple[control.Told | None, str]:
        """The checker's word, or why there is none."""
        if self._line is None:
            return None, "there is no compiler"
        try:
            told, _ = control.receive(self._line, max(0.0, deadline - time.monotonic()))
        except (EOFError, TimeoutError):
            return None, self._ending()
        return told, "it took too long" if told is None else "the compiler answered what nobody asked"

    def _ending(self) -> str:
        gone: Exit | None = self._checker.wait(2.0) if self._checker else None
        if gone is None:
            return "the compiler no longer answered"
        if gone.kind == "memory":
            return "the compiler needed too much memory"
        return f"the compiler ended ({gone.kind} {gone.code}) {gone.text}".strip()


def _lost(why: str) -> control.Compiled:
    return control.Compiled(CompileOutcome.lost, (_LOST + why)[:2000])
