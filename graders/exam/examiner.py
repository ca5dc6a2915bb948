"""The process in which the instructor's tests run. It never runs a line of student Python.

Comes in: test cells over the control socket; names of the candidate over the channel. Goes out: one `Judged` a test.
Must not: import anything from the submission, or tell the candidate more than the calls that a test makes.
"""

from __future__ import annotations

import builtins
import io
import linecache
import math
import random
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from graders import compare, tolerances
from graders.checks import Recorder, recording
from graders.exam import compiletime, control, testcode
from graders.exam.exported import Notes
from graders.exam.peer import ChannelLost, Peer, place
from graders.exam.plan import Segment
from graders.kernels import birth, stacks
from graders.runs import Ended, Problem, TestRun

_OUTPUT_CHARS = 100_000
_MISSING = object()
# What student code may do with a callable or object that a test hands to it.
_GRANTED = {"call", "apply", "export", "getitem", "len", "iter", "next", "contains", "bool"}
_OWN_MODULE = "__main__"
# Library objects whose attributes are plain data and harmless methods.
_OPEN = (
    SimpleNamespace,
    random.Random,
    np.random.Generator,
    np.random.RandomState,
    io.StringIO,
    io.BytesIO,
    Decimal,
    Fraction,
)


def main(argument: dict[str, Any], fds: list[int]) -> None:
    """Serve the control socket `fds[0]` until it closes. `fds[1]` is for the stack."""
    stacks.write_on_signal(fds[1])
    compiletime.count()
    channel = socket.socket(fileno=fds[0])
    examiner = Examiner()
    birth.opened()
    while True:
        try:
            told, received = control.receive(channel)
        except EOFError:
            return
        if isinstance(told, control.Meet):
            control.send(channel, examiner.meet(socket.socket(fileno=received[0]), told.tolerances, told.elsewhere))
        elif isinstance(told, control.Examine):
            control.send(channel, examiner.examine(told))
        elif isinstance(told, control.Account):
            control.send(channel, examiner.account())


def grants(op: str, attribute: str, target: Any) -> bool:
    """Whether student code may do this with an object that a test handed to it.

    Attributes only of instances of the tests' own classes and of some that are plain data: from a generator's or a function's attributes the way leads
    to frames, and from there to everything.
    """
    own = type(target).__module__ == _OWN_MODULE and not isinstance(target, type)
    return op in _GRANTED or (op == "attr" and (own or isinstance(target, _OPEN)) and not attribute.startswith("_"))


class Capture(io.StringIO):
    """What a test prints, up to a limit."""

    def write(self, text: str) -> int:
        if self.tell() < _OUTPUT_CHARS:
            super().write(text[:_OUTPUT_CHARS])
        return len(text)


