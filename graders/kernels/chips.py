"""What this machine has of a TPU and who holds it, found in milliseconds without starting anything.

Comes in: where to look. Goes out: `Found`, and what a holder's process is given. Must not: import jax, open a device (to open
/dev/vfio/N is to claim it), or take or remove libtpu's lock file: it stays behind after every use, and only its lock says anything.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import struct
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from graders.records import Record
from graders.targets import Target

_GOOGLE = "0x1ae0"
# jax/_src/hardware_utils.py and google/cloud-accelerator-diagnostics (tpu-info) have these numbers
_CHIPS = {
    "0x0027": "v2 or v3",
    "0x0056": "plc",
    "0x005e": "v4",
    "0x0062": "v5p",
    "0x0063": "v5e",
    "0x006f": "v6e",
    "0x0076": "tpu7x",
}
_BOARDS = {"0x004e": "v2", "0x004f": "v3"}  # two chips of one number
_NODE = re.compile(r"/(accel|vfio/)\d+$")
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux
_EVERYBODY = 0o006
NAME = "TPU_LIBRARY_PATH"


class Roots(Record):
    """Where to look; the machine's own places, unless a test builds others."""

    sys: str = "/sys"
    dev: str = "/dev"
    proc: str = "/proc"
    lock: str = "/tmp/libtpu_lockfile"


HERE = Roots()


class Holder(Record):
    """A process that has a chip, or libtpu's lock, in its hands."""

    pid: int
    name: str
    what: str


class Found(Record):
    """Chips on the PCI bus by kind, device nodes, those that a candidate could not open, holders, and where libtpu is, if it is."""

    chips: tuple[str, ...]
    nodes: tuple[str, ...]
    closed: tuple[str, ...]
    holders: tuple[Holder, ...]
    library: str


def look(roots: Roots = HERE) -> Found:
    """Look at this machine: 1 ms, and 5 ms more where hundreds of processes run."""
    nodes = tuple(path for path in _matches(roots.dev, ("/dev/accel*", "/dev/vfio/*")) if _NODE.search(path))
    holders = (*_open_in(nodes, roots.proc), *_locked_by(roots))
    return Found(
        _on_pci(roots.sys), nodes, tuple(path for path in nodes if not _open_to_candidates(path)), holders, library()
    )


def problem(found: Found) -> str:
    """Why no process can have a chip now, and the next step; empty when nothing speaks against it."""
    if not found.nodes and not found.chips:
        return (
            "this machine has no TPU: there is none on its PCI bus, and neither /dev/accel* nor /dev/vfio/*. "
            "Next step: grade on a TPU VM (docs/tpu.md), or with --target tpu-compile, which needs no chip"
        )
    if not found.nodes:
        return (
            f"a TPU {found.chips[0]} is on the PCI bus, but there is neither /dev/accel* nor /dev/vfio/*: this is a container that was "
            "not given its device. Next step: start the container with that device (docs/tpu.md)"
        )
    if found.closed:
        return (
            f"{found.closed[0]} is there, but a candidate, which is nobody in particular, could not open it. "
            f"Next step: let every user read and write it (chmod a+rw {found.closed[0]})"
        )
    if not found.library:
        return f"there is no libtpu. Next step: {INSTALL}"
    return held(found.holders)


def missing(target: Target, found: Found) -> str:
    """What a machine lacks for a target, and the next step; empty when it lacks nothing. Whoever has the chip will give it back."""
    if target.topology and not found.library:
        return f"there is no libtpu, which compiles for {target.topology}. Next step: {INSTALL}"
    return problem(msgspec.structs.replace(found, holders=())) if target.platform == "tpu" else ""


def held(holders: tuple[Holder, ...]) -> str:
    """Who has the chip, and the next step; empty when nobody has."""
    if not holders:
        return ""
    told = ", ".join(dict.fromkeys(f"process {one.pid} ({one.name}) holds {one.what}" for one in holders))
    return f"{told}. Next step: wait for it, or end it (kill {holders[0].pid})"


