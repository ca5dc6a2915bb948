"""Laws of the lease of a chip: one process at a time, in whatever process, thread or account it is asked for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from graders.errors import AcceleratorError
from graders.run import lease
from graders.targets import CPU, Target

CHIP = Target("stand-in", "candidate", slots=1)
HOLD = """
import sys, time
from pathlib import Path
from graders.run import lease
from graders.targets import Target
with lease.of(Target("stand-in", "candidate", slots=1), "student-01", float(sys.argv[2]), Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def holding(folder: Path, longest_s: float) -> subprocess.Popen[str]:
    """Another process that has the lease, and a minute of sleep before it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), str(longest_s)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_killed_owner_gives_the_chip_back(tmp_path: Path) -> None:
    """Who waits has the lease as soon as its owner is killed, although the owner's name and time still stand in the file."""
    other = holding(tmp_path, 1000.0)
    threading.Timer(0.2, other.kill).start()
    start = time.monotonic()
    with lease.of(CHIP, "student-02", 60.0, tmp_path) as slot:
        assert (slot, time.monotonic() - start > 0.15) == (0, True)
    other.communicate()


def test_an_owner_that_overstays_is_named(tmp_path: Path) -> None:
    """Past the time that an owner gave itself nobody waits any longer: the error names the process, its work and the next step."""
    other = holding(tmp_path, -1000.0)
    try:
        with pytest.raises(AcceleratorError) as caught, lease.of(CHIP, "student-02", 60.0, tmp_path):
            pass
    finally:
        other.kill()
        other.communicate()
    assert f"in the hands of process {other.pid} (for student-01, since " in str(caught.value)
    assert f"end it (kill {other.pid})" in str(caught.value)


@pytest.mark.parametrize("slots", [1, 2])
def test_no_more_hold_it_than_there_are_slots(tmp_path: Path, slots: int) -> None:
    """Threads that ask at once queue: never more at a time than slots, each with a number of its own, and all get their turn."""
    target = msgspec.structs.replace(CHIP, slots=slots)
    inside: list[int] = []
    most: list[list[int]] = []

    def work() -> None:
        with lease.of(target, "student-01", 60.0, tmp_path) as slot:
            inside.append(slot)
            most.append(sorted(inside))
            time.sleep(0.05)
            inside.remove(slot)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(most) == 4
    assert all(found == sorted(set(found)) for found in most)
    assert max(map(len, most)) == slots


def test_a_target_without_a_chip_needs_no_lease(tmp_path: Path) -> None:
    """On the CPU nothing is opened, nothing is waited for."""
    with lease.of(CPU, "student-01", 60.0, tmp_path) as slot:
        assert (slot, list(tmp_path.iterdir())) == (0, [])


def test_a_link_in_the_place_of_a_lease_is_not_followed(tmp_path: Path) -> None:
    """The folder is everybody's: what somebody else put there is refused, and what it leads to stays as it was."""
    precious = tmp_path / "precious"
    precious.write_text("text")
    for kind in (Path.symlink_to, Path.hardlink_to):
        place = tmp_path / "graders-cpu-0.lease"
        kind(place, precious)
        with pytest.raises(AcceleratorError, match="Next step: remove"), lease.of(CHIP, "student-01", 60.0, tmp_path):
            pass
        place.unlink()
    assert precious.read_text() == "text"
