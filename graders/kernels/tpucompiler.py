"""The TPU compiler, libtpu: its version, and what a process needs to load it. Only the checker does.

Comes in: where `chips` finds it. Goes out: a `Library`, or a sentence that says how to get one. Must not: load it. It is installed
beside the environment that grades and not into it, since a candidate may read all of that.
"""

from __future__ import annotations

import os
from importlib.metadata import distributions
from pathlib import Path

from graders.errors import InfrastructureError
from graders.kernels import chips
from graders.records import Record

VERSION = "0.0.52"  # what `make tpu-compiler` installs: it compiles for every JAX from 0.9.2 to 0.12
_TOLD = ("/sys/devices/system/cpu",)  # its allocator counts processors there, and ends the process where it cannot


class Library(Record, frozen=True):
    """A libtpu on this machine. `version` is "unknown" where the library lies alone."""

    path: str
    version: str


def readable(library: str) -> tuple[str, ...]:
    """What a process must be able to read in order to load it."""
    return (str(Path(library).parent), *_TOLD)


def find() -> Library:
    """The libtpu of this machine.

    Raises:
        InfrastructureError: there is none; the text says how to get it.
    """
    path, named = chips.library(), os.environ.get(chips.NAME)
    if not path:
        where = f"{chips.NAME} names {named}, where there is no file" if named else "there is none here"
        raise InfrastructureError(f"Compiling for a TPU needs libtpu, and {where}. Next step: {chips.INSTALL}.")
    beside = distributions(name="libtpu", path=[str(Path(path).absolute().parent.parent)])
    return Library(str(Path(path).absolute()), next((one.version for one in beside), "unknown"))
