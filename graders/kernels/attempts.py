"""The table of everything that `graders doctor` tries, and the entry that tries one of them inside the walls.

Comes in: a name of the table and a `Bait`. Goes out: [succeeded, detail] as JSON on a pipe.
Must not: judge; the outside does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import msgspec

from graders.kernels import birth, gluttony, trespass
from graders.kernels.trespass import Bait

# what is tried: (the wall that is to refuse it, the attempt)
ATTEMPTS: dict[str, tuple[str, Callable[[Bait], str]]] = {
    "password hashes": ("files", trespass.read_shadow),
    "home folder": ("files", trespass.read_home),
    "course folder": ("files", trespass.read_course),
    "gradebook, reading": ("files", trespass.read_gradebook),
    "gradebook, writing": ("files", trespass.write_gradebook),
    "first process's root": ("files", trespass.through_first_process),
    "writing outside": ("files", trespass.write_outside),
    "writing the cache": ("files", trespass.write_cache),
    "devices": ("files", trespass.open_devices),
    "processes, seeing": ("files", trespass.list_processes),
    "processes, killing": ("signals", trespass.kill_process),
    "processes, tracing": ("seccomp", trespass.trace_process),
    "TCP, connecting": ("network", trespass.connect_tcp),
    "TCP, listening": ("network", trespass.listen_tcp),
    "UDP": ("network", trespass.send_udp),
    "DNS": ("network", trespass.ask_dns),
    "hypervisor sockets": ("seccomp", trespass.connect_vsock),
    "Unix sockets, abstract": ("network", trespass.connect_abstract),
    "Unix sockets, in folders": ("network", trespass.connect_unix),
    "mounting": ("seccomp", trespass.mount_something),
    "user namespaces": ("seccomp", trespass.new_namespace),
    "becoming root": ("no_new_privs", trespass.become_root),
    "capabilities": ("no_new_privs", trespass.gain_capabilities),
    "hidden memory": ("seccomp", trespass.hidden_memory),
    "keyrings and io_uring": ("seccomp", trespass.kernel_surface),
    "environment": ("environment", trespass.read_environment),
    "inherited descriptors": ("environment", trespass.inherited_descriptors),
    "fork bomb": ("rlimits", gluttony.fork_bomb),
    "disk": ("disk", gluttony.fill_disk),
    "number of files": ("disk", gluttony.many_files),
    "memory": ("memory", gluttony.eat_memory),
    "memory in large pages": ("memory", gluttony.eat_memory_in_large_pages),
    "memory in children": ("memory", gluttony.eat_memory_in_children),
    "survivors": ("signals", gluttony.leave_daemon),
}


def main(argument: dict[str, object], fds: list[int]) -> None:
    """Entry inside the walls: try one thing and say on fds[0] what came of it, as JSON. fds[1] is just held."""
    bait = msgspec.convert(argument["bait"], Bait)
    bait = msgspec.structs.replace(bait, given=(*bait.given, *fds))
    birth.opened()
    try:
        done, detail = True, ATTEMPTS[str(argument["name"])][1](bait)
    except (OSError, MemoryError) as error:
        done, detail = False, f"{type(error).__name__}: {error}"
    os.write(fds[0], json.dumps([done, detail]).encode())
