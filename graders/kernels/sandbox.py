"""The two levels of walls. A process asks for one of them and is inside it, or gets an `OSError`: never a weaker one.
A `ValueError` tells of what the spawn asks for, not of the walls.

Comes in: a `Spawn`. Goes out: `Walls`, the names of what is really in force. Must not: fall back, or run foreign code.

    namespaces   its own user, mount, PID, network, IPC and UTS namespaces; a new root (newroot); no capabilities
    process      Landlock where the kernel has it; network and signals shut by seccomp; its own session

Both: rlimits, no_new_privs, seccomp, a clean environment, a private folder. The warden watches resident memory.
"""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path, PurePosixPath

from graders.kernels import landlock, newroot, seccomp, syscalls
from graders.kernels.births import Spawn, Walls, data_limit, task_limit

_OPEN_FILES = 256  # a kernel has 60; full sockets are memory of the kernel, 200 kB each
# Here the count is the user's, other candidates included: it only keeps a fork bomb finite until the warden sees it.
_OTHERS = 4096
CACHE_FD = 250  # out of the way of those that a birth is given
HELD_CACHE = f"/proc/self/fd/{CACHE_FD}"  # the cache at the `process` level
_MAY_READ_ALL = 2  # CAP_DAC_READ_SEARCH
_KEEPCAPS = 8
_READABLE = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/etc/ld.so.cache",
             "/etc/alternatives", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime",
             "/dev/random", "/dev/urandom")  # fmt: skip
_COMMON = ("no_new_privs", "seccomp", "rlimits", "environment", "memory", "disk")


def leave_pid_namespace() -> bool:
    """Make the next child the first process of a new PID namespace. True when privileges of our own sufficed.

    Without them the caller moves into a user namespace, in which it may do the rest; it must be single-threaded.
    """
    try:
        syscalls.unshare(syscalls.NEWPID)
    except PermissionError:
        uid, gid = os.geteuid(), os.getegid()
        syscalls.unshare(syscalls.NEWUSER | syscalls.NEWPID)
        _map_ids(uid, gid)
        return False
    return True


