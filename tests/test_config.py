"""Laws of course_config.py: what it may say, and what a mistake in it is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from graders.config import load
from graders.errors import SettingsError
from graders.run.pipeline import conditions_of


def course(folder: Path, *lines: str) -> Path:
    """A course folder with one assignment and these lines in its settings."""
    (folder / "source" / "ps1").mkdir(parents=True, exist_ok=True)
    (folder / "course_config.py").write_text("\n".join(['c.CourseDirectory.course_id = "small"', *lines]))
    return folder


def test_a_course_needs_its_name_alone(tmp_path: Path) -> None:
    """Without further lines the settings are those that the guide lists."""
    found = load(course(tmp_path))
    assert (found.examine, found.isolation, found.course_id) == ("sealed", "namespaces", "small")
    assert (found.cell_timeout_s, found.submission_timeout_s, found.processes) == (30, 300, 64)
    assert (found.memory_bytes, found.disk_bytes, found.output_bytes) == (2 * 1024**3, 64 * 1024**2, 200_000)


def test_an_assignment_may_have_limits_of_its_own(tmp_path: Path) -> None:
    """A limit set for one assignment holds there, the others as for the course."""
    lines = (
        "c.Graders.cell_timeout_s = 20",
        'c.Graders.assignments = {"ps1": {"cell_timeout_s": 90, "memory_bytes": 2**30}}',
    )
    settings = load(course(tmp_path, *lines))
    own, other = conditions_of(settings, "ps1"), conditions_of(settings, "ps2")
    assert (own.cell_timeout_s, own.limits.memory_bytes, own.submission_timeout_s) == (90, 2**30, 300)
    assert (other.cell_timeout_s, other.limits.memory_bytes) == (20, 2**31)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("c.Graders.cell_timeout = 3", "no setting c.Graders.cell_timeout. Did you mean cell_timeout_s?"),
        (
            "c.Graders.banana = 3",
            "no setting c.Graders.banana. Known names: answers, assignments, attempts, cell_timeout_s",
        ),
        ("c.Graders.examine = 'seeled'", "examine"),
        ("c.Graders.cell_timeout_s = 0", "cell_timeout_s"),
        ("c.Graders.assignments = {'ps2': {}}", "no assignment ps2. Did you mean ps1?"),
        ("c.Graders.assignments = {'ps1': 3}", "is 3; wanted: limits by name"),
        ("c.Graders.assignments = {'ps1': {'memory': 3}}", "no limit memory. Did you mean memory_bytes?"),
        ("c.Graders.assignments = {'ps1': {'examine': 'kernel'}}", "no limit examine"),
        ("c.Graders.assignments = {'ps1': {'cell_timeout_s': -1}}", "cell_timeout_s"),
        ("c.Graders.assignments = {'ps1': {'cell_timeout_s': 'long'}}", "cell_timeout_s"),
        ("c.Graders.attempts = 0", "attempts"),
        ("c.Graders.assignments = {'ps1': {'counts': 'first'}}", "counts"),
        ("1 / 0", "could not be run: ZeroDivisionError"),
    ],
)
def test_a_mistake_is_answered_with_what_was_wanted(tmp_path: Path, line: str, told: str) -> None:
    """A wrong name or value is an error that names the file, the setting, and what was probably meant."""
    with pytest.raises(SettingsError) as caught:
        load(course(tmp_path, line))
    assert told in str(caught.value)
    assert "course_config.py" in str(caught.value)
