"""The zygote: a process that has imported everything and initialised nothing, and forks a warden for each birth.

Comes in: on the command line the number of a control socket, a JSON list of modules, and one of folders where they
lie if not in the interpreter; on the socket one byte a birth, with the payload, the birth's own control socket and its
descriptors attached. Goes out: b"ready" or an error text, once.
Must not: initialise a JAX backend (a fork after that hangs), hold any birth's data, or outlive its starter.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

import msgspec

from graders.kernels import census, syscalls, warden, warm
from graders.kernels.births import Refused

_MOST_FDS = 250  # the kernel passes at most 253 at once
_LOOK_AGAIN_MS = 5
_MOST_TASKS = 2  # 1 and, on some builds, a BLAS thread; a running backend has 8 and more


def main(arguments: list[str]) -> None:
    """Serve births until the other end of the control socket closes."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    starter = os.pidfd_open(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the starter, which then closes the socket
    try:
        sys.path += json.loads(arguments[2])
        for name in json.loads(arguments[1]):
            importlib.import_module(name)
        name = "what warms it"
        warm.warm()
    except Exception as error:
        control.send(f"{type(error).__name__} while importing {name}: {error}".encode()[:4000])
        return
    gc.collect()
    gc.freeze()  # the collector would copy every page it touches into every child
    gc.disable()
    syscalls.set_subreaper()
    control.send(b"ready")
    _serve(control, starter)


def _serve(control: socket.socket, starter: int) -> None:
    wardens: dict[int, int] = {}  # pidfd: pid
    poller = select.poll()
    for fd in (control.fileno(), starter):
        poller.register(fd, select.POLLIN)
    orphans = False
    while True:
        ready = {fd for fd, _ in poller.poll(_LOOK_AGAIN_MS if orphans else None)}
        _reap()
        ended = ready & wardens.keys()
        for fd in ended:
            poller.unregister(fd)
            os.close(fd)
            del wardens[fd]
        if ended or orphans:
            orphans = _end_orphans(set(wardens.values()))
        if starter in ready:
            return
        if control.fileno() in ready:
            fds = _receive(control)
            if fds is None:
                return
            born = _bear(control, fds) if len(fds) >= 2 else None
            for number in fds:
                os.close(number)
            if born is not None:
                wardens[born[0]] = born[1]
                poller.register(born[0], select.POLLIN)


def _reap() -> None:
    """Wait for what has ended, so that its CPU time counts as ours: what a whole grading cost can then be read off."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _end_orphans(wardens: set[int]) -> bool:
    """A warden that was killed could not end what it watched; as its subreaper we inherit that, and end it.

    True when there was something: what it forked meanwhile is inherited only at its death, so look again.
    """
    strangers = census.children(os.getpid()) - wardens
    for pid in strangers:
        for orphan in {pid} | census.descendants(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
    return bool(strangers)


def _receive(control: socket.socket) -> list[int] | None:
    """Descriptors of one request; None at end of file."""
    size = socket.CMSG_LEN(_MOST_FDS * 4)
    data, ancillary, _, _ = control.recvmsg(1, size, socket.MSG_CMSG_CLOEXEC)
    if not data:
        return None
    numbers = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
    return list(numbers)


def _bear(control: socket.socket, fds: list[int]) -> tuple[int, int] | None:
    """Fork a warden; its pidfd and pid, or None when that could not be done or it has ended already."""
    payload, theirs, *rest = fds
    zygote, problem = os.getpid(), unfit()
    if not problem:
        try:
            pid = os.fork()
            if pid == 0:
                control.close()
                warden.run(payload, socket.socket(fileno=theirs), rest, zygote)
            return os.pidfd_open(pid), pid
        except ProcessLookupError:
            return None
        except OSError as error:
            problem = f"no new process could be made: {error}"
    with socket.socket(fileno=os.dup(theirs)) as client:
        client.send(msgspec.msgpack.encode(Refused(isolation=False, text=problem)))
    return None


def unfit() -> str:
    """Why forking now would be unsafe; empty when it is safe."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        return "a preloaded module started a JAX backend in the zygote; forks of it would hang"
    tasks = len(list(Path("/proc/self/task").iterdir()))
    if tasks > _MOST_TASKS:
        return f"a preloaded module started threads in the zygote ({tasks} run); forks of it would be unsafe"
    return ""


if __name__ == "__main__":
    # Run under the module's own name, so that it is not loaded twice.
    from graders.kernels.zygote import main as serve

    serve(sys.argv[1:])
