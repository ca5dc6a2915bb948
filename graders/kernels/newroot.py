"""A new root directory that holds what a Python process needs and nothing else: an allow-list.

Comes in: the interpreter's folders, and what a `Spawn` names: a size, a cache folder, devices, files to read. Goes out: this process, inside the new root.
Must not: bind the course, the home of the instructor, or anything that is not named here.
The order is bubblewrap's: a tmpfs becomes the root first, the old root stands at /old, the binds are made from there,
and /old goes last. So it does not matter that a venv may lie below the folder on which the tmpfs was mounted.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from graders.kernels import syscalls
from graders.kernels.births import Limits, Spawn

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


def system_folders(root: str = "") -> tuple[str, ...]:
    """Where the shared libraries and programs of the system lie, as far as they exist below `root`."""
    return tuple(path for path in _SYSTEM if os.path.lexists(root + path))


def file_limit(limits: Limits) -> int:
    """How many files and folders a private folder of this size may hold."""
    return max(_LEAST_FILES, limits.disk_bytes // _BYTES_PER_FILE)


def enter(spawn: Spawn) -> None:
    """Build the root, mount /proc of the current PID namespace, pivot. Needs a mount namespace of one's own."""
    folders = [(path, os.path.realpath(path)) for path in (*interpreter_folders(), *spawn.readable)]
    resolved_cache = os.path.realpath(spawn.cache) if spawn.cache else None
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    _pivot()
    _private(spawn.limits)  # first, since the interpreter may lie below /tmp
    for path in system_folders(_OLD):
        _carry(path)
    for target, source in folders:
        if not os.path.lexists(target):
            _bind(_OLD + source, target)
    _etc()
    _devices()
    for path in spawn.devices:
        _bind(_OLD + path, path, read_only=False)
    if resolved_cache:
        _bind(_OLD + resolved_cache, CACHE, read_only=not spawn.cache_writable)
    Path("/proc").mkdir()
    # Before /old goes: an unprivileged mount of proc is only allowed where a whole one is in sight.
    syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    syscalls.unmount(_OLD)
    Path(_OLD).rmdir()
    syscalls.set_mount("/", syscalls.ATTR_RDONLY)


def _pivot() -> None:
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("graders", _STAGE, "tmpfs", flags, "size=1m,nr_inodes=1k,mode=755")
    os.chdir(_STAGE)
    Path(_OLD[1:]).mkdir()
    syscalls.pivot_root(".", _OLD[1:])
    os.chdir("/")


def _carry(path: str) -> None:
    """Repeat a system folder: /lib is a symlink into /usr on most systems, a folder on some."""
    if Path(_OLD + path).is_symlink():
        Path(path).symlink_to(Path(_OLD + path).readlink())
    else:
        _bind(_OLD + path, path)


def _bind(source: str, target: str, read_only: bool = True, attributes: int = syscalls.ATTR_NOSUID) -> None:
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    syscalls.mount(source, target, None, syscalls.MS_BIND | syscalls.MS_REC)
    extra = syscalls.ATTR_RDONLY if read_only else 0
    syscalls.set_mount(target, attributes | extra, recursive=True)


def _etc() -> None:
    Path("/etc").mkdir()
    for name, text in _ETC.items():
        Path("/etc", name).write_text(text)
    for name in _ETC_FROM_HOST:
        if Path(_OLD, "etc", name).exists():
            _bind(f"{_OLD}/etc/{name}", f"/etc/{name}")


def _devices() -> None:
    for name in _DEVICES:
        _bind(f"{_OLD}/dev/{name}", f"/dev/{name}", read_only=False)
    Path("/dev/pts").mkdir()
    flags = syscalls.MS_NOSUID | syscalls.MS_NOEXEC
    syscalls.mount("devpts", "/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")
    Path("/dev/ptmx").symlink_to("pts/ptmx")
    for name, link in {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        Path("/dev", name).symlink_to(f"/proc/self/{link}")


def _private(limits: Limits) -> None:
    """One tmpfs, seen at three places, so that home, /tmp and /dev/shm share one size."""
    size = f"size={limits.disk_bytes},nr_inodes={file_limit(limits)},mode=711"
    Path("/private").mkdir()
    syscalls.mount("graders", "/private", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, size)
    for name, target in {"home": HOME, "tmp": TEMPORARY, "shm": "/dev/shm"}.items():
        Path(f"/private/{name}").mkdir(0o700)
        os.chown(f"/private/{name}", UID, GID)  # unprivileged, these are the numbers of the only mapped user
        Path(target).mkdir(parents=True, exist_ok=True)
        syscalls.mount(f"/private/{name}", target, None, syscalls.MS_BIND)
    syscalls.unmount("/private")
    Path("/private").rmdir()


def _below_any(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)
