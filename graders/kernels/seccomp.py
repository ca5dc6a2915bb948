"""A small seccomp filter: everything is allowed but what can hide memory, reach other processes or change the system.

Comes in: a level and pids. Goes out: an assembled BPF program, installed. Must not: be the only wall; it narrows what
the others leave. Each rule is its own test-and-return, so that no jump depends on another rule.
"""

from __future__ import annotations

import errno
import struct

from graders.kernels import syscalls

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE_NEW = 0x7E020000
_AF_UNIX, _SOCK_STREAM = 1, 1
_SHARED, _SHARED_VALIDATE, _ANONYMOUS = 1, 3, 0x20

# name: (x86_64, aarch64); None where the architecture has no such call
_DENIED: dict[str, tuple[int | None, int | None]] = {
    # memory that no resident size shows
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180), "userfaultfd": (323, 282),
    # kernel surface that a notebook never needs
    "bpf": (321, 280), "perf_event_open": (298, 241), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "fanotify_init": (300, 262), "lookup_dcookie": (212, 18), "modify_ldt": (154, None), "personality": (135, 92),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "mbind": (237, 235), "set_mempolicy": (238, 237),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440), "kcmp": (312, 272),
    # the system
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "syslog": (103, 116), "acct": (163, 89), "swapon": (167, 224),
    "swapoff": (168, 225), "quotactl": (179, 60), "quotactl_fd": (443, 443), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161),
    "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None), "vhangup": (153, 58),
    "nfsservctl": (180, 42),
}  # fmt: skip
_CALLS = {
    "clone": (56, 220), "clone3": (435, 435), "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203),
    "prctl": (157, 167), "mmap": (9, 222), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
    "landlock_create_ruleset": (444, 444),
}  # fmt: skip


def _step(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("HBBI", code, true, false, value)


def _refuse(error: int) -> bytes:
    return _step(_RETURN, _ERRNO | error)


def _load_argument(index: int) -> bytes:
    return _step(_LOAD, 16 + 8 * index)  # low half: every tested argument is an int


class _Filter:
    """Collects rules for one architecture."""

    def __init__(self) -> None:
        name = syscalls.machine()
        self._column = list(_ARCH).index(name)
        # A foreign architecture (32-bit calls) has other numbers, so all of it is refused; so is x32.
        self._code = _step(_LOAD, 4) + _step(_EQUAL, _ARCH[name], 1, 0) + _refuse(errno.ENOSYS) + _step(_LOAD, 0)
        if name == "x86_64":
            self._code += _step(_AT_LEAST, 0x40000000, 0, 1) + _refuse(errno.ENOSYS)

    def when(self, call: str, test: bytes, error: int = errno.EPERM) -> None:
        """Refuse `call` when the last step of `test` falls through; the step must skip one on "allowed"."""
        number = (_CALLS | _DENIED)[call][self._column]
        if number is None:
            return
        body = test + _refuse(error) + _step(_LOAD, 0)
        self._code += _step(_EQUAL, number, 0, len(body) // 8) + body

    def always(self, call: str, error: int = errno.EPERM) -> None:
        """Refuse `call` whatever its arguments."""
        self.when(call, b"", error)

    def assembled(self) -> bytes:
        """The whole program."""
        return self._code + _step(_RETURN, _ALLOW)


def _unless(index: int, value: int) -> bytes:
    return _load_argument(index) + _step(_EQUAL, value, 1, 0)


def _if_equal(index: int, value: int) -> bytes:
    return _load_argument(index) + _step(_EQUAL, value, 0, 1)


def _common(rules: _Filter) -> None:
    for call in _DENIED:
        rules.always(call)
    rules.always("clone3", errno.ENOSYS)  # its flags lie in memory; libc falls back to clone
    rules.when("clone", _load_argument(0) + _step(_ANY_BIT, _CLONE_NEW, 0, 1))
    for option in (syscalls.PDEATHSIG, syscalls.THP_DISABLE):
        rules.when("prctl", _if_equal(0, option))
    rules.when("socket", _unless(0, _AF_UNIX))
    # Shared anonymous pages stay in memory when the process that touched them is gone, so no sum of resident sizes
    # shows them: MAP_SHARED is refused unless it maps a file.
    for shared in (_SHARED, _SHARED_VALIDATE):
        masked = _load_argument(3) + _step(_AND, 0xF | _ANONYMOUS)
        rules.when("mmap", masked + _step(_EQUAL, shared | _ANONYMOUS, 0, 1), errno.ENOMEM)


def _outside_sockets(rules: _Filter) -> None:
    rules.always("connect")
    # A datagram socket could send to a path without connecting; only streams and socketpairs are left.
    kind = _load_argument(1) + _step(_AND, 0xF) + _step(_EQUAL, _SOCK_STREAM, 1, 0)
    rules.when("socket", kind)


def _outside_signals(rules: _Filter, pid: int) -> None:
    for call in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        rules.when(call, _load_argument(0) + _step(_EQUAL, pid, 2, 0) + _step(_EQUAL, 0, 1, 0))
    rules.always("pidfd_send_signal")
    rules.always("tkill")


def install(*, own_network: bool, own_signals: bool, pid: int) -> None:
    """Install the filter in this process. `own_*` tells that a namespace or Landlock already keeps those inside."""
    rules = _Filter()
    _common(rules)
    if not own_network:
        _outside_sockets(rules)
    if not own_signals:
        _outside_signals(rules, pid)
    syscalls.set_seccomp(rules.assembled())


def forbid(*calls: str) -> None:
    """Refuse just these calls from here on; tests use it to imitate a machine without user namespaces."""
    rules = _Filter()
    for call in calls:
        rules.always(call)
    syscalls.set_seccomp(rules.assembled())
