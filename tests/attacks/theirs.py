"""The same attacks under `nbgrader autograde`, behind walls, so that what succeeds there touches a throw-away course only.

Comes in: attacks. Goes out: what each came to. Must not: let nbgrader run outside walls where there are any.

Run as a program this module is the inside: it reads the course and the names of attacks from stdin, walls itself in, grades,
looks for traces and writes what it found to stdout. The walls are those of a candidate, with two differences: there is no
filter of system calls, and the loopback device is up, since nbgrader speaks to its kernels by TCP.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import bait
import corpus
import msgspec
import ours
from assignment import NAME
from corpus import Attack

from graders.kernels import newroot, sandbox, seccomp
from graders.kernels.births import Limits, Spawn

PATIENCE_S = 600
_LIMITS = Limits(memory_bytes=4 * 2**30, disk_bytes=2**30, processes=512)
_SET_FLAGS, _UP = 0x8914, 0x1


class Inside(msgspec.Struct):
    """What goes in: the released course, and which attacks to hand in."""

    course: dict[str, bytes]
    attacks: list[str]
    walled: bool


class Found(msgspec.Struct):
    """What comes out. `ended` are the last lines that nbgrader wrote."""

    evidence: ours.Evidence
    notebooks: dict[str, str]
    scores: dict[str, dict[str, float]]
    ended: str


def run(root: Path, attacks: Iterable[Attack], walled: bool) -> Found:
    """Grade the attacks in one throw-away course. `root` is an empty folder, used for the course's release alone."""
    course = root / "course"
    bait.make_course(course)
    files = {str(one.relative_to(course)): one.read_bytes() for one in course.rglob("*") if one.is_file()}
    told = msgspec.msgpack.encode(Inside(files, [one.name for one in attacks], walled))
    command = [sys.executable, __file__]
    # a user without privileges can go behind walls from a process of one thread alone, and BLAS starts more
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, input=told, capture_output=True, timeout=PATIENCE_S, check=False, cwd="/", env=alone)
    if done.returncode != 0:
        raise RuntimeError(f"nbgrader's side ended with {done.returncode}: {done.stderr.decode()[-3000:]}")
    return msgspec.msgpack.decode(done.stdout, type=Found)


def main() -> None:
    """Be the inside."""
    told = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Inside)
    answer = os.dup(1)
    os.dup2(2, 1)
    os.set_inheritable(answer, False)
    chosen = [one for one in corpus.read() if one.name in told.attacks]
    if told.walled:
        _enclose()
    with tempfile.TemporaryDirectory(prefix="theirs-", ignore_cleanup_errors=True) as folder:
        found = _grade(Path(folder), chosen, told.course)
    with os.fdopen(answer, "wb") as stream:
        stream.write(msgspec.msgpack.encode(found))
    os._exit(0)


def _enclose() -> None:
    """Go behind walls, as the first process of a PID namespace; what is outside waits for it."""
    privileged = sandbox.leave_pid_namespace()
    inner = os.fork()
    if inner:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 0xFF)
    enter, install = newroot.enter, seccomp.install
    newroot.enter = lambda *args: (_loopback_up(), enter(*args))[1]
    seccomp.install = lambda **_: None
    sandbox.enter_namespaces(Spawn(entry="", isolation="namespaces", limits=_LIMITS), privileged)
    newroot.enter, seccomp.install = enter, install


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def _grade(folder: Path, attacks: list[Attack], files: dict[str, bytes]) -> Found:
    course = folder / "course"
    for name, data in files.items():
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        (course / name).write_bytes(data)
    around = bait.Bait(folder, course)
    for one in attacks:
        bait.hand_in(course, one, around.places)
    with around:
        ended = _nbgrader(folder, around.home, "autograde", NAME)
        traces = around.traces()
    _end_marked()
    everybody = {one.name: one.who() for one in attacks} | {name: name for name in (bait.VICTIM, "wrong")}
    scores = {name: ours.scores(course, who) for name, who in everybody.items()}
    notebooks = {name: ours.notebook(course, who) for name, who in everybody.items()}
    evidence = {one.name: _evidence(one, scores[one.name], notebooks[one.name]) for one in attacks}
    ours.add_traces(evidence, traces)
    return Found(evidence, notebooks, scores, ended)


def _evidence(attack: Attack, scores: dict[str, float], notebook: str) -> dict[str, list[str]]:
    found = ours.says_so(notebook, attack)
    points = [f"gradebook, {id}: {score}" for id, score in scores.items() if score]
    seen = ours.told(ours.outputs(notebook), attack, values=True)
    return found | ({"forged points": points} if points else {}) | ({"hidden text seen": seen} if seen else {})


def _nbgrader(folder: Path, home: Path, *arguments: str) -> str:
    """Run nbgrader in the course as a person would; the end of what it wrote."""
    programs = folder / "bin"
    programs.mkdir()
    # nbgrader calls it by name, and a script in an environment's bin may name an interpreter that is not here
    (programs / "alembic").write_text(f'#!/bin/sh\nexec {sys.executable} -m alembic.config "$@"\n')
    (programs / "alembic").chmod(0o755)
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "BAIT": bait.CANARY}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(
        command, cwd=folder / "course", env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.stdout.decode(errors="replace")[-3000:]


def _end_marked() -> None:
    """End what attacks left running: without walls nothing else would."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"wombat-" in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
        except OSError:
            continue


if __name__ == "__main__":
    main()
