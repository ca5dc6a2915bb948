"""What a hostile candidate would try, for `graders doctor`: each function tries one forbidden thing from inside.

Comes in: a `Bait`, the places that must be out of reach. Goes out: a sentence when the attempt succeeded; an `OSError`
when it was refused. Must not: be run anywhere but behind walls with limits.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from graders.kernels import syscalls
from graders.records import Record

_PTRACE = {"x86_64": 101, "aarch64": 117}
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_IO_URING_SETUP = 425
_MIB = 2**20
_ATTACH = 16


class Bait(Record):
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


def read_shadow(bait: Bait) -> str:
    """Read the password hashes of the host."""
    return f"read {len(Path('/etc/shadow').read_bytes())} bytes"


def read_home(bait: Bait) -> str:
    """List the home folder of the person who grades."""
    seen = set(os.listdir(bait.home)) - set(bait.home_allowed)
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
    syscalls.mount("x", os.getcwd(), "tmpfs", 0)
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
    """Hold a capability, or be able to gain one by executing a file."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    held = int(status["CapEff"], 16) | int(status["CapBnd"], 16)
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
    number = ctypes.c_int()  # a harmless object, so that the import of ctypes is done before the count
    given = {0, 1, 2, *_given}
    found = [fd for fd in range(number.value, 1024) if fd not in given and _is_open(fd)]
    if found:
        return f"found {found}"
    raise OSError("only those that were given")


def fork_bomb(bait: Bait) -> str:
    """Fork until it is refused."""
    for _ in range(2 * bait.tasks):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    return f"made {2 * bait.tasks} processes"


def fill_disk(bait: Bait) -> str:
    """Write twice as much as the private folder may hold, over several files, and wait."""
    for number in range(8):
        with Path(f"big-{number}").open("wb") as file:
            for _ in range(bait.disk_bytes // 4 // _MIB):
                file.write(b"x" * _MIB)
    time.sleep(5)
    return f"wrote {2 * bait.disk_bytes} bytes"


def many_files(bait: Bait) -> str:
    """Make twice as many files as the private folder may hold, and wait."""
    for number in range(2 * bait.files):
        Path(f"small-{number}").touch()
    time.sleep(5)
    return f"made {2 * bait.files} files"


def eat_memory(bait: Bait) -> str:
    """Hold four times the memory, as fast as it can."""
    held = []
    for _ in range(4 * bait.memory_bytes // (8 * _MIB)):
        held.append(bytearray(os.urandom(4096) * (8 * _MIB // 4096)))
    time.sleep(5)
    return f"held {len(held) * 8} MiB"


def eat_memory_in_children(bait: Bait) -> str:
    """Hold four times the memory, spread over children."""
    for _ in range(8):
        if os.fork() == 0:
            held = bytearray(b"x") * (bait.memory_bytes // 2)
            time.sleep(5 + len(held) * 0)
            os._exit(0)
    time.sleep(5)
    return "held it"


def leave_daemon(bait: Bait) -> str:
    """Leave a process behind: the end of a pipe that it holds tells when it dies."""
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    time.sleep(0.2)
    raise OSError("it was started; whether it survives is seen from outside")


def _call(number: int, *values: int) -> str:
    syscalls.call(number, *values)
    return "was allowed"


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


_given: list[int] = []

ATTEMPTS: dict[str, tuple[str, Callable[[Bait], str]]] = {
    "password hashes": ("files", read_shadow),
    "home folder": ("files", read_home),
    "course folder": ("files", read_course),
    "gradebook, reading": ("files", read_gradebook),
    "gradebook, writing": ("files", write_gradebook),
    "first process's root": ("files", through_first_process),
    "writing outside": ("files", write_outside),
    "writing the cache": ("files", write_cache),
    "devices": ("files", open_devices),
    "processes, seeing": ("files", list_processes),
    "processes, killing": ("signals", kill_process),
    "processes, tracing": ("seccomp", trace_process),
    "TCP, connecting": ("network", connect_tcp),
    "TCP, listening": ("network", listen_tcp),
    "UDP": ("network", send_udp),
    "DNS": ("network", ask_dns),
    "hypervisor sockets": ("seccomp", connect_vsock),
    "Unix sockets, abstract": ("network", connect_abstract),
    "Unix sockets, in folders": ("network", connect_unix),
    "mounting": ("seccomp", mount_something),
    "user namespaces": ("seccomp", new_namespace),
    "becoming root": ("no_new_privs", become_root),
    "capabilities": ("no_new_privs", gain_capabilities),
    "hidden memory": ("seccomp", hidden_memory),
    "keyrings and io_uring": ("seccomp", kernel_surface),
    "environment": ("environment", read_environment),
    "inherited descriptors": ("environment", inherited_descriptors),
    "fork bomb": ("rlimits", fork_bomb),
    "disk": ("disk", fill_disk),
    "number of files": ("disk", many_files),
    "memory": ("memory", eat_memory),
    "memory in children": ("memory", eat_memory_in_children),
    "survivors": ("signals", leave_daemon),
}


def main(argument: dict[str, object], fds: list[int]) -> None:
    """Entry inside the walls: try one thing and say on fds[0] what came of it, as JSON. fds[1] is just held."""
    import msgspec

    bait = msgspec.convert(argument["bait"], Bait)
    _given[:] = fds
    from graders.kernels import birth

    birth.opened()
    try:
        done, detail = True, ATTEMPTS[str(argument["name"])][1](bait)
    except (OSError, MemoryError) as error:
        done, detail = False, f"{type(error).__name__}: {error}"
    os.write(fds[0], json.dumps([done, detail]).encode())