class Examiner:
    """Runs the tests of one notebook in one namespace, against one candidate at a time."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"__name__": _OWN_MODULE, "__builtins__": builtins}
        self._peer: Peer | None = None
        self._fetched: dict[str, Any] = {}
        self._notes = Notes()
        self._tolerances = tolerances.CPU

    def meet(self, channel: socket.socket, profile: str, elsewhere: str = "") -> control.Met:
        """Talk to this candidate from now on, and compare its values by this profile; say where both processes run."""
        self._tolerances = profile
        if self._peer is not None:
            self._peer.channel.close()
        self._peer = Peer(channel, 2, allows=grants, tell=False)
        self._peer.on_rebound = self._rebind
        self._peer.elsewhere = elsewhere
        own: dict[str, object] = {"role": "examiner"} | place()
        try:
            told = self._peer.ask("place")
        except ChannelLost as lost:
            return control.Met((own,), str(lost))
        other: dict[str, object] = {}
        if isinstance(told, dict):
            other = {str(k): v if isinstance(v, (str, list)) else str(v) for k, v in told.items()}
        return control.Met((own, other | {"role": "candidate"}))

    def account(self) -> control.Accounted:
        """What both processes have compiled."""
        return control.Accounted(compiletime.of_both(self._peer))

    def examine(self, told: control.Examine) -> control.Judged:
        """Run one test: every segment in order; a visible part that fails does not keep the hidden checks from running."""
        start, asked = time.perf_counter(), self._peer.asked if self._peer else 0
        output, lost = Capture(), None
        problem: Problem | None = None
        value: Any = None
        with recording(self._tolerances) as recorder, redirect_stdout(output), redirect_stderr(output):
            try:
                self._prepare(told)
                for segment, code in zip(told.segments, told.code, strict=True):
                    with self._notes.part(hidden=segment.hidden):
                        value, failed = self._run(told.id, segment, code)
                    problem = problem or failed
                    if failed is not None and segment.hidden:
                        break
            except ChannelLost as error:
                lost = str(error)
        test = self._judged(told.id, recorder, problem, value, output, lost, time.perf_counter() - start)
        return control.Judged(test, (self._peer.asked if self._peer else 0) - asked, lost, self._notes.take())

    def _prepare(self, told: control.Examine) -> None:
        for statement in told.names.imports:
            exec(compile(statement, "<imports>", "exec"), self.namespace)  # the author's own import statement
        self._fetched = dict.fromkeys(told.names.candidate, _MISSING)
        for name in told.names.candidate:
            self.namespace.pop(name, None)
        for name, value in self._fetch(told.names.candidate).items():
            self._rebind(name, value)
        if self._peer is not None:
            self._notes.watch(self._peer, self._fetched)

    def _fetch(self, names: Sequence[str]) -> dict[str, Any]:
        """The values of these names; one that cannot cross is told in the output and keeps no other from crossing."""
        if self._peer is None or not names:
            return {}
        try:
            found = self._peer.ask("names", 0, *names)
        except Exception as error:
            if len(names) > 1:
                return {name: one for each in names for name, one in self._fetch([each]).items()}
            sys.stdout.write(f"{names[0]} could not be read: {error}\n")
            return {}
        return found if isinstance(found, dict) else {}

    def _rebind(self, name: str, value: Any) -> None:
        """Student code bound one of its names anew while the test runs.

        A name that the test did not ask for, or took over since, stays the test's own.
        """
        if name in self._fetched and self.namespace.get(name, _MISSING) is self._fetched[name]:
            self.namespace[name] = self._fetched[name] = value

    def _run(self, name: str, segment: Segment, code: bytes) -> tuple[Any, Problem | None]:
        filename = testcode.filename(name, segment)
        linecache.cache[filename] = (len(segment.source), None, segment.source.splitlines(keepends=True), filename)
        try:
            body, last = testcode.unpacked(name, segment, code)
            exec(body, self.namespace)  # the author's own test
            return (eval(last, self.namespace) if last else None), None
        except ChannelLost:
            raise
        except BaseException as error:
            return None, _problem(error)

    def _judged(
        self,
        name: str,
        recorder: Recorder,
        problem: Problem | None,
        value: Any,
        output: Capture,
        lost: str | None,
        seconds: float,
    ) -> TestRun:
        return TestRun(
            id=name,
            ended=Ended.died if lost else Ended.error if problem else Ended.ok,
            checks=tuple(recorder.checks),
            problem=problem,
            value=None if value is None else _utf8(compare.show(value)),
            number=number(value),
            output=_utf8(output.getvalue()),
            seconds=seconds,
        )


def number(value: Any) -> Decimal | None:
    """The exact value of a finite real number, whatever type carries it; None for everything else, booleans included."""
    if isinstance(value, (np.generic, np.ndarray, jax.Array)):
        plain = value.ndim == 0 and not jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended)
        value = value.item() if plain and value.dtype.kind in "iufV" else None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, int):
        return Decimal(value)
    return Decimal(repr(value)) if math.isfinite(value) else None


def _problem(error: BaseException) -> Problem:
    told = "".join(traceback.format_exception(error, limit=-6))
    try:
        message = str(error)
    except Exception:
        message = ""
    return Problem(type(error).__name__, _utf8(message)[:20_000], _utf8(told)[-20_000:])


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
