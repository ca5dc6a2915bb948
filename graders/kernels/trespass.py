"""What a hostile candidate would try, for `graders doctor`: each function tries one forbidden thing from inside.

Comes in: a `Bait`, the places that must be out of reach. Goes out: a sentence when the attempt succeeded; an `OSError`
when it was refused. Must not: be run anywhere but behind walls with limits.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
from pathlib import Path

from graders.kernels import syscalls
from graders.records import Record

_PTRACE = {"x86_64": 101, "aarch64": 117}
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_IO_URING_SETUP = 425
_ATTACH = 16


class Bait(Record, frozen=True):
    """Things of the host that an attempt goes for, and the limits that it runs into."""

    course: str
    home: str
    home_allowed: tuple[str, ...]
    prefix: str
    tcp_port: int
    abstract: str
    unix_path: str
    victim: int
    devices: tuple[str, ...]
    secret: str
    cache: str
    memory_bytes: int
    disk_bytes: int
    files: int
    tasks: int
    given: tuple[int, ...] = ()


def read_shadow(bait: Bait) -> str:
    """Read the password hashes of the host."""
    return f"read {len(Path('/etc/shadow').read_bytes())} bytes"


def read_home(bait: Bait) -> str:
    """List the home folder of the person who grades."""
    seen = {path.name for path in Path(bait.home).iterdir()} - set(bait.home_allowed)
    if not seen:
        raise OSError("only the way to the interpreter is there")
    return f"saw {sorted(seen)[0]}"


def read_course(bait: Bait) -> str:
    """Read a hidden test."""
    return Path(bait.course, "source.ipynb").read_text()


def read_gradebook(bait: Bait) -> str:
    """Read the gradebook."""
    return Path(bait.course, "gradebook.db").read_text()


def write_gradebook(bait: Bait) -> str:
    """Change the gradebook."""
    with Path(bait.course, "gradebook.db").open("r+") as file:
        file.write("0")
    return "wrote to it"


def through_first_process(bait: Bait) -> str:
    """Reach the course through /proc/1/root and /proc/1/cwd."""
    return Path(f"/proc/1/root{bait.course}/gradebook.db").read_text()


def list_processes(bait: Bait) -> str:
    """See a process of the host."""
    return Path(f"/proc/{bait.victim}/cmdline").read_text() or "its command line is empty"


def kill_process(bait: Bait) -> str:
    """Kill a process of the host."""
    os.kill(bait.victim, signal.SIGKILL)
    return "sent the signal"


def trace_process(bait: Bait) -> str:
    """Attach to the parent as a debugger."""
    return _call(_PTRACE[syscalls.machine()], _ATTACH, os.getppid() or 1)


def write_outside(bait: Bait) -> str:
    """Write anywhere but in the private folder."""
    for path in (f"{bait.prefix}/graders-probe", "/graders-probe", "/etc/graders-probe", "/usr/graders-probe"):
        try:
            Path(path).write_text("x")
        except OSError as error:
            last = error
            continue
        Path(path).unlink()
        return f"wrote {path}"
    raise last


def write_cache(bait: Bait) -> str:
    """Leave something in the compile cache for the next submission."""
    Path(bait.cache, "left-behind").write_text("x")
    return "wrote to it"


def connect_tcp(bait: Bait) -> str:
    """Connect to a port of this host."""
    socket.create_connection(("127.0.0.1", bait.tcp_port), timeout=2).close()
    return "connected"


def send_udp(bait: Bait) -> str:
    """Send a datagram to this host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", bait.tcp_port))
    return "sent"


def ask_dns(bait: Bait) -> str:
    """Resolve a name."""
    return str(socket.getaddrinfo("example.org", 80)[0])


def listen_tcp(bait: Bait) -> str:
    """Open a port."""
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
    return "listens"


def connect_vsock(bait: Bait) -> str:
    """Make a socket to the hypervisor: no network namespace covers those."""
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return "made one"


def connect_abstract(bait: Bait) -> str:
    """Connect to an abstract Unix socket of the host."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + bait.abstract)
    return "connected"


def connect_unix(bait: Bait) -> str:
    """Connect to a Unix socket that lies in a folder of the host."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(bait.unix_path)
    return "connected"


def mount_something(bait: Bait) -> str:
    """Mount a file system."""
    syscalls.mount("x", str(Path.cwd()), "tmpfs", 0)
    return "mounted"


def new_namespace(bait: Bait) -> str:
    """Make a user namespace, in which one would be root."""
    syscalls.unshare(syscalls.NEWUSER)
    return "made one"


def become_root(bait: Bait) -> str:
    """Become root."""
    os.setresuid(0, 0, 0)
    if os.getuid() == 0:
        return "is root"
    raise OSError("the change had no effect")


def gain_capabilities(bait: Bait) -> str:
    """Hold a capability, or be able to gain one by executing a file: no_new_privs is what forbids that."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    held = int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapAmb"], 16)
    if status["NoNewPrivs"] == "1" and held & ~0b100 == 0:
        raise OSError("none" if not held else "only that of reading, which Landlock narrows")
    return f"holds 0x{held:x}"


def hidden_memory(bait: Bait) -> str:
    """Hold memory that no resident size shows: memfd, System V, shared anonymous pages."""
    for attempt in (lambda: os.memfd_create("x"), lambda: mmap.mmap(-1, 4096)):
        try:
            attempt()
        except OSError as error:
            last = error
            continue
        return "got some"
    raise last


def kernel_surface(bait: Bait) -> str:
    """Use the keyrings or io_uring of the kernel."""
    try:
        return _call(_KEYCTL[syscalls.machine()], 0, -4)
    except OSError:
        return _call(_IO_URING_SETUP, 1, 0)


def open_devices(bait: Bait) -> str:
    """Open a device of the host."""
    for device in bait.devices:
        try:
            os.close(os.open(device, os.O_RDONLY | os.O_NONBLOCK))
        except OSError:
            continue
        return f"opened {device}"
    raise OSError(f"none of {len(bait.devices)} could be opened")


def read_environment(bait: Bait) -> str:
    """Find a secret of the grader's environment."""
    texts = [json.dumps(dict(os.environ)), Path("/proc/self/environ").read_text(errors="replace")]
    if any(bait.secret in text for text in texts):
        return "found it"
    raise OSError("it is not there")


def inherited_descriptors(bait: Bait) -> str:
    """Find an open descriptor that nobody gave."""
    found = [fd for fd in range(1024) if fd not in {0, 1, 2, *bait.given} and _is_open(fd)]
    if found:
        return f"found {found}"
    raise OSError("only those that were given")


def _call(number: int, *values: int) -> str:
    syscalls.call(number, *values)
    return "was allowed"


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
