"""Laws of limits and of death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_pipes import FOLDER, Pipe

from graders.kernels import census
from graders.kernels.nursery import Limits, Spawn, Zygote

MIB = 2**20


@pytest.mark.parametrize("rate", [2**30, 4 * 2**30])
def test_memory_limit_is_kept(zygote: Zygote, level: str, rate: int) -> None:
    """A candidate that grows by 1 GB/s and more is ended before it holds a quarter more than it may."""
    limits = Limits(memory_bytes=512 * MIB)
    with zygote.spawn(Spawn(entry="entries:grow", argument={"rate": rate}, isolation=level, limits=limits)) as child:
        ended = child.wait(30)
    assert ended is not None
    assert ended.kind == "memory"
    assert limits.memory_bytes < ended.peak_bytes < 1.25 * limits.memory_bytes


def test_large_pages_stay_refused(zygote: Zygote, level: str, pipe: Pipe) -> None:
    """What is born gets small pages only, which the warden's looks keep up with, and cannot undo that."""
    with zygote.spawn(Spawn(entry="entries:large_pages", isolation=level), [pipe.given]) as child:
        child.wait(10)
    assert pipe.read() == b"refused 0"


@pytest.mark.parametrize("waits", [False, True])
def test_daemons_die_with_the_first_process(zygote: Zygote, level: str, pipe: Pipe, waits: bool) -> None:
    """Whether it ends by itself or is killed, nothing that it started survives it."""
    spawn = Spawn(entry="entries:daemons", argument={"wait": waits}, isolation=level)
    with zygote.spawn(spawn, [pipe.given]) as child:
        assert pipe.read() == b"left"
        if waits:
            child.kill()
        assert child.wait(10) is not None
        assert pipe.read() == b""


def test_orphans_of_a_killed_warden_die(zygote: Zygote, level: str, pipe: Pipe) -> None:
    """When a warden itself is killed, what it watched dies too, and is reported lost."""
    spawn = Spawn(entry="entries:daemons", argument={"wait": True}, isolation=level)
    with zygote.spawn(spawn, [pipe.given]) as child:
        assert pipe.read() == b"left"
        for warden in census.children(zygote._process.pid):
            os.kill(warden, signal.SIGKILL)
        ended = child.wait(10)
        assert ended is not None
        assert ended.kind == "lost"
        assert pipe.read() == b""


def test_private_folder_goes(zygote: Zygote, level: str, pipe: Pipe) -> None:
    """Once the end is told, the private folder is gone, files without permissions included."""
    with zygote.spawn(Spawn(entry="entries:locked", isolation=level), [pipe.given]) as child:
        folder = Path(pipe.read().decode())
        assert child.wait(10) is not None
        assert not folder.exists()


_CLIENT = """
import os, sys, time
from graders.kernels import census
from graders.kernels.nursery import Spawn, Zygote
zygote = Zygote(preload=("entries",), path=(sys.argv[1],))
spawn = Spawn(entry="entries:daemons", argument={"wait": True}, isolation=sys.argv[2])
child = zygote.spawn(spawn, [int(sys.argv[3])])
time.sleep(120)
"""


def test_all_die_with_a_killed_client(level: str, pipe: Pipe) -> None:
    """A client that is killed takes its zygote and everything born of it along."""
    client = subprocess.Popen([sys.executable, "-c", _CLIENT, FOLDER, level, str(pipe.given)], pass_fds=[pipe.given])
    try:
        assert pipe.read(30) == b"left"
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait(10)
    assert pipe.read() == b""


_BOTH_AT_ONCE = """
import os, socket
import msgspec
from graders.kernels import warden
from graders.kernels.births import Limits, Refused, Started, Walls

report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
control, client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for message in (Started(pid=1, walls=Walls("process", ())), Refused(isolation=False, text="why")):
    theirs.send(msgspec.msgpack.encode(message))
inner = os.fork()
if inner == 0:
    os._exit(1)
os.waitid(os.P_PID, inner, os.WEXITED | os.WNOWAIT)
ended = warden._watch(inner, report, control, Limits(), None)
print(ended.kind, ended.text)
"""


def test_what_is_said_just_before_an_end_is_heard() -> None:
    """An entry that fails at once is our fault and tells why, also when its warden hears of both in one moment."""
    done = subprocess.run([sys.executable, "-c", _BOTH_AT_ONCE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["setup_failed", "why"]
