"""Laws of a `watch` that is killed where it writes; long_kills.py kills at every point, and a real one at random."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CRASHING = Path(__file__).with_name("crashing.py")


def killed_at_every(step: int, home: Path, *more: str) -> list[str]:
    """What was wrong after the next start, and then the number of the last point."""
    command = [sys.executable, str(CRASHING), str(home), str(step), *more]
    if more == ("full",):  # on a disk of its own, which nobody else sees and which goes with the command
        mount = 'mount -t tmpfs -o size=32m tmpfs "$0" && exec "$@"'
        command = ["unshare", "--mount", "--map-root-user", "sh", "-c", mount, str(home), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_the_next_start_makes_good_whatever_was_cut_off(tmp_path: Path) -> None:
    """Killed at a change of a file or of the gradebook, watch loses nothing when it starts again: what was handed in lies there, its report,
    row and page agree, it is examined again only if its report was not stored, and the journal tells of the change."""
    *wrong, last = killed_at_every(20, tmp_path)
    assert wrong == []
    assert int(last) > 100


@pytest.mark.system
def test_a_disk_that_fills_up_is_told_and_made_good(tmp_path: Path) -> None:
    """Wherever the disk is full, watch ends with a sentence that says what was to be written and how much is free, leaves nothing half
    done, and once there is room makes it good as after a kill."""
    *wrong, last = killed_at_every(1, tmp_path, "full")
    assert wrong == []
    assert int(last) > 20
