"""Landlock: the file, network and signal walls of the `process` level, as far as this kernel knows them.

Comes in: folders to read, folders to write. Goes out: the names of the walls now in force. Must not: need privileges.
Constants are those of linux/landlock.h; ABI 1 files, 4 TCP, 5 device ioctls, 6 signals and abstract sockets.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable

from graders.kernels import syscalls

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_BITS = {1: 13, 2: 14, 3: 15, 4: 15}  # file rights known to each ABI; 16 from ABI 5 on
_TCP, _SCOPES = 0b11, 0b11
_VERSION_FLAG, _PATH_BENEATH = 1, 1


def abi() -> int:
    """The Landlock version of this kernel, 0 where there is none."""
    try:
        return syscalls.landlock("create_ruleset", None, 0, _VERSION_FLAG)
    except OSError:
        return 0


def restrict(read: Iterable[str], write: Iterable[str]) -> tuple[str, ...]:
    """Shut this process and all it starts into `read` (with execute) and `write`; returns the walls that hold."""
    version = abi()
    if version < 1:
        return ()
    rights = (1 << _BITS.get(version, 16)) - 1
    attributes = struct.pack("QQQ", rights, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = syscalls.landlock("create_ruleset", attributes[:size], size, 0)
    try:
        for path in read:
            _allow(ruleset, path, (_EXECUTE | _READ_FILE | _READ_DIR) & rights)
        for path in write:
            _allow(ruleset, path, rights)
        syscalls.landlock("restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)
    return ("files",) + (("signals",) if version >= 6 else ())


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _FILE_RIGHTS
        syscalls.landlock("add_rule", ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)
