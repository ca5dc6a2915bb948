"""The candidate's end of the channel: serves the notebook's objects to the examiner while no cell runs.

Comes in: a kernel application and a connected socket. Goes out: answers. Runs beside student code, so nothing here is
trusted by anybody; it is convenience for honest notebooks, not a wall.
"""

from __future__ import annotations

import functools
import socket
import sys
from contextlib import ExitStack
from functools import partial
from typing import Any

import jax
from tornado.ioloop import IOLoop

from graders.exam import compiletime
from graders.exam.capped import CappedOutput
from graders.exam.leaks import Leaks
from graders.exam.peer import ChannelLost, Peer
from graders.kernels import lean, stacks

# Left switched on by a cell, these would make a function fail that is right
_PERMISSIVE = (
    partial(jax.debug_nans, False),
    partial(jax.debug_infs, False),
    partial(jax.numpy_rank_promotion, "allow"),
    partial(jax.numpy_dtype_promotion, "standard"),
    partial(jax.transfer_guard, "allow"),
)


def install(app: Any, fds: list[int], options: dict[str, Any]) -> None:
    """Serve the channel `fds[0]` on the kernel's own event loop, so that no question is answered while a cell runs.

    `options["output_bytes"]` is what one cell may print to each stream. With `options["unjitted"]` `jax.jit` does nothing.
    The last descriptor is for the stack.
    """
    stacks.write_on_signal(fds[-1])
    compiletime.count()
    # what goes wrong in a computation is then raised in the cell that started it, and its time is that cell's
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if options.get("unjitted"):
        jax.jit = _unjitted
    _name_cells(app)
    lean.silence(app.kernel)
    leaks = Leaks(app.shell)
    app.shell.events.register("post_run_cell", lambda _: leaks.look(app.shell.user_ns, _cell(app)))
    CappedOutput.limit_bytes = int(options["output_bytes"])
    app.shell.events.register("post_run_cell", _release)
    channel = socket.socket(fileno=fds[0])
    peer = Peer(channel, 1, namespace=app.shell.user_ns)
    loop = IOLoop.current()

    def answer(*_: Any) -> None:
        try:
            with ExitStack() as defaults:
                for default in _PERMISSIVE:
                    defaults.enter_context(default())
                peer.serve_one()
        except ChannelLost:
            loop.remove_handler(channel)
            channel.close()
        finally:
            _release()

    loop.add_handler(channel, answer, IOLoop.READ)


def _name_cells(app: Any) -> None:
    """Give the code of a cell the name that came with the cell: JAX quotes it where it tells where a value was made."""
    unnamed = app.shell.compile.get_code_name

    def name(raw: str, transformed: str, number: int) -> str:
        return f"<{_cell(app)}>" if _cell(app) else str(unnamed(raw, transformed, number))

    app.shell.compile.get_code_name = name


def _cell(app: Any) -> str:
    return str(app.kernel.get_parent("shell").get("metadata", {}).get("cell", ""))


def _release(*_: Any) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, CappedOutput):
            stream.release()
        stream.flush()


def _unjitted(function: Any = None, /, **options: Any) -> Any:
    """`jax.jit` for a run whose operations are to be compiled one by one."""
    return functools.partial(_unjitted, **options) if function is None else function
