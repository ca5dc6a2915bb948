"""Does each wall hold here? Every forbidden thing is tried from inside, and judged from inside and outside.

Comes in: a level. Goes out: one `Probe` per attempt. Must not: trust what the inside says where the outside can see.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from graders.kernels import newroot, sandbox
from graders.kernels.attempts import ATTEMPTS
from graders.kernels.births import Exit, Limits, Spawn, task_limit
from graders.kernels.nursery import Zygote
from graders.kernels.trespass import Bait
from graders.records import Record

_LIMITS = Limits(memory_bytes=768 * 2**20, disk_bytes=16 * 2**20, processes=32)
_OVERRUN = 1.25
_TRY_S = 30.0
_GONE_S = 5.0
_HARMLESS_DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}


class Probe(Record, frozen=True):
    """One attempt: its name, the wall that is to refuse it, whether it was refused, and what was seen."""

    name: str
    wall: str
    held: bool
    detail: str


def doctor(level: str) -> tuple[Probe, ...]:
    """Try everything at one level.

    Raises:
        IsolationError: the walls of this level cannot be put up here.
        InfrastructureError: the probes could not be run.
    """
    with _secret() as secret, Zygote(preload=("graders.kernels.attempts",)) as zygote, _baits(secret) as bait:
        return tuple(_probe(zygote, level, name, bait) for name in ATTEMPTS)


def _probe(zygote: Zygote, level: str, name: str, bait: Bait) -> Probe:
    inside, given = (newroot.CACHE, ()) if level == "namespaces" else (sandbox.HELD_CACHE, (sandbox.CACHE_FD,))
    spawn = Spawn(
        entry="graders.kernels.attempts:main",
        isolation=level,
        limits=_LIMITS,
        cache=bait.cache,
        argument={"name": name, "bait": msgspec.to_builtins(msgspec.structs.replace(bait, cache=inside, given=given))},
    )
    answer, theirs = os.pipe()
    alive, held_inside = os.pipe()
    try:
        with zygote.spawn(spawn, (theirs, held_inside)) as child:
            os.close(theirs)
            os.close(held_inside)
            ended = child.wait(_TRY_S)
        said = os.read(answer, 65536) if _ready(answer, 0) else b""
        gone = _ready(alive, _GONE_S)
    finally:
        os.close(answer)
        os.close(alive)
    held, detail = _judge(name, said, ended, gone, bait)
    return Probe(name=name, wall=ATTEMPTS[name][0], held=held, detail=detail)


def _judge(name: str, said: bytes, ended: Exit | None, gone: bool, bait: Bait) -> tuple[bool, str]:
    """Refused from inside, or ended at a limit; and in any case nothing lives on and nobody outside was hurt."""
    done, detail = json.loads(said) if said else (False, f"ended by the warden: {ended.kind if ended else 'not yet'}")
    if ended is None:
        return False, f"still ran after {_TRY_S:.0f} s"
    if not gone:
        return False, "a process lives on"
    if not said and ended.kind not in ("memory", "disk", "tasks"):
        return False, f"ended by {ended.kind} {ended.code} {ended.text}".strip()
    if ended.peak_bytes > _OVERRUN * bait.memory_bytes:
        return False, f"held {ended.peak_bytes / 2**20:.0f} MiB where {bait.memory_bytes / 2**20:.0f} were allowed"
    if not Path(f"/proc/{bait.victim}/cmdline").read_text():
        return False, "a process of the host was killed"
    return not done, detail


def _ready(fd: int, timeout_s: float) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))


@contextlib.contextmanager
def _secret() -> Iterator[str]:
    """A secret in our environment, there while the zygote starts."""
    secret = secrets.token_hex(8)
    os.environ["GRADERS_PROBE_SECRET"] = secret
    try:
        yield secret
    finally:
        del os.environ["GRADERS_PROBE_SECRET"]


@contextlib.contextmanager
def _baits(secret: str) -> Iterator[Bait]:
    """Put out what an intruder would go for, open to every user, so that only the walls refuse it."""
    abstract = f"graders-probe-{secret}"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="probe-")))
        for name in ("source.ipynb", "gradebook.db"):
            (folder / name).write_text("secret")
            (folder / name).chmod(0o666)
        (folder / "cache").mkdir()
        for path in (folder, folder / "cache"):
            path.chmod(0o777)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in ("\0" + abstract, str(folder / "socket")):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        (folder / "socket").chmod(0o777)
        victim = stack.enter_context(_victim())
        yield _bait(folder, tcp.getsockname()[1], abstract, victim, secret)


def _bait(folder: Path, port: int, abstract: str, victim: int, secret: str) -> Bait:
    home = Path.home()
    return Bait(
        course=str(folder),
        home=str(home),
        home_allowed=tuple(_first_below(home, path) for path in newroot.interpreter_folders()),
        prefix=newroot.interpreter_folders()[0] if newroot.interpreter_folders() else "/usr",
        tcp_port=port,
        abstract=abstract,
        unix_path=str(folder / "socket"),
        victim=victim,
        devices=_devices(),
        secret=secret,
        cache=str(folder / "cache"),
        memory_bytes=_LIMITS.memory_bytes,
        disk_bytes=_LIMITS.disk_bytes,
        files=newroot.file_limit(_LIMITS),
        tasks=task_limit(_LIMITS),
    )


def _first_below(home: Path, path: str) -> str:
    """The name in `home` that leads to `path`, which has to be visible when the interpreter lies there."""
    return Path(path).relative_to(home).parts[0] if Path(path).is_relative_to(home) else ""


def _devices() -> tuple[str, ...]:
    """Device nodes of this host that a candidate must not open."""
    kinds = (stat.S_ISCHR, stat.S_ISBLK)
    found = []
    for path in sorted(Path("/dev").iterdir()):
        with contextlib.suppress(OSError):
            if path.name not in _HARMLESS_DEVICES and any(kind(path.lstat().st_mode) for kind in kinds):
                found.append(str(path))
    return tuple(found)


@contextlib.contextmanager
def _victim() -> Iterator[int]:
    """A process of the candidate's own user, so that only a wall protects it."""
    user = newroot.UID if os.geteuid() == 0 else None
    process = subprocess.Popen(["sleep", "300"], user=user, cwd="/")
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(_GONE_S)
