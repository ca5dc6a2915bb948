"""A process of ours that ends with the one that started it, even if that one is killed: a lock that is free is then free of writers too.

Comes in: nothing. Goes out: nothing. Must not: leave a worker that grades on for nobody.
"""

from __future__ import annotations

import multiprocessing
import os
import signal

from graders.kernels import syscalls


def end_with_parent() -> None:
    """Ask the system to kill this child of `multiprocessing` once its parent has ended, and end now if it has already."""
    syscalls.die_with_parent(signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(1)
