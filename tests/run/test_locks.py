"""Laws of the lock: one at a time, it says who, and whoever is killed holds nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graders.errors import BusyError
from graders.run.locks import holding

HOLD = """
import subprocess, sys, time
from pathlib import Path
from graders.run.locks import holding
with holding(Path(sys.argv[1]), "ps1", "watch"):
    child = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    print(child.pid, flush=True)
    time.sleep(60)
"""


def test_a_second_is_told_who_holds_it(tmp_path: Path) -> None:
    """Whoever wants a lock that is held is told the process, what it does and since when; another assignment is free, and so is the
    same one for whoever holds it."""
    with ThreadPoolExecutor(1) as other, holding(tmp_path, "ps1", "grade"):
        with pytest.raises(BusyError, match=rf"process {os.getpid()} on .* \(graders grade\), since 20\d\d-.* kill"):
            other.submit(hold_once, tmp_path, "ps1").result()
        other.submit(hold_once, tmp_path, "ps2").result()
        hold_once(tmp_path, "ps1")
        with pytest.raises(BusyError, match=r"\(graders grade\)"):
            other.submit(hold_once, tmp_path, "ps1").result()
    hold_once(tmp_path, "ps1")


def hold_once(course: Path, assignment: str) -> None:
    """Get the lock now or fail, and give it back."""
    with holding(course, assignment, "regrade", patience_s=0):
        pass


def test_an_error_gives_it_back(tmp_path: Path) -> None:
    """What is raised inside frees the lock."""
    with pytest.raises(ZeroDivisionError), holding(tmp_path, "ps1", "grade"):
        1 / 0
    with ThreadPoolExecutor(1) as other:
        other.submit(hold_once, tmp_path, "ps1").result()


def test_a_killed_owner_holds_nothing(tmp_path: Path) -> None:
    """kill -9 frees the lock, even while a child of the killed one lives on."""
    owner = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    child = int(owner.stdout.readline())
    try:
        with pytest.raises(BusyError, match=rf"process {owner.pid} "):
            holding(tmp_path, "ps1", "grade", patience_s=0).__enter__()
        owner.kill()
        owner.wait()
        with holding(tmp_path, "ps1", "grade", patience_s=5):
            os.kill(child, 0)
    finally:
        os.kill(child, 9)
        owner.stdout.close()
