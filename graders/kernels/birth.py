"""The inner process between the fork and its entry: shed what was inherited, go inside the walls, call the entry.

Comes in: a `Spawn`, the descriptors to keep, the warden's report socket. Goes out: nothing, it never returns.
Must not: keep any descriptor but the named ones, or leave the report socket to code that is not ours (see `opened`).
"""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn

import msgspec

from graders.kernels import newroot, sandbox, stacks, syscalls
from graders.kernels.births import Refused, Spawn, Started, Walls

_NICENESS = 5  # so that the warden gets to run beside a busy candidate
_TEXT = 8000
_NEVER_S = 1e9
# Objects between two looks for garbage, not 700: tracing makes many that live as long as the program, 5 % of an examination
_GARBAGE = 20_000
_report: socket.socket | None = None


def opened() -> None:
    """Called by an entry once it is up: from here on the warden takes no report, so foreign code cannot forge one."""
    global _report
    if _report is not None:
        _report.close()
        _report = None


def run(spawn: Spawn, report: socket.socket, fds: Sequence[int], put_up: Callable[[], Walls]) -> NoReturn:
    """Become the born process. `put_up` raises the walls and says which."""
    global _report
    _report = report
    try:
        _shed([report.fileno(), *fds])
        os.nice(_NICENESS)
        syscalls.refuse_large_pages()
        walls = _walls(put_up)
        _seed(spawn.seed)
        _use_cache(spawn)
        report.send(msgspec.msgpack.encode(Started(pid=os.getpid(), walls=walls)))
        gc.enable()
        gc.set_threshold(_GARBAGE)
        module, _, function = spawn.entry.partition(":")
        getattr(importlib.import_module(module), function)(spawn.argument, list(fds))
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        _tell(Refused(isolation=False, text=traceback.format_exc()[-_TEXT:]))
        code = 1
    os._exit(code)  # no atexit, no finalisers: nothing of the zygote's may run twice


def _walls(put_up: Callable[[], Walls]) -> Walls:
    try:
        return put_up()
    except OSError as error:
        _tell(Refused(isolation=True, text=str(error)))
        os._exit(1)


def _tell(refusal: Refused) -> None:
    if _report is not None:
        try:
            _report.send(msgspec.msgpack.encode(refusal))
        except OSError:
            os._exit(1)  # nobody listens any more


def _shed(keep: Sequence[int]) -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, stacks.SIGNAL):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    close_all_but(keep)


def close_all_but(keep: Sequence[int]) -> None:
    """Close every descriptor above the standard ones that is not named."""
    low = 3
    for number in [*sorted(set(keep)), 1 << 20]:
        os.closerange(low, number)
        low = number + 1


def _seed(seed: int) -> None:
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:  # its global state is the zygote's in every fork otherwise
        numpy.random.seed(seed % 2**32)


def _use_cache(spawn: Spawn) -> None:
    jax = sys.modules.get("jax")
    if jax is None or spawn.cache is None:
        return
    inside = newroot.CACHE if spawn.isolation == "namespaces" else sandbox.HELD_CACHE
    jax.config.update("jax_compilation_cache_dir", inside)
    # a read-only cache is not even tried: to serialise a program takes as long as to look for it
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0 if spawn.cache_writable else _NEVER_S)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # A miss in a read-only cache warns once per function, on the notebook's stderr.
    warnings.filterwarnings("ignore", message="Error (read|writ)ing persistent compilation cache")
