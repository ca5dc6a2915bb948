"""Start a zygote, and know which walls can be had here.

Comes in: names of modules to preload. Goes out: a `Zygote`, which is the `Nursery` of the process that owns it.
Must not: import jax (on an accelerator host this process must not take the chip).
"""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType

from graders.errors import InfrastructureError, IsolationError
from graders.kernels import xla
from graders.kernels.births import LEVELS, Exit, Limits, Spawn, Walls
from graders.kernels.child import END_S, Birth, Child, Nursery, readable

__all__ = ["LEVELS", "PRELOAD", "Child", "Exit", "Limits", "Nursery", "Spawn", "Walls", "Zygote", "best_level"]

PRELOAD = ("numpy", "jax", "jax.numpy", "jax.export", "graders.kernels.kernel")
_READY_S = 120.0
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG")
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS": "0",  # 1.5 % of an examination, for nobody to read
    # IPython reads all of a file to show a line of it: 0.8 CPU-s for the first error inside JAX, and its own frames tell a student nothing
    "JAX_TRACEBACK_FILTERING": "quiet_remove_frames",
    "TF_CPP_MIN_LOG_LEVEL": "3",  # jax 0.9.2 logs two lines per cache hit below that
    "XLA_FLAGS": xla.flags(),
    "GLIBC_TUNABLES": "glibc.malloc.arena_max=1",  # one heap for all threads: 1 % of an examination, in page faults
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Zygote(Nursery):
    """A warm process from which others are born in milliseconds. Safe to use from several threads."""

    def __init__(
        self,
        preload: Sequence[str] = PRELOAD,
        path: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        beside: Zygote | None = None,
    ) -> None:
        """`preload` names the modules that births find loaded, `path` more folders where the zygote looks for them.

        `environment` is set over the usual before it starts. What is `beside` it starts and ends with it.
        """
        names, folders = json.dumps(list(preload)), json.dumps(list(path))
        self._lock = threading.Lock()
        self._ready = False
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(control, beside=beside)
        self._beside = beside
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "graders.kernels.zygote", str(theirs.fileno()), names, folders],
                pass_fds=[theirs.fileno()],
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ}
                | _ENVIRONMENT
                | dict(environment or {}),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=self._complaints,
                stderr=self._complaints,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether it can still bear."""
        return super().alive and self._process.poll() is None

    def begin(self, spawn: Spawn, fds: Sequence[int] = (), *, anywhere: bool = False) -> Birth:
        """As `Nursery.begin`, once the zygote is warm."""
        self.await_ready()
        return super().begin(spawn, fds, anywhere=anywhere)

    def await_ready(self) -> None:
        """Wait until it, and what is beside it, can bear. Raises `InfrastructureError` when it cannot, with what it said about that."""
        if self._beside is not None:
            self._beside.await_ready()
        with self._lock:
            if self._ready:
                return
            if self._control.fileno() < 0:
                raise self._failed("is closed")
            word = self._control.recv(8192) if readable(self._control, _READY_S) else b"no answer while it was starting"
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
        if self._beside is not None:
            self._beside.close()
        self._control.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_S)
        self._complaints.close()

    def __enter__(self) -> Zygote:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
