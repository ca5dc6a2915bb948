"""A new root directory that holds what a Python process needs and nothing else: an allow-list.

Comes in: the interpreter's folders, a size, a cache folder. Goes out: this process, inside the new root.
Must not: bind the course, the home of the instructor, or anything that is not named here.
The order is bubblewrap's: a tmpfs becomes the root first, the old root stands at /old, the binds are made from there,
and /old goes last. So it does not matter that a venv may lie below the folder on which the tmpfs was mounted.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from graders.kernels import syscalls
from graders.kernels.births import Limits

HOME, TEMPORARY, CACHE = "/home/candidate", "/tmp", "/cache"
UID = GID = 65534
_STAGE, _OLD = "/tmp", "/old"
_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin")
_DEVICES = ("null", "full", "random", "urandom")  # no zero: a shared mapping of it is memory that nobody's size shows
_ETC_FROM_HOST = ("ld.so.cache", "alternatives")
_ETC = {
    "passwd": f"candidate:x:{UID}:{GID}::{HOME}:/bin/sh\n",
    "group": f"candidate:x:{GID}:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_BYTES_PER_FILE, _LEAST_FILES = 16384, 256


def interpreter_folders() -> tuple[str, ...]:
    """The prefixes of this interpreter, as named and as resolved, outermost first, none twice."""
    named = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    wanted = named | {os.path.realpath(path) for path in named}
    return tuple(path for path in sorted(wanted, key=len) if path != "/" and not _below_any(path, _SYSTEM))


def system_folders() -> tuple[str, ...]:
    """Where the shared libraries and programs of the system lie, as far as they exist."""
    return tuple(path for path in _SYSTEM if os.path.lexists(path))


def file_limit(limits: Limits) -> int:
    """How many files and folders a private folder of this size may hold."""
    return max(_LEAST_FILES, limits.disk_bytes // _BYTES_PER_FILE)


def enter(limits: Limits, cache: str | None, cache_writable: bool) -> None:
    """Build the root, mount /proc of the current PID namespace, pivot. Needs a mount namespace of one's own."""
    folders = [(path, os.path.realpath(path)) for path in interpreter_folders()]
    resolved_cache = os.path.realpath(cache) if cache else None
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    _pivot()
    _private(limits)  # first, since the interpreter may lie below /tmp
    for path in system_folders_of_old():
        _carry(path)
    for target, source in folders:
        if not os.path.lexists(target):
            _bind(_OLD + source, target)
    _etc()
    _devices()
    if resolved_cache:
        _bind(_OLD + resolved_cache, CACHE, read_only=not cache_writable)
    os.mkdir("/proc")
    # Before /old goes: an unprivileged mount of proc is only allowed where a whole one is in sight.
    syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    syscalls.unmount(_OLD)
    os.rmdir(_OLD)
    syscalls.set_mount("/", syscalls.ATTR_RDONLY)


def _pivot() -> None:
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("graders", _STAGE, "tmpfs", flags, "size=1m,nr_inodes=1k,mode=755")
    os.chdir(_STAGE)
    os.mkdir(_OLD[1:])
    syscalls.pivot_root(".", _OLD[1:])
    os.chdir("/")


def system_folders_of_old() -> tuple[str, ...]:
    """The system folders as the old root has them."""
    return tuple(path for path in _SYSTEM if os.path.lexists(_OLD + path))


def _carry(path: str) -> None:
    """Repeat a system folder: /lib is a symlink into /usr on most systems, a folder on some."""
    if os.path.islink(_OLD + path):
        os.symlink(os.readlink(_OLD + path), path)
    else:
        _bind(_OLD + path, path)


def _bind(source: str, target: str, read_only: bool = True, attributes: int = syscalls.ATTR_NOSUID) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        Path(target).touch()
    syscalls.mount(source, target, None, syscalls.MS_BIND | syscalls.MS_REC)
    extra = syscalls.ATTR_RDONLY if read_only else 0
    syscalls.set_mount(target, attributes | extra, recursive=True)


def _etc() -> None:
    os.mkdir("/etc")
    for name, text in _ETC.items():
        Path("/etc", name).write_text(text)
    for name in _ETC_FROM_HOST:
        if os.path.exists(f"{_OLD}/etc/{name}"):
            _bind(f"{_OLD}/etc/{name}", f"/etc/{name}")


def _devices() -> None:
    for name in _DEVICES:
        _bind(f"{_OLD}/dev/{name}", f"/dev/{name}", read_only=False)
    os.mkdir("/dev/pts")
    flags = syscalls.MS_NOSUID | syscalls.MS_NOEXEC
    syscalls.mount("devpts", "/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")
    os.symlink("pts/ptmx", "/dev/ptmx")
    for name, link in {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        os.symlink(f"/proc/self/{link}", f"/dev/{name}")


def _private(limits: Limits) -> None:
    """One tmpfs, seen at three places, so that home, /tmp and /dev/shm share one size."""
    size = f"size={limits.disk_bytes},nr_inodes={file_limit(limits)},mode=711"
    os.mkdir("/private")
    syscalls.mount("graders", "/private", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, size)
    for name, target in {"home": HOME, "tmp": TEMPORARY, "shm": "/dev/shm"}.items():
        os.mkdir(f"/private/{name}", 0o700)
        os.chown(f"/private/{name}", *_owner())
        os.makedirs(target, exist_ok=True)
        syscalls.mount(f"/private/{name}", target, None, syscalls.MS_BIND)
    syscalls.unmount("/private")
    os.rmdir("/private")


def _owner() -> tuple[int, int]:
    """The candidate's ids: real ones when root builds, the only mapped ones otherwise (which are the same number)."""
    return UID, GID


def _below_any(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)
