"""One born process, as its client holds it, and how that client asks for it.

Comes in: `Spawn` records and descriptors. Goes out: `Child`, later its `Exit`. Must not: wait without a limit, or start
anything itself: what bears is a zygote (see `nursery`), which this process may own or share.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Sequence
from types import TracebackType

import msgspec

from graders.errors import GradersError, InfrastructureError, IsolationError
from graders.kernels.births import Ended, Exit, Refused, Spawn, Started

BIRTH_S, END_S = 30.0, 10.0
_FIRST = msgspec.msgpack.Decoder(Started | Refused | Ended)
_WANTED = {
    "namespaces": "Linux 5.12 or newer that lets this user make user, mount, PID, network and IPC namespaces",
    "process": "Linux with seccomp on x86_64 or aarch64",
}


class Child:
    """One born process behind its walls, held by the socket to its warden. Closing it ends it."""

    def __init__(self, control: socket.socket, started: Started) -> None:
        self.walls = started.walls
        self._control = control
        self._exit: Exit | None = None
        self.pid = started.pid

    def fileno(self) -> int:
        """Readable once the process has ended."""
        return self._control.fileno()

    def ask_stack(self) -> None:
        """The signal on which the born process writes its stack, if it does."""
        self._ask(b"stack")

    def interrupt(self) -> None:
        """SIGINT to the born process."""
        self._ask(b"interrupt")

    def kill(self) -> None:
        """End it, with everything inside; `wait` tells when that is done."""
        self._ask(b"kill")

    def wait(self, timeout_s: float | None = None) -> Exit | None:
        """The exit, or None when it still runs after `timeout_s`; without a limit it waits for the end."""
        if self._exit is None and readable(self._control, timeout_s):
            try:
                data = self._control.recv(65536)
            except ConnectionError:
                data = b""
            message = _FIRST.decode(data) if data else None
            lost = Exit(kind="lost", code=-1, text="the warden of this process ended before it")
            self._exit = message.exit if isinstance(message, Ended) else lost
        return self._exit

    def close(self) -> Exit | None:
        """End it if it still runs, wait for that, and let go of the socket; how it ended, if that was told. May be called twice."""
        if self._control.fileno() >= 0:
            if self._exit is None:
                self.kill()
                self.wait(END_S)
            self._control.close()
        return self._exit

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, word: bytes) -> None:
        try:
            self._control.send(word)
        except OSError:
            return  # it has ended already


class Birth:
    """A process that was asked for and may not be there yet."""

    def __init__(self, control: socket.socket, spawn: Spawn) -> None:
        self._control, self._spawn = control, spawn

    def child(self) -> Child:
        """The process, once its walls stand.

        Raises:
            IsolationError: the walls asked for cannot be had here.
            InfrastructureError: the zygote is gone, does not answer, or must not fork.
        """
        try:
            return Child(self._control, self._first_word())
        except OSError as error:
            self._control.close()
            raise _failed(f"did not say how a birth went ({error})") from error
        except GradersError:
            self._control.close()
            raise

    def _first_word(self) -> Started:
        data = self._control.recv(65536) if readable(self._control, BIRTH_S) else None
        if not data:
            raise _failed(f"said nothing for {BIRTH_S:.0f} s" if data is None else "ended during a birth")
        message = _FIRST.decode(data)
        if isinstance(message, Started):
            return message
        text = message.text if isinstance(message, Refused) else message.exit.text or message.exit.kind
        if isinstance(message, Refused) and message.isolation:
            raise IsolationError(
                f"The walls of level '{self._spawn.isolation}' could not be put up on this machine: {text}. Wanted: "
                f"{_WANTED[self._spawn.isolation]}. Run `graders doctor` to see which walls hold here, or set "
                f"c.Graders.isolation in course_config.py to a level that this machine allows."
            )
        raise InfrastructureError(
            f"A process for {self._spawn.entry} did not start: {text}. Try again; then see its text."
        )


class Nursery:
    """Where births are asked for: one end of a zygote's control socket. Several processes may hold it.

    `cpu` is the processor that everything born for this holder is bound to; None lets them run anywhere. `beside` is where the
    process that holds an accelerator is born, if a target has one: JAX reads its platform when it is imported.
    """

    def __init__(self, control: socket.socket, cpu: int | None = None, beside: Nursery | None = None) -> None:
        control.settimeout(BIRTH_S)
        self._control = control
        self._cpu = cpu
        self.beside = beside

    @property
    def control(self) -> socket.socket:
        """The socket, which `multiprocessing` can hand to another process for a `Nursery` there."""
        return self._control

    @property
    def alive(self) -> bool:
        """Whether there is a zygote at the other end."""
        if self._control.fileno() < 0 or (self.beside is not None and not self.beside.alive):
            return False
        poller = select.poll()
        poller.register(self._control, select.POLLHUP)
        return not poller.poll(0)

    def spawn(self, spawn: Spawn, fds: Sequence[int] = (), *, anywhere: bool = False) -> Child:
        """Bear one process and wait for it: `begin` and `Birth.child`, which raise the same."""
        return self.begin(spawn, fds, anywhere=anywhere).child()

    def begin(self, spawn: Spawn, fds: Sequence[int] = (), *, anywhere: bool = False) -> Birth:
        """Ask for one process. `fds` arrive in its entry, in this order, as other numbers. `anywhere`: on any processor.

        Raises:
            InfrastructureError: the zygote is gone.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(END_S)
        payload = os.memfd_create("spawn", os.MFD_CLOEXEC)
        try:
            with open(payload, "wb", closefd=False) as file:
                file.write(msgspec.msgpack.encode(msgspec.structs.replace(spawn, cpu=None if anywhere else self._cpu)))
            os.lseek(payload, 0, os.SEEK_SET)
            socket.send_fds(self._control, [b"b"], [payload, theirs.fileno(), *fds])
            return Birth(ours, spawn)
        except OSError as error:
            ours.close()
            raise _failed(f"could not be asked for a birth ({error})") from error
        finally:
            theirs.close()
            os.close(payload)


def _failed(what: str) -> InfrastructureError:
    return InfrastructureError(f"The zygote, from which kernels are forked, {what}. Start a new one and try again.")


def readable(control: socket.socket, timeout_s: float | None) -> bool:
    """Whether there is something to read within `timeout_s`; without a limit it waits."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    return bool(poller.poll(left))
