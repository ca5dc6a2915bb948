"""What a born process was doing when its time ran out: its Python stack, which it writes into a pipe on a signal.

Comes in: a signal, also in the middle of compiled code that lets no other line of Python run. Goes out: text. Must not: be
believed. Whoever runs inside can write into the pipe, so a stack is good for advice and never for a score.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graders.kernels.child import Child

SIGNAL = signal.SIGUSR1
_LONGEST = 65536  # what a pipe holds
_WAIT_S = 0.5  # a process that can still be signalled needs less
_PAUSE_S = 0.1  # it is written piece by piece


def write_on_signal(fd: int) -> None:
    """In the process: let the signal write where the main thread is, innermost call first."""
    faulthandler.register(SIGNAL, fd, all_threads=False)


class StackPipe:
    """Our end of the pipe, and until the process is born its end too."""

    def __init__(self) -> None:
        self._ours, self.theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def born(self) -> None:
        """The process has its end; let go of it here."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def ask(self, child: Child) -> str:
        """What the process is doing now, as it says itself; empty when it says nothing."""
        child.ask_stack()
        poller = select.poll()
        poller.register(self._ours, select.POLLIN)
        found, deadline = bytearray(), time.monotonic() + _WAIT_S
        while (left_s := deadline - time.monotonic()) > 0 and len(found) < _LONGEST:
            if not poller.poll(min(left_s, _PAUSE_S if found else left_s) * 1000):
                break
            part = os.read(self._ours, _LONGEST)
            if not part:
                break
            found += part
        return found.decode(errors="replace")

    def close(self) -> None:
        """Let go of both ends. May be called twice."""
        self.born()
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1
