"""The warden: the parent of one born process. It puts that process behind walls, watches its memory, and ends it.

Comes in: a payload (an encoded `Spawn`), the control socket of the client, descriptors for the entry.
Goes out: `Started` or `Refused`, later `Ended`, on the control socket. It takes b"interrupt", b"stack" and b"kill" from there;
end of file there means that the client is gone. Must not: outlive the zygote, or leave a process alive behind it.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from graders.kernels import birth, census, newroot, sandbox, stacks, syscalls
from graders.kernels.births import Ended, Exit, Limits, Refused, Spawn, Started, Walls, task_limit

# Bytes a second that a candidate may gain between two looks: one core fills 4 GB/s, large pages being refused, and it may use several.
_FASTEST_GROWTH = 4 * 2**30 * min(os.cpu_count() or 2, 8)
_LOOK_S = (0.002, 0.1)
_DISK_LOOK_S = 0.2
_LAST_WAIT_S = 10.0
_REPORT = msgspec.msgpack.Decoder(Started | Refused)


def run(payload: int, control: socket.socket, fds: Sequence[int], zygote: int) -> NoReturn:
    """Be the warden of one birth; called in a fresh fork of the zygote."""
    code = 1
    try:
        _settle([payload, control.fileno(), *fds], zygote)
        with open(payload, "rb") as file:
            spawn = msgspec.msgpack.decode(file.read(), type=Spawn)
        if spawn.cpu is not None:
            os.sched_setaffinity(0, {spawn.cpu})
        _attend(spawn, control, fds)
        code = 0
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        _say(control, Refused(isolation=False, text=f"{type(error).__name__}: {error}"))
    finally:
        os._exit(code)


def _settle(keep: Sequence[int], zygote: int) -> None:
    gc.disable()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    syscalls.die_with_parent(signal.SIGTERM)  # TERM, not KILL: the `process` level has a tree to take along
    if os.getppid() != zygote:
        raise SystemExit  # it died before we could ask to be told
    syscalls.set_subreaper()
    birth.close_all_but(keep)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(number)


def _attend(spawn: Spawn, control: socket.socket, fds: Sequence[int]) -> None:
    private = tempfile.mkdtemp(prefix="graders-") if spawn.isolation == "process" else None
    inner, ended = 0, None
    try:
        report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            privileged = sandbox.leave_pid_namespace() if private is None else False
        except OSError as error:
            _say(control, Refused(isolation=True, text=str(error)))
            return
        syscalls.die_with_parent(signal.SIGTERM)  # again, since a change of credentials makes the kernel forget it
        inner = _bear(spawn, theirs, [report, control], fds, private, privileged)
        theirs.close()
        for number in fds:
            os.close(number)
        ended = _watch(inner, report, control, spawn.limits, private)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the zygote's end must not cut the tidying short
        if inner:
            _end_all(inner)
        if private:
            _remove(private)
    if ended is not None:  # last, so that who hears of the end finds nothing left
        _say(control, Ended(exit=ended))


def _remove(private: str) -> None:
    """Remove a folder whose owner may have locked parts of it. Nobody is left inside to swap a symlink in."""
    for parent, folders, _ in os.walk(private):
        for path in (Path(parent, name) for name in folders):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(private, ignore_errors=True)


def _bear(
    spawn: Spawn,
    theirs: socket.socket,
    ours: Sequence[socket.socket],
    fds: Sequence[int],
    private: str | None,
    privileged: bool,
) -> int:
    """Fork the inner process and return its pid as seen from here."""
    if private is not None and os.geteuid() == 0:
        os.chown(private, newroot.UID, newroot.GID)

    def put_up() -> Walls:
        if private is None:
            return sandbox.enter_namespaces(spawn, privileged)
        return sandbox.enter_process_level(spawn, private)

    inner = os.fork()
    if inner == 0:
        for kept in ours:
            kept.close()
        birth.run(spawn, theirs, fds, put_up)
    return inner


def _watch(
    inner: int, report: socket.socket, control: socket.socket, limits: Limits, private: str | None
) -> Exit | None:
    """Look after `inner` until it ends. None when the client is gone, so that nobody waits for the answer."""
    ending = os.pidfd_open(inner)
    poller = select.poll()
    for fd in (ending, report.fileno(), control.fileno()):
        poller.register(fd, select.POLLIN)
    failure, verdict, peak, pause_s, disk_look = "", "", 0, _LOOK_S[0], time.monotonic()
    while True:
        ready = dict(poller.poll(pause_s * 1000))
        if report.fileno() in ready:
            text = _forward(report, control)
            if text is None:
                poller.unregister(report)
            failure = text or failure
        if control.fileno() in ready and not _obey(control, inner):
            return None
        if ending in ready:
            while (text := _forward(report, control)) is not None:  # all that it said before it ended
                failure = text or failure
            break
        held = _resident(inner, limits)
        peak = max(peak, held)
        pause_s = min(max((limits.memory_bytes - held) / _FASTEST_GROWTH, _LOOK_S[0]), _LOOK_S[1])
        if not verdict and held > limits.memory_bytes:
            verdict = "memory"
        if not verdict and private and census.tasks(inner) > task_limit(limits):
            verdict = "tasks"
        if not verdict and private and time.monotonic() > disk_look:
            disk_look = time.monotonic() + _DISK_LOOK_S
            verdict = "disk" if _overfull(private, limits) else ""
        if verdict:
            os.kill(inner, signal.SIGKILL)
    os.close(ending)
    return _verdict(inner, failure, verdict, peak)


def _forward(report: socket.socket, control: socket.socket) -> str | None:
    """Pass `Started` on; keep a failure for the last message, unless nothing was started yet. None when there is nothing more."""
    try:
        data = report.recv(65536, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    if not data:
        return None
    message = _REPORT.decode(data)
    if isinstance(message, Started) or message.isolation:
        _say(control, message)
        return ""
    return message.text


def _obey(control: socket.socket, inner: int) -> bool:
    """Do what the client asks. False when it hung up."""
    try:
        word = control.recv(64)
    except ConnectionError:
        return False
    if word == b"interrupt":
        os.kill(inner, signal.SIGINT)
    elif word == b"stack":
        os.kill(inner, stacks.SIGNAL)
    elif word == b"kill":
        os.kill(inner, signal.SIGKILL)
    return bool(word)


def _resident(inner: int, limits: Limits) -> int:
    """Resident bytes of the whole tree; only a tree that seems too large is measured without double counting."""
    tree = {inner} | census.descendants(os.getpid())
    held = census.resident_bytes(tree)
    return held if held <= limits.memory_bytes else census.proportional_bytes(tree)


def _overfull(private: str, limits: Limits) -> bool:
    held, files = census.tree_bytes(private)
    return held > limits.disk_bytes or files > newroot.file_limit(limits)


def _verdict(inner: int, failure: str, verdict: str, peak: int) -> Exit:
    _, status, _ = os.wait4(inner, 0)
    _end_all(inner)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = os.waitstatus_to_exitcode(status)
    kind = verdict or ("setup_failed" if failure else "exit" if code >= 0 else "signal")
    peak = max(peak, used.ru_maxrss * 1024)
    return Exit(kind=kind, code=abs(code), cpu_s=used.ru_utime + used.ru_stime, peak_bytes=peak, text=failure)


def _end_all(inner: int) -> None:
    """Kill and reap until this process has no child left; as a subreaper it inherits every orphan below it."""
    deadline = time.monotonic() + _LAST_WAIT_S
    while time.monotonic() < deadline:
        for pid in census.descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _say(control: socket.socket, message: Started | Refused | Ended) -> None:
    try:
        control.send(msgspec.msgpack.encode(message))
    except OSError:
        return  # the client is gone; the end of file on its socket ends us too