INSTALL = "make tpu-compiler, or pip install 'graders[tpu]' into the environment that grades (docs/tpu.md)"


def library(prefix: str = sys.prefix) -> str:
    """Where libtpu.so is: where TPU_LIBRARY_PATH says, beside the environment that grades, or installed in it; empty when it is not there."""
    named = os.environ.get(NAME, "")
    if named:
        return named if Path(named).is_file() else ""
    beside = Path(f"{prefix}-tpu", "libtpu", "libtpu.so")
    if beside.is_file():
        return str(beside)
    spec = find_spec("libtpu")
    installed = [Path(folder, "libtpu.so") for folder in (spec.submodule_search_locations or ())] if spec else []
    return next((str(path) for path in installed if path.is_file()), "")


def environment(target: Target, slot: int) -> dict[str, str]:
    """What is set before the process of the holder starts; nothing for a target without one."""
    if not target.holder:
        return {}
    where = library() if target.platform == "tpu" else ""
    ours = {"JAX_PLATFORMS": target.platform} | ({NAME: where} if where else {})
    return {name: value.replace("{slot}", str(slot)) for name, value in target.environment.items()} | ours


def given(target: Target, slot: int) -> dict[str, Any]:
    """What the holder's `Spawn` has more than another."""
    return {"environment": environment(target, slot), "devices": devices(target), "readable": readable(target)}


def devices(target: Target) -> tuple[str, ...]:
    """The device nodes that the holder is given."""
    return _matches("/dev", target.devices)


def readable(target: Target) -> tuple[str, ...]:
    """What more the holder may read: what the target names, and libtpu."""
    where = library() if target.platform == "tpu" else ""
    return (*_matches("/", target.readable), *([str(Path(where).parent)] if where else []))


def _matches(root: str, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """What is there; a pattern below /dev is looked for below another root."""
    below = [pattern.replace("/dev", root, 1) if root != "/" else pattern for pattern in patterns]
    return tuple(path for pattern in below for path in sorted(glob.glob(pattern)))


def _on_pci(root: str) -> tuple[str, ...]:
    found = []
    for vendor in sorted(Path(root, "bus/pci/devices").glob("*/vendor")):
        chip = _CHIPS.get(_word(vendor.with_name("device"))) if _word(vendor) == _GOOGLE else None
        if chip is not None:
            found.append(_BOARDS.get(_word(vendor.with_name("subsystem_device")), chip) if " " in chip else chip)
    return tuple(found)


def _word(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _open_to_candidates(node: str) -> bool:
    """Root's candidates are somebody else, whom only the last three bits of the mode concern."""
    if os.geteuid() == 0:
        return os.stat(node).st_mode & _EVERYBODY == _EVERYBODY
    return os.access(node, os.R_OK | os.W_OK)


def _open_in(nodes: tuple[str, ...], proc: str) -> list[Holder]:
    """Processes that have one of the nodes open, as far as this user may look."""
    found = []
    for folder in Path(proc).iterdir() if nodes else ():
        if not folder.name.isdigit():
            continue
        try:
            links = {os.readlink(entry) for entry in (folder / "fd").iterdir()}
        except OSError:
            continue  # it has ended, or is somebody else's
        found += [Holder(int(folder.name), _word(folder / "comm"), node) for node in nodes if node in links]
    return found


def _locked_by(roots: Roots) -> list[Holder]:
    """Who has libtpu loaded: asked without taking the lock."""
    try:
        fd = os.open(roots.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return []
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    finally:
        os.close(fd)
    # a holder in another PID namespace has no number here
    return (
        []
        if kind == fcntl.F_UNLCK
        else [Holder(pid, _word(Path(roots.proc, str(pid), "comm")) or "?", "libtpu's lock")]
    )
