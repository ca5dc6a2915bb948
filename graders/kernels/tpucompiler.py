"""Where the TPU compiler lies: libtpu, which is installed apart and loaded by the checker alone.

Comes in: the environment of this process. Goes out: a `Library`, or a sentence that says how to get one. Must not: load it, or
put it where a candidate could read it: the walls let a candidate read its Python's own folder, so it lies beside that.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import distributions
from pathlib import Path

from graders.errors import InfrastructureError
from graders.kernels import chips
from graders.records import Record

VERSION = "0.0.52"  # what `make tpu-compiler` installs: it compiles for every JAX from 0.9.2 to 0.12
_TOLD = ("/sys/devices/system/cpu",)  # its allocator counts processors there, and ends the process where it cannot
_NAME = "TPU_LIBRARY_PATH"


class Library(Record, frozen=True):
    """A libtpu on this machine. `version` is "unknown" where the library lies alone."""

    path: str
    version: str


def folder() -> Path:
    """Where `make tpu-compiler` puts it: beside the environment of this Python."""
    return Path(f"{sys.prefix}-tpu")


def readable(library: str) -> tuple[str, ...]:
    """What a process must be able to read in order to load it."""
    return (str(Path(library).parent), *_TOLD)


def find() -> Library:
    """The library that TPU_LIBRARY_PATH names, else the one that was installed.

    Raises:
        InfrastructureError: there is none; the text says how to get it.
    """
    named = os.environ.get(_NAME)
    path = Path(named or chips.library() or folder()).absolute()
    if not path.is_file():
        where = f"{_NAME} names {path}, and there is no such file" if named else f"there is none in {folder()}"
        raise InfrastructureError(
            f"Compiling for a TPU needs libtpu, and {where}. Install it with: make tpu-compiler (137 MB, under Google's "
            f"terms), or: pip install --no-deps --target {folder()} libtpu=={VERSION}"
        )
    beside = distributions(name="libtpu", path=[str(path.parent.parent)])
    return Library(str(path), next((one.version for one in beside), "unknown"))
