"""A machine of its own for a hub: accounts, homes, processes and network of this one, as it is when Debian was just installed.

Comes in: a folder for its stage. Goes out: `Machine`, on which commands run as whoever is named. Must not: change a file, an account or a
port of the machine that runs the tests.

It is made of namespaces: /etc is a copy, /home, /srv and /usr/local/share are empty, the network is a loopback, and whatever was started ends with
the first process. The interpreter and this repository are seen where they are, below a folder of root's too. This file is that first process.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
EMPTY = ("/home", "/srv", "/usr/local/share")
READY = "the machine is up"


class Machine:
    """Where commands run as root or as one of its accounts."""

    def __init__(self, pid: int, lifeline: IO[str]) -> None:
        self._pid, self._lifeline = str(pid), lifeline

    def end(self) -> None:
        """End it, and all that runs on it."""
        self._lifeline.close()

    def command(self, who: str, *words: str, folder: str = "/") -> list[str]:
        """How this machine's own shell starts a command there: as `who`, with nothing of our environment."""
        enter = ["nsenter", "--target", self._pid, "--mount", "--pid", "--net"]
        become = ["setpriv", f"--reuid={who}", f"--regid={who}", "--init-groups", "--reset-env"]
        return [*enter, *become, "env", f"--chdir={folder}", *words]

    def run(
        self, who: str, *words: str, folder: str = "/", said: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. `said` is what it reads."""
        command = self.command(who, *words, folder=folder)
        return subprocess.run(command, input=said or "", capture_output=True, text=True, errors="replace", timeout=120)

    def browser(self, program: str, folder: Path) -> Path:
        """A browser of ours that sees that machine's network and no other."""
        script = folder / "browser"
        script.write_text(f'#!/bin/sh\nexec nsenter --target {self._pid} --net {program} "$@"\n')
        script.chmod(0o755)
        return script


@contextmanager
def machine(stage: Path) -> Iterator[Machine]:
    """A machine, and its end.

    Raises:
        AssertionError: it cannot be had here.
    """
    assert os.geteuid() == 0, "Accounts of a machine of its own are made by root alone: run make test-system as root."
    apart = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"]
    command = [*apart, sys.executable, __file__, str(stage)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as outside:
        try:
            told = outside.stdout.readline()
            assert told.strip() == READY, f"No machine of its own can be had here: {told}{outside.stdout.read()}"
            children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text()
            yield Machine(int(children), outside.stdin)
        finally:
            outside.stdin.close()


def main(stage: Path) -> None:
    """Make the machine, say so, and be it until our standard input ends."""
    _copy_etc(stage)
    for folder in EMPTY:
        _mount("-t", "tmpfs", "-o", "mode=0755", "none", folder)
    _open_the_way(stage)
    _loopback_up()
    print(READY, flush=True)
    sys.stdin.read()


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def _copy_etc(stage: Path) -> None:
    """What the system needs of /etc, without the people of this machine: those have numbers from 1000 on."""
    subprocess.run(["cp", "--archive", "/etc", str(stage)], check=True)
    for names, secrets in (("passwd", "shadow"), ("group", "gshadow")):
        lines = (stage / "etc" / names).read_text().splitlines()
        people = {line.split(":")[0] for line in lines if 1000 <= int(line.split(":")[2]) < 65534}
        for one in (stage / "etc" / names, stage / "etc" / secrets):
            kept = [line for line in one.read_text().splitlines() if line.split(":")[0] not in people]
            one.write_text("".join(f"{line}\n" for line in kept))
    _mount("--bind", str(stage / "etc"), "/etc")


def _open_the_way(stage: Path) -> None:
    """Show what runs the hub to everybody, also where it lies below a folder that others may not enter; nothing else of that folder."""
    ways: dict[Path, list[Path]] = {}
    for needed in {Path(sys.prefix), Path(sys.base_prefix), ROOT}:
        closed = [one for one in reversed(needed.parents) if not one.stat().st_mode & 0o001]
        if closed:
            ways.setdefault(closed[0], []).append(needed)
    for closed, wanted in ways.items():
        kept = stage / "ways" / str(len(list(stage.glob("ways/*"))))
        for number, one in enumerate(wanted):
            (kept / str(number)).mkdir(parents=True)
            _mount("--bind", str(one), str(kept / str(number)))
        _mount("-t", "tmpfs", "-o", "mode=0755", "none", str(closed))
        for number, one in enumerate(wanted):
            one.mkdir(parents=True, exist_ok=True)
            _mount("--bind", str(kept / str(number)), str(one))


def _loopback_up() -> None:
    """`ip link set lo up`, which not every machine has: ioctl SIOCSIFFLAGS with IFF_UP, netdevice(7)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
