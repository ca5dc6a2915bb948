"""Laws of looking for a TPU, on machines that are built of files: none was here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graders.kernels import chips
from graders.kernels.chips import Holder, Roots
from graders.targets import BUILT_IN

LOCK = "import fcntl, sys, time; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"


def machine(folder: Path, *, chip: tuple[str, str] | None, nodes: tuple[str, ...] = ()) -> Roots:
    """A machine with this chip (numbers of device and board) on its bus, these nodes, and a process 7 that holds nothing."""
    roots = Roots(*(str(folder / name) for name in ("sys", "dev", "proc", "lock")))
    for place in (
        "sys/bus/pci/devices/0000:00:01.0",
        "sys/bus/pci/devices/0000:00:05.0",
        "dev/vfio",
        "proc/7/fd",
        "proc/net",
    ):
        (folder / place).mkdir(parents=True)
    told = [("0000:00:01.0", "0x8086", "0x0063", "0x0000"), ("0000:00:05.0", "0x1ae0", *(chip or ("0x0042", "0x0000")))]
    for name, *numbers in told:
        for file, text in zip(("vendor", "device", "subsystem_device"), numbers, strict=True):
            (folder / "sys/bus/pci/devices" / name / file).write_text(f"{text}\n")
    (folder / "proc/7/comm").write_text("python\n")
    for node in ("vfio/vfio", *nodes):
        (folder / "dev" / node).touch()
        (folder / "dev" / node).chmod(0o666)
    return roots


@contextmanager
def locking(path: str) -> Iterator[int]:
    """A process that holds a lock as libtpu does."""
    holder = subprocess.Popen([sys.executable, "-c", LOCK, path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder.pid
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize(
    ("chip", "kind"),
    [
        (("0x0063", "0x0000"), "v5e"),
        (("0x006f", "0x0000"), "v6e"),
        (("0x0027", "0x004e"), "v2"),
        (("0x0027", "0x004f"), "v3"),
    ],
)
def test_a_chip_is_known_by_its_number_on_the_bus(tmp_path: Path, chip: tuple[str, str], kind: str) -> None:
    """The numbers that JAX and tpu-info have for Google's chips name the kind; another vendor's device of that number is none."""
    assert chips.look(machine(tmp_path, chip=chip)).chips == (kind,)


@pytest.mark.parametrize(
    ("chip", "nodes", "told"),
    [
        (None, (), "this machine has no TPU"),
        (None, ("vfio/3",), "there is no libtpu"),  # PCI is hidden in some containers: libtpu has the last word
        (
            ("0x0063", "0x0000"),
            (),
            "a TPU v5e is on the PCI bus, but there is neither /dev/accel* nor /dev/vfio/*: this is a container",
        ),
        (("0x005e", "0x0000"), ("accel0",), "there is no libtpu. Next step: make tpu-compiler"),
    ],
)
def test_what_is_missing_is_told_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chip: tuple[str, str] | None, nodes: tuple[str, ...], told: str
) -> None:
    """A chip without its node is a container's fault, a node without libtpu a matter of installing, and neither is no TPU."""
    monkeypatch.setenv(chips.NAME, str(tmp_path / "none.so"))  # where it is installed too, there is none here
    said = chips.problem(chips.look(machine(tmp_path, chip=chip, nodes=nodes)))
    assert told in said
    assert "Next step: " in said


def test_a_node_that_a_candidate_could_not_open_is_told(tmp_path: Path) -> None:
    """Where the node is its owner's alone, the sentence says how to open it; nothing opens it to find out."""
    roots = machine(tmp_path, chip=("0x0063", "0x0000"), nodes=("vfio/0",))
    node = tmp_path / "dev/vfio/0"
    node.chmod(0o600 if os.geteuid() == 0 else 0)
    assert f"chmod a+rw {node}" in chips.problem(chips.look(roots))


def test_a_process_that_has_the_chip_open_is_named(tmp_path: Path) -> None:
    """Who has the node open holds the chip, whatever else it has open; nobody else does."""
    roots = machine(tmp_path, chip=("0x0063", "0x0000"), nodes=("vfio/0",))
    node = f"{roots.dev}/vfio/0"
    (tmp_path / "proc/7/fd/3").symlink_to("/dev/null")
    assert chips.look(roots).holders == ()
    (tmp_path / "proc/7/fd/9").symlink_to(node)
    assert chips.look(roots).holders == (Holder(7, "python", node),)
    assert chips.held(chips.look(roots).holders) == (
        f"process 7 (python) holds {node}. Next step: wait for it, or end it (kill 7)"
    )


def test_the_lock_file_means_nothing_and_its_lock_everything(tmp_path: Path) -> None:
    """A lock file that a dead process left behind holds nobody up; a lock names its process; neither is taken or removed."""
    roots = machine(tmp_path, chip=("0x0063", "0x0000"), nodes=("vfio/0",))
    with locking(roots.lock) as pid:
        [holder] = chips.look(Roots(roots.sys, roots.dev, "/proc", roots.lock)).holders
        assert (holder.pid, holder.what) == (pid, "libtpu's lock")
        assert holder.name.startswith("python")
    assert Path(roots.lock).exists()
    assert chips.look(roots).holders == ()
    with locking(roots.lock) as again:  # whoever looked does not hold it
        assert again != pid


def test_looking_takes_milliseconds() -> None:
    """A look at this machine costs less than 10 ms of processor time, at its best of ten."""
    costs = []
    for _ in range(10):
        start = time.process_time()
        chips.look()
        costs.append(time.process_time() - start)
    assert min(costs) < 0.01


def test_libtpu_is_found_beside_the_environment(tmp_path: Path) -> None:
    """What `make tpu-compiler` makes lies beside the environment that grades, wherever the course lies."""
    assert chips.library(str(tmp_path / "venv")) in ("", chips.library(str(tmp_path / "other")))
    made = tmp_path / "venv-tpu" / "libtpu" / "libtpu.so"
    made.parent.mkdir(parents=True)
    made.touch()
    assert chips.library(str(tmp_path / "venv")) == str(made)


def test_a_process_of_the_chip_knows_its_platform_and_slot() -> None:
    """JAX is told the platform, so that it does not fall back to another, and `{slot}` is the number of the slot."""
    tpu = BUILT_IN["tpu"]
    changed = type(tpu)("tpu", "candidate", "tpu", environment=tpu.environment | {"TPU_VISIBLE_CHIPS": "{slot}"})
    found = chips.environment(changed, 2)
    assert (found["JAX_PLATFORMS"], found["TPU_SKIP_MDS_QUERY"], found["TPU_VISIBLE_CHIPS"]) == ("tpu", "1", "2")
    assert chips.environment(BUILT_IN["tpu-compile"], 0) == {}
