"""Laws of stacks: a process says where it is even when it can do nothing else, and whatever it says, nobody waits for it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from graders.kernels.stacks import SIGNAL, StackPipe

BUSY = """
import sys
from graders.kernels.stacks import write_on_signal
write_on_signal(int(sys.argv[1]))
def deep():
    print(flush=True)
    return sum(range(10**11))  # one call into C, which lets no other line of Python run
deep()
"""


class Process:
    """A process that is asked by a signal, as a warden does it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def ask_stack(self) -> None:
        """Send the signal."""
        os.kill(self.pid, SIGNAL)


class Scribbler:
    """A process that writes what it likes, when it is asked and ever after."""

    def __init__(self, pipe: StackPipe, part: bytes, pause_s: float) -> None:
        self._stop = threading.Event()
        self._end = os.dup(pipe.theirs)
        self._thread = threading.Thread(target=self._write, args=(part, pause_s))

    def ask_stack(self) -> None:
        """Begin."""
        self._thread.start()

    def _write(self, part: bytes, pause_s: float) -> None:
        while not self._stop.wait(pause_s):
            with contextlib.suppress(BlockingIOError):
                os.write(self._end, part)

    def close(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join()
        os.close(self._end)


def test_a_process_inside_one_long_call_says_where_it_is() -> None:
    """The innermost call stands first, although no other line of Python runs."""
    pipe = StackPipe()
    command = [sys.executable, "-c", BUSY, str(pipe.theirs)]
    with subprocess.Popen(command, pass_fds=[pipe.theirs], stdout=subprocess.PIPE) as process:
        pipe.born()
        process.stdout.readline()
        told = pipe.ask(Process(process.pid))
        process.send_signal(signal.SIGKILL)
    pipe.close()
    assert [line.split()[-1] for line in told.splitlines() if " in " in line] == ["deep", "<module>"]


@pytest.mark.parametrize(("part", "pause_s"), [(b"x", 0.02), (b"x" * 65536, 0.0), (b"\xff\x00", 10.0)])
def test_whatever_is_written_nobody_waits_for_it(part: bytes, pause_s: float) -> None:
    """Who writes drop by drop, without end, or nothing, is listened to for about half a second and no more than a pipe holds."""
    pipe = StackPipe()
    process = Scribbler(pipe, part, pause_s)
    begun = time.monotonic()
    told = pipe.ask(process)
    took = time.monotonic() - begun
    process.close()
    pipe.close()
    assert took < 2
    assert len(told) <= 2 * 65536
