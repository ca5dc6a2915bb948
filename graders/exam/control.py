"""What pipeline, examiner and checker tell each other. Both ends are ours; the records are checked all the same.

Comes in: records. Goes out: frames on a socket. Must not: import jax, since the pipeline does not.
"""

from __future__ import annotations

import array
import select
import socket
import struct
import time
from typing import Annotated

import msgspec
from msgspec import Meta

from graders.compilations import CompileOutcome, Figures
from graders.errors import InfrastructureError
from graders.exam import wire
from graders.exam.ownership import Names
from graders.exam.plan import Segment
from graders.records import Record
from graders.runs import TestRun

_HEADER = struct.Struct("!Q")
_MAX_BYTES = 64 * 2**20


class Meet(Record, tag="meet"):
    """A new candidate: its channel comes along as a descriptor. Its values are compared by this profile of tolerances.

    The target decides the profile. What the candidate says of its platform is compared with the target and decides nothing.
    Programs are wanted for the platform `elsewhere` too.
    """

    tolerances: str = "cpu"
    elsewhere: str = ""


class Examine(Record, tag="examine"):
    """Run one test cell. `code` is that of each segment as `testcode.packed` makes it."""

    id: str
    segments: tuple[Segment, ...]
    names: Names
    code: tuple[bytes, ...]


class Exported(Record):
    """One program of a student for another platform. `function` is its name in the test, "" where it has none there.

    `arguments` are the avals in words. `transformed` are the transformations that it went through, first to last. `shown` is whether the
    part of the test that students see uses it, so that its shapes are no secret.
    """

    function: str
    arguments: tuple[str, ...]
    transformed: tuple[str, ...]
    avals: tuple[wire.Aval, ...]
    lowered: wire.Lowered
    shown: bool


class Judged(Record, tag="judged"):
    """What came of a test. `candidate_lost` says that the channel broke while it ran; `asked` counts questions to it."""

    test: TestRun
    asked: int = 0
    candidate_lost: str | None = None
    programs: tuple[Exported, ...] = ()


class Account(Record, tag="account"):
    """Say what was compiled."""


class Accounted(Record, tag="accounted"):
    """Wall seconds of compiling by role; no candidate where it did not answer."""

    compile_s: dict[str, float]


class Met(Record, tag="met"):
    """Both processes as they describe themselves: (role, platform, devices, python, jax, jaxlib)."""

    places: tuple[dict[str, object], ...]
    lost: str | None = None


class Ready(Record, tag="ready"):
    """First word of a checker: it can compile, or the `problem` that keeps it from that."""

    problem: str = ""


class Compile(Record, tag="compile"):
    """Compile this program, made for arguments of these avals."""

    program: bytes
    avals: tuple[wire.Aval, ...]


class Compiled(Record, tag="compiled"):
    """What came of it."""

    outcome: CompileOutcome
    reason: Annotated[str, Meta(max_length=2_000)] = ""
    figures: Figures | None = None


Told = Meet | Examine | Judged | Account | Accounted | Met | Ready | Compile | Compiled
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Told)


def send(control: socket.socket, record: Told, fds: tuple[int, ...] = ()) -> None:
    """Write one record, with descriptors if any. Raises `InfrastructureError` when nobody listens."""
    data = _encoder.encode(record)
    try:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        control.sendmsg([_HEADER.pack(len(data))], ancillary)
        control.sendall(data)
    except OSError as error:
        raise InfrastructureError(f"The other process has gone ({error.strerror}).") from None


def receive(control: socket.socket, timeout_s: float | None = None) -> tuple[Told | None, list[int]]:
    """Read one record and the descriptors that came with it; (None, []) after `timeout_s`.

    Raises:
        EOFError: the other side is gone, or sent what is no record.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    if not _readable(control, deadline):
        return None, []
    try:
        header, fds, _, _ = socket.recv_fds(control, _HEADER.size, 4)
        size = _HEADER.unpack(header)[0] if len(header) == _HEADER.size else _MAX_BYTES + 1
        if size > _MAX_BYTES:
            raise EOFError("no more records")
        data = bytearray()
        while len(data) < size:
            if not _readable(control, deadline):
                return None, []
            part = control.recv(min(size - len(data), 2**20))
            if not part:
                raise EOFError("no more records")
            data += part
        return _decoder.decode(bytes(data)), list(fds)
    except (ConnectionError, msgspec.MsgspecError) as error:
        raise EOFError(str(error)) from None


def _readable(control: socket.socket, deadline: float | None) -> bool:
    poller = select.poll()  # not select(): descriptors may be numbered beyond 1024
    poller.register(control, select.POLLIN)
    left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    return bool(poller.poll(left))
