"""Laws of what the process that holds an accelerator is given: with a device of Linux in the place of the chip's."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from kernel_pipes import Pipe

from graders.kernels.births import Spawn
from graders.kernels.nursery import Zygote

DEVICE = "/dev/zero"  # a candidate has none otherwise


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the host with one file, which every user may read."""
    for parent in (tmp_path, *tmp_path.parents):  # pytest makes its own for itself alone
        if (
            parent.stat().st_uid == os.getuid()
            and parent.is_relative_to(tempfile.gettempdir())
            and parent != Path(tempfile.gettempdir())
        ):
            parent.chmod(0o755)
    (tmp_path / "libtpu").mkdir(0o755)
    (tmp_path / "libtpu" / "libtpu.so").write_text("ELF!")
    return tmp_path / "libtpu"


@pytest.mark.parametrize("holds", [True, False])
def test_a_holder_has_its_device_and_nobody_else(
    zygote: Zygote, level: str, pipe: Pipe, folder: Path, holds: bool
) -> None:
    """At each level, what is named for a holder can be opened, read and locked for, and without its name it is not there."""
    library = str(folder / "libtpu.so")
    more = {"devices": (DEVICE,), "readable": (str(folder),), "environment": {"TPU_WORKER_ID": "5"}} if holds else {}
    spawn = Spawn(
        entry="entries:given",
        argument={"variable": "TPU_WORKER_ID", "paths": [DEVICE, library]},
        isolation=level,
        **more,
    )
    with zygote.spawn(spawn, [pipe.given]) as child:
        found = json.loads(pipe.read())
        assert child.wait(10) is not None
    read, written = found[f"rb {DEVICE}"], found[f"wb {DEVICE}"]
    assert (found["variable"], read, written) == (("5", "\0\0\0\0", "open") if holds else ("", read, written))
    assert (found[f"rb {library}"] == "ELF!", found[f"wb {library}"] == "open", read == "\0\0\0\0") == (
        holds,
        False,
        holds,
    )
    assert (found["memlock"] == 0) == (not holds)
