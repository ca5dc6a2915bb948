"""The client side: start a zygote, ask it for births, watch and end what was born.

Comes in: `Spawn` records and descriptors. Goes out: `Child`, later its `Exit`.
Must not: import jax (on an accelerator host this process must not take the chip), or wait without a limit.
"""

from __future__ import annotations

import functools
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from types import TracebackType

import msgspec

from graders.errors import GradersError, InfrastructureError, IsolationError
from graders.kernels import xla
from graders.kernels.births import LEVELS, Ended, Exit, Limits, Refused, Spawn, Started, Walls

__all__ = ["LEVELS", "PRELOAD", "Child", "Exit", "Limits", "Spawn", "Walls", "Zygote", "best_level"]

PRELOAD = ("numpy", "jax", "jax.numpy", "jax.export", "graders.kernels.kernel")
_READY_S, _BIRTH_S, _END_S = 120.0, 30.0, 10.0
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG")
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",  # jax 0.9.2 logs two lines per cache hit below that
    "XLA_FLAGS": xla.flags(),
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_FIRST = msgspec.msgpack.Decoder(Started | Refused | Ended)


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

    def interrupt(self) -> None:
        """SIGINT to the born process."""
        self._ask(b"interrupt")

    def kill(self) -> None:
        """End it, with everything inside; `wait` tells when that is done."""
        self._ask(b"kill")

    def wait(self, timeout_s: float | None = None) -> Exit | None:
        """The exit, or None when it still runs after `timeout_s`; without a limit it waits for the end."""
        if self._exit is None and _readable(self._control, timeout_s):
            try:
                data = self._control.recv(65536)
            except ConnectionError:
                data = b""
            message = _FIRST.decode(data) if data else None
            lost = Exit(kind="lost", code=-1, text="the warden of this process ended before it")
            self._exit = message.exit if isinstance(message, Ended) else lost
        return self._exit

    def close(self) -> None:
        """End it if it still runs, wait for that, and let go of the socket. May be called twice."""
        if self._control.fileno() < 0:
            return
        if self._exit is None:
            self.kill()
            self.wait(_END_S)
        self._control.close()

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


class Zygote:
    """A warm process from which others are born in milliseconds. Safe to use from several threads."""

    def __init__(self, preload: Sequence[str] = PRELOAD, path: Sequence[str] = ()) -> None:
        """`preload` names the modules that births find loaded, `path` more folders where the zygote looks for them."""
        names, folders = json.dumps(list(preload)), json.dumps(list(path))
        self._lock = threading.Lock()
        self._ready = False
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_BIRTH_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "graders.kernels.zygote", str(theirs.fileno()), names, folders],
                pass_fds=[theirs.fileno()],
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=self._complaints,
                stderr=self._complaints,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether it can still bear."""
        return self._control.fileno() >= 0 and self._process.poll() is None

    def spawn(self, spawn: Spawn, fds: Sequence[int] = ()) -> Child:
        """Bear one process. `fds` arrive in its entry, in this order, as other numbers.

        Raises:
            IsolationError: the walls asked for cannot be had here.
            InfrastructureError: the zygote is gone, does not answer, or must not fork.
        """
        self._await_ready()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_END_S)
        payload = os.memfd_create("spawn", os.MFD_CLOEXEC)
        try:
            with open(payload, "wb", closefd=False) as file:
                file.write(msgspec.msgpack.encode(spawn))
            os.lseek(payload, 0, os.SEEK_SET)
            socket.send_fds(self._control, [b"b"], [payload, theirs.fileno(), *fds])
            theirs.close()
            return Child(ours, self._first_word(ours, spawn))
        except OSError as error:
            ours.close()
            raise self._failed(f"could not be asked for a birth ({error})") from error
        except GradersError:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(payload)

    def _first_word(self, control: socket.socket, spawn: Spawn) -> Started:
        data = control.recv(65536) if _readable(control, _BIRTH_S) else None
        if not data:
            what = f"said nothing for {_BIRTH_S:.0f} s" if data is None else "ended during a birth"
            raise self._failed(what)
        message = _FIRST.decode(data)
        if isinstance(message, Started):
            return message
        text = message.text if isinstance(message, Refused) else message.exit.text or message.exit.kind
        if isinstance(message, Refused) and message.isolation:
            raise IsolationError(
                f"The walls of level '{spawn.isolation}' could not be put up on this machine: {text}. Wanted: "
                f"{_WANTED[spawn.isolation]}. Run `graders doctor` to see which walls hold here, or set "
                f"c.Graders.isolation in course_config.py to a level that this machine allows."
            )
        raise InfrastructureError(f"A process for {spawn.entry} did not start: {text}. Try again; then see its text.")

    def _await_ready(self) -> None:
        with self._lock:
            if self._ready:
                return
            if self._control.fileno() < 0:
                raise self._failed("is closed")
            word = (
                self._control.recv(8192) if _readable(self._control, _READY_S) else b"no answer while it was starting"
            )
            if word != b"ready":
                raise self._failed(word.decode(errors="replace") or "ended while it was starting")
            self._ready = True

    def _failed(self, what: str) -> InfrastructureError:
        tail = b""
        if not self._complaints.closed:
            size = os.fstat(self._complaints.fileno()).st_size
            tail = os.pread(self._complaints.fileno(), 2000, max(0, size - 2000))
        last = f" It last wrote: {tail.decode(errors='replace').strip()}" if tail.strip() else ""
        return InfrastructureError(
            f"The zygote, from which kernels are forked, {what}.{last} Start a new one and try again."
        )

    def close(self) -> None:
        """End it; everything born of it ends with it. May be called twice."""
        self._control.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_S)
        self._complaints.close()

    def __enter__(self) -> Zygote:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_WANTED = {
    "namespaces": "Linux 5.12 or newer that lets this user make user, mount, PID, network and IPC namespaces",
    "process": "Linux with seccomp on x86_64 or aarch64",
}


@functools.cache
def best_level() -> str:
    """The strongest level that this machine lets us put up, found by trying."""
    with Zygote(preload=()) as zygote:
        for level in reversed(LEVELS):
            try:
                zygote.spawn(Spawn(entry="builtins:print", isolation=level)).close()
            except IsolationError:
                continue
            return level
    raise IsolationError("Neither level of walls can be put up on this machine. Wanted: Linux on x86_64 or aarch64.")


def _readable(control: socket.socket, timeout_s: float | None) -> bool:
    poller = select.poll()
    poller.register(control, select.POLLIN)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    return bool(poller.poll(left))
