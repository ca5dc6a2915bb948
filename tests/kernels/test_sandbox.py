"""Walls on machines that are not ours: no user namespaces, no Landlock, no privileges."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import msgspec
import pytest
from kernel_pipes import FOLDER

import graders
from graders.kernels import landlock

NOBODY = 12345

_FORBIDDEN = """
import sys
from graders.errors import IsolationError
from graders.kernels import seccomp, syscalls
syscalls.set_no_new_privileges()
seccomp.forbid(*sys.argv[2:])
from graders.kernels.nursery import Spawn, Zygote, best_level
from graders.kernels.probes import doctor
zygote = Zygote(preload=("entries",), path=(sys.argv[1],))
print(best_level())
for level in ("namespaces", "process"):
    try:
        with zygote.spawn(Spawn(entry="entries:fail", isolation=level)) as child:
            print(level, *child.walls.held)
    except IsolationError as error:
        print("refused", error)
zygote.close()
print("broken:", *(probe.name for probe in doctor("process") if not probe.held), sep="|")
"""


def imitate(python: str, *forbidden: str) -> list[str]:
    """What best_level, both levels and doctor say where some calls are refused to us and to all that we start."""
    command = [python, "-P", "-c", _FORBIDDEN, FOLDER, *forbidden]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()


def test_without_namespaces_the_demand_is_refused() -> None:
    """Where namespaces are forbidden, `namespaces` is refused in plain words and never replaced by less."""
    best, refused, process, broken = imitate(sys.executable, "unshare")
    assert best == "process"
    assert refused.startswith("refused The walls of level 'namespaces' could not be put up on this machine")
    assert "unshare" in refused
    assert "c.Graders.isolation" in refused
    assert process.startswith("process ")
    assert broken == "broken:" or not landlock.abi()


def test_without_landlock_open_files_are_not_called_walled(python_for_all: str) -> None:
    """Without Landlock the level `process` does not claim the files wall, and doctor says what is open."""
    _, _, process, broken = imitate(python_for_all, "landlock_create_ruleset", "unshare")
    assert " files" not in process
    assert " signals" in process  # by seccomp then
    assert "|course folder" in broken
    assert "|processes, killing" not in broken


def _runs_as_nobody(python: str) -> bool:
    command = [python, "-P", "-c", "import graders.kernels.nursery"]
    try:
        ended = subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", capture_output=True)
    except OSError:
        return False
    return ended.returncode == 0


@pytest.fixture(scope="module")
def python_for_all(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that every user may run, with what the walls need: ours, or the system's of the same version."""
    if os.geteuid() != 0 or _runs_as_nobody(sys.executable):
        return sys.executable
    system = shutil.which(f"python{sys.version_info.major}.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin")
    if system is None:
        pytest.skip("Python lies where only root may read it, and the system has none of this version")
    place = tmp_path_factory.mktemp("venv")
    ours = [folder for folder in (place, *place.parents) if "pytest-of-" in str(folder)]
    for folder in ours:  # nobody else's, such as /tmp itself
        folder.chmod(0o755)
    subprocess.run([system, "-m", "venv", "--without-pip", str(place)], check=True, timeout=60)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    shutil.copytree(Path(msgspec.__file__).parent, packages / "msgspec")
    shutil.copytree(Path(graders.__file__).parent, packages / "graders", ignore=shutil.ignore_patterns("__pycache__"))
    return str(place / "bin" / "python")


_AS_NOBODY = """
from graders.errors import IsolationError
from graders.kernels.nursery import LEVELS, best_level
from graders.kernels.probes import doctor
for level in LEVELS[: LEVELS.index(best_level()) + 1]:
    print(level, *(f"{probe.name}: {probe.detail}" for probe in doctor(level) if not probe.held), sep="|")
"""


def test_walls_hold_without_privileges(python_for_all: str) -> None:
    """An ordinary user gets the same walls as root, at each level that this machine allows."""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    command = [python_for_all, "-P", "-c", _AS_NOBODY]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd="/", **user)
    assert ended.stderr == ""
    open_at = {line.split("|")[0]: line.split("|")[1:] for line in ended.stdout.splitlines()}
    if not landlock.abi():
        open_at.pop("process")
    assert open_at
    assert not any(open_at.values()), open_at