def _map_ids(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{newroot.UID} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{newroot.GID} {gid} 1")


def enter_namespaces(spawn: Spawn, privileged: bool) -> Walls:
    """Put up the `namespaces` level around this process, the first of its PID namespace."""
    syscalls.unshare(syscalls.NEWNS | syscalls.NEWNET | syscalls.NEWIPC | syscalls.NEWUTS)
    syscalls.sethostname("candidate")
    newroot.enter(spawn)
    if privileged:
        _become_nobody()
        syscalls.set_dumpable(1)
        # Counts of processes are kept per user and user namespace, so each candidate needs one of its own.
        syscalls.unshare(syscalls.NEWUSER)
        _map_ids(newroot.UID, newroot.GID)
    else:
        syscalls.set_mount("/proc", syscalls.ATTR_RDONLY)  # the real uid may own files of /proc/sys
    syscalls.die_with_parent(signal.SIGKILL)
    _furnish(spawn, newroot.HOME, newroot.TEMPORARY)
    _limit(spawn, task_limit(spawn.limits))
    _give_up_privileges()
    seccomp.install(own_network=True, own_signals=True, pid=os.getpid())
    names = ("user", "mount", "pid", "network", "ipc", "uts", "files", "signals", "no_capabilities")
    return Walls(level="namespaces", held=names + _COMMON)


def enter_process_level(spawn: Spawn, private: str) -> Walls:
    """Put up the `process` level around this process; `private` is an empty folder that it may write."""
    home, temporary = f"{private}/home", f"{private}/tmp"
    if spawn.cache:
        _hold_cache(spawn.cache)
    reach_all = _drop_user() if os.geteuid() == 0 else False
    syscalls.die_with_parent(signal.SIGKILL)
    Path(home).mkdir(0o700)
    Path(temporary).mkdir(0o700)
    _furnish(spawn, home, temporary)
    _limit(spawn, _tasks_of_this_user() + task_limit(spawn.limits) + _OTHERS)
    _give_up_privileges((_MAY_READ_ALL,) if reach_all else ())
    held = landlock.restrict(*_allowed(spawn, private))
    if reach_all and "files" not in held:
        raise OSError(_unreachable())
    seccomp.install(own_network=False, own_signals="signals" in held, pid=os.getpid())
    own = ("network", "signals") + (() if reach_all else ("no_capabilities",))
    return Walls(level="process", held=tuple(dict.fromkeys(held + own + _COMMON)))


def _allowed(spawn: Spawn, private: str) -> tuple[list[str], list[str]]:
    read = [*newroot.interpreter_folders(), *newroot.system_folders(), *_READABLE, *spawn.readable]
    write = [private, "/dev/null", *spawn.devices]
    if spawn.cache:
        (write if spawn.cache_writable else read).append(HELD_CACHE)
    return read, write


def _hold_cache(folder: str) -> None:
    """Open the cache while this is still who may: a course often lies in a folder that nobody else may enter."""
    found = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    os.dup2(found, CACHE_FD)
    os.close(found)


def _become_nobody() -> None:
    os.setgroups([])
    os.setresgid(newroot.GID, newroot.GID, newroot.GID)
    os.setresuid(newroot.UID, newroot.UID, newroot.UID)


def _drop_user() -> bool:
    """Become nobody. True when Python lies where nobody may read, so that one capability has to stay."""
    syscalls.drop_capability_bounds((_MAY_READ_ALL,))
    syscalls.prctl(_KEEPCAPS, 1)
    _become_nobody()
    if all(os.access(path, os.R_OK | os.X_OK) for path in newroot.interpreter_folders()):
        return False
    syscalls.set_capabilities((_MAY_READ_ALL,))
    if not landlock.abi():
        raise OSError(_unreachable())
    return True


def _unreachable() -> str:
    return (
        "Python lies below a folder that only root may enter, and without Landlock that cannot be opened to a "
        "candidate alone. Install Python where every user may read it, or grade as an ordinary user"
    )


def _give_up_privileges(keep: tuple[int, ...] = ()) -> None:
    syscalls.drop_capability_bounds(keep)
    syscalls.set_capabilities(keep)
    syscalls.set_no_new_privileges()


def _furnish(spawn: Spawn, home: str, temporary: str) -> None:
    """Write the files, go there, and make the environment the candidate's."""
    os.chdir(home)
    _write_files(spawn)
    # JAX itself sets some for libtpu where it finds a chip
    ours = ("TPU_", "LIBTPU_") if spawn.environment else ()
    kept = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT or name.startswith(ours)}
    os.environ.clear()
    os.environ.update(kept, HOME=home, TMPDIR=temporary, IPYTHONDIR=f"{temporary}/.ipython", USER="candidate")
    os.environ.update(PATH="/usr/bin:/bin", LANG="C.UTF-8", LC_ALL="C.UTF-8")
    os.environ.update(
        PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1"
    )  # there is no network: do not try for a minute
    os.environ.update(spawn.environment)


def _write_files(spawn: Spawn) -> None:
    for name, data in spawn.files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"{name!r} is not a name inside the private folder; wanted a relative path without '..'")
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)
        except OSError as error:
            room = spawn.limits.disk_bytes
            raise ValueError(f"{name!r} could not be put into the private folder of {room} bytes: {error}") from error


_ENVIRONMENT = frozenset({"JAX_PLATFORMS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "TF_CPP_MIN_LOG_LEVEL",
                          "PYTHONHASHSEED", "XLA_FLAGS", "JAX_ENABLE_X64"})  # fmt: skip


def _limit(spawn: Spawn, tasks: int) -> None:
    limits = spawn.limits
    wanted = {
        resource.RLIMIT_NPROC: tasks,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_FSIZE: limits.disk_bytes,
        resource.RLIMIT_DATA: data_limit(limits),
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }
    if not spawn.devices:  # an accelerator's driver locks the memory from which it reads
        wanted[resource.RLIMIT_MEMLOCK] = 0
    for which, value in wanted.items():
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def _tasks_of_this_user() -> int:
    """Threads that already count against this user's RLIMIT_NPROC."""
    count, uid = 0, os.getuid()
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                count += len(list(Path(f"/proc/{entry.name}/task").iterdir()))
        except OSError:
            continue  # it ended while we counted
    return count
