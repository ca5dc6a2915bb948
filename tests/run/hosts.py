"""A network of hosts: each has an address, processes and a disk of its own, and nothing of what another one writes.

Comes in: a folder in which the course lies. Goes out: `Host`s on which commands run. Must not: change the network or a file of the machine
that runs the tests.

They are namespaces, so all see the same interpreter, read-only. One host owns the course; where the others would see it is an empty folder.
Run as a program, this file is the first process of a host, or the switch between them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from graders.kernels import syscalls

_APART = {  # the switch sees the hosts' processes, since it takes cables into their networks
    "switch": ["unshare", "--net"],
    "host": ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"],
}
_READY = "ready"
_NETWORK = "10.77.0"


class Host:
    """Where commands run."""

    def __init__(self, pid: int, lifeline: IO[str], number: int, home: Path) -> None:
        self.pid, self.number, self.address, self.home = pid, number, f"{_NETWORK}.{number}", home
        self._lifeline = lifeline

    def command(self, *environment: str) -> list[str]:
        """What to put before a command so that it runs there, in a folder of that host's own."""
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--net", "--ipc", "--uts"]
        own = [f"--chdir={self.home}", f"HOME={self.home}", f"TMPDIR={self.home}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8"]
        return [*enter, "env", "--ignore-environment", *own, *environment]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run([*self.command(), *words], capture_output=True, text=True, timeout=180)

    def end(self) -> None:
        """End all its processes at once."""
        self._lifeline.close()


class Network:
    """A switch, into which hosts are plugged."""

    def __init__(self, stage: Path, opened: ExitStack) -> None:
        self._stage, self._opened, self._count = stage, opened, 0
        for folder in ("course", "private"):
            (stage / folder).mkdir(exist_ok=True)
        self._switch = opened.enter_context(_first_process("switch", "switch"))

    def host(self, role: str = "stranger") -> Host:
        """One more host; as `owner` it sees the course."""
        process = self._opened.enter_context(_first_process("host", role, str(self._stage)))
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        self._count += 1
        made = Host(int(children), process.stdin, self._count, self._stage / "private")
        self._tell("plug", str(made.pid), str(made.number))
        return made

    def unplug(self, host: Host) -> None:
        """Pull its cable: whoever waits for it hears nothing, not even an end."""
        self._tell("unplug", str(host.pid), str(host.number))

    def _tell(self, *words: str) -> None:
        print(*words, file=self._switch.stdin, flush=True)
        assert self._switch.stdout.readline().strip() == _READY, self._switch.stdout.read()


@contextmanager
def network(stage: Path) -> Iterator[Network]:
    """A network, and the end of it and of all its hosts."""
    assert os.geteuid() == 0, "Hosts with addresses of their own are made by root alone: run make test-system as root."
    with ExitStack() as opened:
        yield Network(stage, opened)


@contextmanager
def _first_process(kind: str, *arguments: str) -> Iterator[Any]:
    how: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    with subprocess.Popen([*_APART[kind], sys.executable, __file__, *arguments], **how) as process:
        try:
            told = process.stdout.readline()
            assert told.strip() == _READY, f"No hosts can be had here: {told}{process.stdout.read()}"
            yield process
        finally:
            process.stdin.close()


def be_host(role: str, stage: Path) -> None:
    """Be the first process of a host: everything of the machine below is read-only, its own disk is in memory."""
    if role != "owner":
        syscalls.set_mount("/", syscalls.ATTR_RDONLY, recursive=True)
        syscalls.mount("none", str(stage / "course"), "tmpfs", 0, "size=4k,mode=755")
    syscalls.mount("none", str(stage / "private"), "tmpfs", 0, "size=1g,mode=700")
    syscalls.mount("proc", "/proc", "proc", 0)
    print(_READY, flush=True)
    sys.stdin.read()


def be_switch() -> None:
    """Be a bridge that hosts are plugged into and pulled out of, as lines of standard input say: what, pid, number."""
    from pyroute2 import IPRoute

    with IPRoute() as here:
        here.link("add", ifname="bridge", kind="bridge")
        bridge = here.link_lookup(ifname="bridge")[0]
        here.link("set", index=bridge, state="up")
        print(_READY, flush=True)
        for line in sys.stdin:
            what, pid, number = line.split()
            if what == "plug":
                _plug(here, bridge, int(pid), number)
            else:
                here.link("set", index=here.link_lookup(ifname=f"port{number}")[0], state="down")
            print(_READY, flush=True)


def _plug(here: Any, bridge: int, pid: int, number: str) -> None:
    from pyroute2 import IPRoute

    here.link("add", ifname=f"port{number}", kind="veth", peer={"ifname": "eth0", "net_ns_pid": pid})
    here.link("set", index=here.link_lookup(ifname=f"port{number}")[0], master=bridge, state="up")
    with IPRoute(netns=f"/proc/{pid}/ns/net") as there:
        there.link("set", index=there.link_lookup(ifname="lo")[0], state="up")
        card = there.link_lookup(ifname="eth0")[0]
        there.addr("add", index=card, address=f"{_NETWORK}.{number}", prefixlen=24)
        there.link("set", index=card, state="up")


def main(role: str, stage: str = "") -> None:
    """Be what the first argument says."""
    if role == "switch":
        be_switch()
    else:
        be_host(role, Path(stage))


if __name__ == "__main__":
    main(*sys.argv[1:])
