"""The one owner of ctypes: Linux system calls that Python's `os` lacks.

Comes in: plain numbers and paths. Goes out: nothing, or an `OSError` that names the call. Must not: decide anything.
Numbers are from the kernel's tables for x86_64 and aarch64; calls added since Linux 5.1 have one number on both.
"""

from __future__ import annotations

import ctypes
import os
import platform

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
MNT_DETACH = 2
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE, _EXCHANGE = -100, 0x8000, 2
PDEATHSIG, THP_DISABLE = 1, 41
_DUMPABLE, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS, _AMBIENT = 4, 24, 36, 38, 47
_MOUNT_SETATTR = 442
_LANDLOCK = {"create_ruleset": 444, "add_rule": 445, "restrict_self": 446}
_NUMBERS = {  # pivot_root, capset, seccomp, renameat2
    "x86_64": (155, 126, 317, 316),
    "aarch64": (41, 91, 277, 276),
}

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = [
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("prop", ctypes.c_uint64),
        ("ns", ctypes.c_uint64),
    ]


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapData(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def machine() -> str:
    """The architecture, refused when its call numbers are not known here."""
    name = platform.machine()
    if name not in _NUMBERS:
        raise OSError(f"system call numbers are known for {', '.join(_NUMBERS)} only, and this machine is {name}")
    return name


def _checked(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def _path(path: str | None) -> bytes | None:
    return None if path is None else os.fsencode(path)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2)."""
    result = _libc.mount(_path(source), _path(target), _path(kind), ctypes.c_ulong(flags), _path(data))
    _checked(result, f"mount {source or kind or ''} on {target}")


def unmount(target: str, flags: int = MNT_DETACH) -> None:
    """umount2(2)."""
    _checked(_libc.umount2(_path(target), flags), f"unmount {target}")


def set_mount(target: str, attributes: int, recursive: bool = False) -> None:
    """mount_setattr(2), Linux 5.12: the only call that makes a whole tree of mounts read-only."""
    attr = _MountAttr(attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    size = ctypes.c_size_t(ctypes.sizeof(attr))
    result = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, _path(target), flags, ctypes.byref(attr), size)
    _checked(result, f"mount_setattr {target}")


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2)."""
    _checked(_libc.syscall(_NUMBERS[machine()][0], _path(new), _path(old)), f"pivot_root {new}")


def exchange(one: str, other: str) -> None:
    """renameat2(2) with RENAME_EXCHANGE: two names change what they stand for, at once. Not every file system can."""
    call = _NUMBERS[machine()][3]
    _checked(_libc.syscall(call, _AT_FDCWD, _path(one), _AT_FDCWD, _path(other), _EXCHANGE), f"renameat2 {one}")


def unshare(flags: int) -> None:
    """unshare(2). Python 3.12 has it in `os`; 3.11 has not."""
    _checked(_libc.unshare(flags), f"unshare(0x{flags:x})")


def sethostname(name: str) -> None:
    """sethostname(2)."""
    _checked(_libc.sethostname(name.encode(), len(name)), "sethostname")


def prctl(option: int, *values: int) -> int:
    """prctl(2) with unsigned long arguments."""
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(option, *padded), f"prctl({option})")


def die_with_parent(signal: int) -> None:
    """Ask for `signal` when the parent ends. The kernel forgets it at every change of uid or gid."""
    prctl(PDEATHSIG, signal)


def set_dumpable(value: int) -> None:
    """1 makes /proc/self ours again after a change of uid, which writing uid_map needs."""
    prctl(_DUMPABLE, value)


def refuse_large_pages() -> None:
    """This process and all that come of it get memory in small pages, which takes longer: a look at how much they hold is in time."""
    prctl(THP_DISABLE, 1)


def set_subreaper() -> None:
    """Orphans among the descendants become children of this process."""
    prctl(_SUBREAPER, 1)


def set_no_new_privileges() -> None:
    """No setuid file has any effect from here on."""
    prctl(_NO_NEW_PRIVS, 1)


def drop_capability_bounds(keep: tuple[int, ...] = ()) -> None:
    """Nothing but `keep` can be gained by executing a file. Needs CAP_SETPCAP; without it there is nothing to gain."""
    for capability in range(64):
        if capability not in keep and _libc.prctl(_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break  # EINVAL past the last one, or EPERM


def set_capabilities(keep: tuple[int, ...]) -> None:
    """Exactly `keep`, permitted and effective; nothing inheritable or ambient."""
    prctl(_AMBIENT, 4)
    header, data = _CapHeader(0x20080522, 0), (_CapData * 2)()
    for capability in keep:
        data[capability // 32].permitted |= 1 << capability % 32
        data[capability // 32].effective |= 1 << capability % 32
    _checked(_libc.syscall(_NUMBERS[machine()][1], ctypes.byref(header), data), "capset")


def set_seccomp(program: bytes) -> None:
    """seccomp(SECCOMP_SET_MODE_FILTER) with an assembled BPF program; needs no_new_privs."""
    packed = _Program(len(program) // 8, program)
    _checked(_libc.syscall(_NUMBERS[machine()][2], 1, 0, ctypes.byref(packed)), "seccomp")


def landlock(call: str, *values: int | bytes | None) -> int:
    """landlock_create_ruleset, landlock_add_rule or landlock_restrict_self; bytes are passed by address."""
    passed = [ctypes.c_ulong(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in values]
    return _checked(_libc.syscall(_LANDLOCK[call], *passed), f"landlock_{call}")


def call(number: int, *values: int) -> int:
    """Any system call with integer arguments, by number; the probes use it."""
    return _checked(_libc.syscall(number, *(ctypes.c_long(value) for value in values)), f"system call {number}")
