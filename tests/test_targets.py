"""Laws of targets: what a course may say about where its work is examined."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from graders.config import load
from graders.errors import SettingsError
from graders.run.pipeline import conditions_of
from graders.targets import BUILT_IN, CPU, Target


def course(folder: Path, targets: str = "{}") -> Path:
    """A course folder that says this about targets."""
    lines = (
        'c.CourseDirectory.course_id = "small"',
        "c.Graders.memory_bytes = 2**28",
        f"c.Graders.targets = {targets}",
    )
    (folder / "course_config.py").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize(
    ("name", "candidate", "examiner", "topology"),
    [
        ("cpu", "cpu", "cpu", ""),
        ("tpu", "tpu", "cpu", ""),
        ("tpu-export", "cpu", "tpu", ""),
        ("tpu-compile", "cpu", "cpu", "v5e:1x1"),
    ],
)
def test_who_runs_where(tmp_path: Path, name: str, candidate: str, examiner: str, topology: str) -> None:
    """Every course has the four targets; only where a process holds the chip, it is one that devices are let through for."""
    found = load(course(tmp_path)).target(name)
    assert (found.platform_of("candidate"), found.platform_of("examiner"), found.topology) == (
        candidate,
        examiner,
        topology,
    )
    assert bool(found.devices) == ("tpu" in (candidate, examiner)) == (found.slots == 1) == (found.resource == "TPU")


def test_what_is_said_about_a_target_holds_there_alone(tmp_path: Path) -> None:
    """A setting of a target replaces the built-in one, a variable joins the others, and a limit goes before the course's."""
    settings = load(
        course(tmp_path, '{"tpu": {"memory_bytes": 2**31, "environment": {"TPU_WORKER_ID": "3"}, "slots": 4}}')
    )
    found = settings.target("tpu")
    assert found.environment == BUILT_IN["tpu"].environment | {"TPU_WORKER_ID": "3"}
    assert (found.slots, found.devices) == (4, BUILT_IN["tpu"].devices)
    on = {name: conditions_of(settings, "ps1", target=name) for name in ("tpu", "cpu")}
    assert (on["tpu"].limits.memory_bytes, on["cpu"].limits.memory_bytes) == (2**31, 2**28)
    assert (on["tpu"].target, on["cpu"].target) == (found, CPU)


def test_a_target_crosses_to_a_worker_whole() -> None:
    """What is encoded for another process or machine is decoded to the same target."""
    for one in BUILT_IN.values():
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Target) == one


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        ('{"tpu-v5": {}}', "no target tpu-v5. Did you mean tpu"),
        ('{"tpu": 1}', "['tpu'] is 1; wanted: settings by name"),
        ('{"tpu": {"slot": 1}}', "['tpu']: there is no setting slot. Did you mean slots?"),
        ('{"tpu": {"slots": -1}}', "['tpu']: Expected `int` >= 0"),
        ('{"tpu": {"memory_bytes": 5}}', "['tpu']: The value of the 'memory_bytes' trait"),
        ('{"tpu": {"memory_bytes": "5"}}', "['tpu']: Expected `int`"),
        ('{"tpu": {"topology": "v5e:1x1"}}', "['tpu']: there is no setting topology"),
        ('{"cpu": {"devices": ["/dev/sda"]}}', "['cpu']: there is no setting devices"),
        ('{"tpu": {"environment": {"JAX_PLATFORMS": "cpu"}}}', "JAX_PLATFORMS follows from the target"),
        ('{"tpu": {"environment": "TPU_WORKER_ID"}}', "wanted: variables by name"),
    ],
)
def test_a_mistake_is_answered_with_what_was_wanted(tmp_path: Path, targets: str, told: str) -> None:
    """A wrong name or value is an error that names the file and the setting."""
    with pytest.raises(SettingsError) as caught:
        load(course(tmp_path, targets))
    assert told in str(caught.value)
    assert "course_config.py, c.Graders.targets" in str(caught.value)


def test_a_target_that_is_not_there_is_answered_with_what_was_meant(tmp_path: Path) -> None:
    """Who asks for an unknown target is told which one was probably meant."""
    with pytest.raises(SettingsError, match=r"there is no target tpu-compiled\. Did you mean tpu-compile\?"):
        load(course(tmp_path)).target("tpu-compiled")
