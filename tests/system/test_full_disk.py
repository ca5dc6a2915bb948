"""The law of a full disk, with real kernels: `graders grade` stops with a sentence, and goes on once there is room."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graders import config
from graders.course.assignments import read_assignment
from graders.kernels.nursery import best_level
from graders.results.folders import replace_folder
from graders.run import grading, releasing, trials

pytestmark = pytest.mark.system
ROOT = Path(__file__).resolve().parents[2]
STUDENTS = ("student-01", "student-02", "student-03", "student-04")
# A disk of its own, which nobody else sees and which goes with the shell: filled, used, given room, used again
ON_A_DISK = """
mount -t tmpfs -o size=24m tmpfs disk && cp -r course disk && mkdir disk/temporary && cd disk/course || exit
[ -z "$LITTLE" ] || mount -t tmpfs -o size=$LITTLE tmpfs ../temporary
[ -z "$LEFT" ] || head -c $(( $(df -B1 --output=avail . | tail -1) - LEFT )) /dev/zero > ../ballast
"$@" > ../../first; echo $? > ../../status
rm -f ../ballast; [ -z "$LITTLE" ] || umount ../temporary
"$@" > ../../second
"""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small course, released, with right answers of four students."""
    course = Path(shutil.copytree(ROOT / "tests/submissions/course", tmp_path_factory.mktemp("full") / "course"))
    with (course / "course_config.py").open("a") as file:
        file.write(f"c.Graders.isolation = {best_level()!r}\n")
    settings = config.load(course)
    releasing.release(settings, "ps1")
    grading.prepare(settings, "ps1")
    for student in STUDENTS:
        job = trials.job(course, course / "source/ps1", read_assignment(course, "ps1"), student, {})
        replace_folder(course / "submitted" / student / "ps1", job.files)
    return course


@pytest.mark.parametrize(
    "room", [{"LEFT": "0"}, {"LEFT": "12000"}, {"LEFT": "60000"}, {"LITTLE": "8k"}], ids=lambda room: str(*room.items())
)
def test_grading_goes_on_where_the_disk_was_full(tmp_path: Path, released: Path, room: dict[str, str]) -> None:
    """Whether the course's disk is full or that of temporary files: exit 2, one sentence on what was to be written, how much is free and
    what next, nobody is told a wrong status, and the next run ends with every score."""
    shutil.copytree(released, tmp_path / "course")
    (tmp_path / "disk").mkdir()
    command = ["unshare", "--mount", *["--map-root-user"][: os.getuid() != 0], "sh", "-c", ON_A_DISK, "sh"]
    command += [sys.executable, "-m", "graders.cli", "grade", "ps1", "--json"]
    mine = os.environ | room | {"TMPDIR": str(tmp_path / "disk/temporary")}
    done = subprocess.run(command, cwd=tmp_path, env=mine, stderr=subprocess.PIPE, text=True, check=False)
    assert (tmp_path / "status").read_text() == "2\n"
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith("graders grade: ")
    assert "bytes are free" in sentence
    assert "Next step: " in sentence
    first, second = (
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()] for name in ("first", "second")
    )
    assert {one["score"] for one in first} <= {5}
    assert {one["student"]: (one["status"], one["score"]) for one in second} == dict.fromkeys(STUDENTS, ("graded", 5))
