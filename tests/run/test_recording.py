"""Laws of the execution record: what it tells of our own run, what it keeps to itself, and that it changes no version."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from graders import cli, config
from graders.config import Settings
from graders.course.assignments import EXECUTION_RECORD, read_assignment
from graders.errors import CourseError, VerifyError
from graders.kernels.nursery import best_level
from graders.records import ExecutionRecord
from graders.run import recording, releasing
from graders.targets import CPU, Target

REPOSITORY = Path(__file__).resolve().parents[2]
SECRET = "quetzal"  # stands in the solution, in what it prints and in a hidden test
CONFIG = f"""\
c = get_config()
c.CourseDirectory.course_id = "small"
c.Graders.isolation = {best_level()!r}
"""


def cell(id: str | None, source: str, points: int | None = None, **marks: bool) -> dict[str, Any]:
    """A code cell, with nbgrader's metadata if it has an id."""
    meta = {"grade": False, "solution": False, "locked": False, "task": False} | marks
    meta |= {"grade_id": id, "schema_version": 3} | ({} if points is None else {"points": points})
    made = {"cell_type": "code", "metadata": {"nbgrader": meta} if id else {}, "source": source}
    return made | {"id": id or "none", "execution_count": None, "outputs": []}


def course(folder: Path, solution: str = f"word = '{SECRET}'") -> Settings:
    """A course with one assignment: a plain cell, an answer that prints, a test with two checks and one without."""
    checks = (
        "from graders.checks import check\nwith check('a'):\n    assert word\nwith check('b'):\n    assert len(word)"
    )
    cells = [
        cell(None, "import time\ntime.sleep(0.3)"),
        cell("word", f"# word\n### BEGIN SOLUTION\n{solution}\nprint(word)\n### END SOLUTION", solution=True),
        cell("word-test", f"### BEGIN HIDDEN TESTS\n{checks}\n### END HIDDEN TESTS", 2, grade=True, locked=True),
        cell(
            "same-test", f"### BEGIN HIDDEN TESTS\nassert word == '{SECRET}'\n### END HIDDEN TESTS", 1,
            grade=True, locked=True,
        ),
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    (folder / "source" / "ps").mkdir(parents=True, exist_ok=True)
    (folder / "source" / "ps" / "nb.ipynb").write_text(json.dumps(made))
    for name in ("course_config.py", "nbgrader_config.py"):
        (folder / name).write_text(CONFIG)
    return config.load(folder)


def test_a_record_tells_of_the_run_and_nothing_of_the_solution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`graders record` writes who ran where, with which versions, for how long each cell took and how many checks passed;
    no text and no output of an answer. The version stays what it was, and a release of the same version keeps the record.
    """
    settings = course(tmp_path)
    releasing.release(settings, "ps")
    before = read_assignment(tmp_path, "ps")
    assert cli.main(["--course", str(tmp_path), "record", "ps"]) == 0
    assert "ps: 3 of 3 checks passed" in capsys.readouterr().out
    path = tmp_path / "release" / "ps" / EXECUTION_RECORD
    data = path.read_bytes()
    found = msgspec.json.decode(data, type=ExecutionRecord)
    assert (found.assignment, found.assignment_sha256, found.restarts) == ("ps", before.sha256, 0)
    assert {(one.role, one.platform) for one in found.places} == {("candidate", "cpu"), ("examiner", "cpu")}
    assert all(one.jax and one.jaxlib and one.python and one.devices for one in found.places)
    assert set(found.seconds["nb"]) == {"cell 0", "word", "word-test", "same-test"}
    assert 0.3 <= found.seconds["nb"]["cell 0"] < found.wall_s
    assert found.started.endswith("+00:00")
    assert SECRET.encode() not in data
    assert read_assignment(tmp_path, "ps") == before
    releasing.release(settings, "ps")
    assert path.read_bytes() == data


def test_a_record_of_another_version_does_not_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`graders verify` accepts a record of what is released and refuses one of another version; a release drops that one."""
    releasing.release(course(tmp_path), "ps")
    path, _ = recording.record(config.load(tmp_path), "ps")
    assert cli.main(["--course", str(tmp_path), "verify", str(path)]) == 0
    assert "as it is released now" in capsys.readouterr().out
    old = shutil.copy(path, tmp_path / EXECUTION_RECORD)
    releasing.release(course(tmp_path, f"word = 'quet' + 'zal'  # {SECRET}"), "ps")
    assert not path.exists()
    assert cli.main(["--course", str(tmp_path), "verify", str(old)]) == 2
    assert "Next step: graders record ps" in capsys.readouterr().err
    Path(old).write_text("{}")
    with pytest.raises(VerifyError, match="is no execution record"):
        recording.verify(Path(old), tmp_path)


def test_a_solution_that_fails_leaves_no_record(tmp_path: Path) -> None:
    """There is no record of an assignment that is not released, nor of one whose solution fails its tests."""
    settings = course(tmp_path, "word = 'another'")
    with pytest.raises(CourseError, match="graders release ps"):
        recording.record(settings, "ps")
    releasing.release(settings, "ps", force="to see")
    with pytest.raises(CourseError, match="test same-test"):
        recording.record(settings, "ps")
    assert not (tmp_path / "release" / "ps" / EXECUTION_RECORD).exists()


def test_a_record_of_a_target_stands_beside_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each target has a record of its own, which names it; neither changes the version, a release keeps both, and one without
    full marks is refused, whoever wrote it.
    """
    settings = course(tmp_path)
    releasing.release(settings, "ps")
    before = read_assignment(tmp_path, "ps")
    stand_in = Target("stand-in", "candidate", environment={"MARK": "1"}, device_count=1, slots=1)
    on = msgspec.structs.replace(settings, targets={"cpu": CPU, "stand-in": stand_in})
    made = [recording.record(on, "ps", target=name) for name in on.targets]
    assert [path.name for path, _ in made] == [EXECUTION_RECORD, "execution-record-stand-in.json"]
    assert [recording.verify(path, tmp_path).target for path, _ in made] == ["cpu", "stand-in"]
    assert read_assignment(tmp_path, "ps") == before
    shutil.copytree(tmp_path / "release" / "ps", tmp_path / "before")
    for path, _ in made:
        path.unlink()
    recording.keep(tmp_path / "before", tmp_path, before)
    assert [recording.verify(path, tmp_path) for path, _ in made] == [one for _, one in made]
    path, one = made[1]
    assert cli.main(["--course", str(tmp_path), "verify", str(path)]) == 0
    assert "on target 'stand-in'" in capsys.readouterr().out
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(one, passed=one.checks - 1)))
    with pytest.raises(VerifyError, match="target 'stand-in' in which 2 of 3 checks passed"):
        recording.verify(path, tmp_path)


@pytest.mark.system
@pytest.mark.parametrize(("solution", "status"), [(f"word = '{SECRET}'", 0), ("word = 'another'", 2)])
def test_the_script_of_the_tpu_runner_stores_what_has_full_marks(tmp_path: Path, solution: str, status: int) -> None:
    """On the target cpu it runs here: it leaves a record of each released assignment, and ends with the first that fails."""
    releasing.release(course(tmp_path, solution), "ps", force="to see")
    script = [str(REPOSITORY / "deploy" / "tpu" / "receipt"), "cpu", "kept"]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert (tmp_path / "kept" / "ps" / EXECUTION_RECORD).exists() == (status == 0)


@pytest.mark.parametrize("name", ["performance-02", "transforms-05", "transforms-audit"])
def test_each_lesson_has_a_record_of_this_version(name: str) -> None:
    """The record that stands beside a lesson's release is of the lesson as it is released, and all its checks passed."""
    found = recording.verify(REPOSITORY / "release" / name / EXECUTION_RECORD, REPOSITORY)
    assert found.passed == found.checks > 0
