"""Entries that the tests run inside the walls; hostile on purpose."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from graders.kernels import birth, syscalls


def hello(argument: dict[str, Any], fds: list[int]) -> None:
    """Say what the argument holds, what lies in the folder, and two random numbers, then leave with status 7."""
    text = f"{argument['text']} {sorted(path.name for path in Path().iterdir())} {random.random()}"
    os.write(fds[0], text.encode())
    sys.exit(7)


def wait(argument: dict[str, Any], fds: list[int]) -> None:
    """Wait for an interrupt, and say that it came."""
    birth.opened()
    try:
        os.write(fds[0], b"ready")
        while True:  # a signal between the last bytecode and the system call would leave one long sleep asleep
            time.sleep(0.05)
    except KeyboardInterrupt:
        os.write(fds[0], b"interrupted")


def fail(argument: dict[str, Any], fds: list[int]) -> None:
    """Fail before opening."""
    raise RuntimeError("no such luck")


def forge(argument: dict[str, Any], fds: list[int]) -> None:
    """After opening, look for the report socket by writing to every descriptor that was not given; then die."""
    birth.opened()
    for fd in range(3, 256):
        if fd not in fds:
            try:
                os.write(fd, b"forged")
            except OSError:
                continue
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(9)


def grow(argument: dict[str, Any], fds: list[int]) -> None:
    """Hold more memory at a steady rate of bytes a second, for ever."""
    birth.opened()
    held, step, start = [], 16 * 2**20, time.monotonic()
    while True:
        held.append(bytearray(b"x" * step))
        ahead = len(held) * step / argument["rate"] - (time.monotonic() - start)
        time.sleep(max(0.0, ahead))


def daemons(argument: dict[str, Any], fds: list[int]) -> None:
    """Leave daemons behind that hold fds[0], then end, or wait when told so."""
    birth.opened()
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork() == 0:
                time.sleep(120)
            os._exit(0)
    os.write(fds[0], b"left")
    if argument.get("wait"):
        time.sleep(120)


def spin(argument: dict[str, Any], fds: list[int]) -> None:
    """Use CPU in a child for a given time."""
    birth.opened()
    if os.fork() == 0:
        end = time.process_time() + argument["seconds"]
        while time.process_time() < end:
            pass
        os._exit(0)
    os.wait()


def cache(argument: dict[str, Any], fds: list[int]) -> None:
    """Try to leave a file in the cache, and say what came of it."""
    import graders.kernels.newroot as newroot

    place = argument.get("place") or newroot.CACHE
    try:
        Path(place, "left").write_text("x")
        os.write(fds[0], b"written")
    except OSError as error:
        os.write(fds[0], type(error).__name__.encode())


def locked(argument: dict[str, Any], fds: list[int]) -> None:
    """Leave a folder that nobody may enter, and say where."""
    Path("locked/inner").mkdir(parents=True)
    Path("locked/inner/file").write_text("x")
    Path("locked").chmod(0)
    os.write(fds[0], str(Path.cwd()).encode())


def processors(argument: dict[str, Any], fds: list[int]) -> None:
    """Say on which processors this process may run."""
    os.write(fds[0], repr(sorted(os.sched_getaffinity(0))).encode())


def large_pages(argument: dict[str, Any], fds: list[int]) -> None:
    """Ask for large pages to be allowed again, and say what the kernel then says of this process."""
    try:
        syscalls.prctl(syscalls.THP_DISABLE, 0)
        asked = "granted"
    except PermissionError:
        asked = "refused"
    [line] = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("THP_enabled")]
    os.write(fds[0], f"{asked} {line.split()[1]}".encode())


def lower(argument: dict[str, Any], fds: list[int]) -> None:
    """Let JAX compile as many functions as asked for, and say what each makes of 2."""
    import jax

    results = [float(jax.jit(lambda x, add=add: x * x + add)(2.0)) for add in range(argument["times"])]
    os.write(fds[0], repr(results).encode())


def given(argument: dict[str, Any], fds: list[int]) -> None:
    """Say what a variable holds, which of some files can be read or, as a device, written, and how much memory may be locked."""
    found: dict[str, Any] = {
        "variable": os.environ.get(argument["variable"], ""),
        "memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
    }
    for mode in ("rb", "wb"):
        for path in argument["paths"]:
            try:
                with Path(path).open(mode, buffering=0) as file:
                    found[f"{mode} {path}"] = file.read(4).decode() if mode == "rb" else "open"
            except OSError as error:
                found[f"{mode} {path}"] = type(error).__name__
    os.write(fds[0], json.dumps(found).encode())
