"""Laws of the gate: what it tries on an assignment, what it refuses, and what a release does about that."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graders import cli, config
from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.errors import CourseError
from graders.findings import ExerciseFigures, Gate, Level
from graders.kernels.nursery import Zygote, best_level
from graders.results import gatepage
from graders.run import gating, pipeline, releasing, trials

CONFIG = f"""\
c = get_config()
c.CourseDirectory.course_id = "small"
c.IncludeHeaderFooter.header = "source/header.ipynb"
c.Graders.isolation = {best_level()!r}
"""
CHECK = "from graders.checks import check, expect\n"


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """One seed and one run where a test is not about seeds."""
    monkeypatch.setattr(gating, "SEEDS", 1)
    monkeypatch.setattr(gating, "TIMES", 1)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """A warm process."""
    with pipeline.new_zygote() as started:
        yield started


def cell(id: str, source: str, points: float | None = None, **marks: bool) -> dict[str, Any]:
    """A code cell with nbgrader's metadata."""
    meta: dict[str, Any] = {"grade_id": id, "schema_version": 3}
    meta |= {"grade": False, "solution": False, "locked": False, "task": False} | marks
    meta |= {} if points is None else {"points": points}
    return {
        "cell_type": "code",
        "id": id,
        "metadata": {"nbgrader": meta},
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def answer(id: str, solution: str, stub: str = "") -> dict[str, Any]:
    """An answer cell."""
    return cell(id, f"{stub}### BEGIN SOLUTION\n{solution}\n### END SOLUTION", solution=True)


def judge(id: str, hidden: str, points: float = 1, visible: str = "") -> dict[str, Any]:
    """A test cell."""
    return cell(
        f"{id}-test",
        f"{visible}### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS",
        points,
        grade=True,
        locked=True,
    )


def course(folder: Path, cells: list[dict[str, Any]], answers: str = "", more: str = "") -> Settings:
    """A course folder with one assignment `ps` of one notebook `nb`."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    head = {"cell_type": "markdown", "id": "head", "metadata": {}, "source": "Hand in by Friday."}
    (folder / "source" / "ps").mkdir(parents=True)
    for path, held in (("ps/nb.ipynb", cells), ("header.ipynb", [head])):
        made = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": held}
        (folder / "source" / path).write_text(json.dumps(made))
    for name in ("course_config.py", "nbgrader_config.py"):
        (folder / name).write_text(CONFIG + more)
    if answers:
        (folder / "tests" / "answers" / "ps").mkdir(parents=True)
        (folder / "tests" / "answers" / "ps" / "known.toml").write_text(answers)
    return config.load(folder)


SQUARE = answer("square", "def square(x):\n    return x * x", "# def square(x)\n")
SQUARE_TEST = judge(
    "square",
    CHECK + "with check('Of three', hint='Multiply.'):\n    expect(square(3), 9, misconceptions={6: 'Doubled.'})\n"
    "with check('It is a function'):\n    assert callable(square)",
    2,
    "assert square(2) == 4\n",
)
RIGHT = """
exercise = "square-test"
cell = "square"
[[answer]]
name = "a power"
quality = "right"
source = "def square(x): return x**2"
[answer.points]
"Of three" = 1
"It is a function" = 1
[[answer]]
name = "doubled"
quality = "partly"
hint = "Doubled."
source = "def square(x): return x + x"
[answer.points]
"Of three" = 0
"It is a function" = 1
"""


def told(made: Gate) -> set[str]:
    """What is refused."""
    return {one.rule for one in made.refused}


def test_a_sound_assignment_passes(tmp_path: Path) -> None:
    """The gate of a sound assignment is open; it counts what each check notices, names one that notices nothing, and leaves
    the course as it was.
    """
    settings = course(tmp_path, [SQUARE, SQUARE_TEST], RIGHT)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    made = gating.gate(settings, "ps", 1)
    assert ({one.rule for one in made.findings}, made.score) == ({"mutants: idle check"}, 1.0)
    assert {one.title: one.alone > 0 for one in made.checks} == {"Of three": True, "It is a function": False}
    assert set(made.ran) == {"reference", "leaks", "seal", "stability", "answers", "mutants"}
    outside = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path: data for path, data in outside.items() if ".graders" not in path.parts} == before


WEAK = judge(
    "square", CHECK + "with check('It is there'):\n    square\nwith check('Positive'):\n    assert square(2) > 0", 2
)
WRONG = """
exercise = "square-test"
cell = "square"
[[answer]]
name = "a power"
quality = "right"
hint = "Doubled."
source = "def square(x): return x**2"
points = {"It is there" = 1, "Positive" = 0}
[[answer]]
name = "elsewhere"
cell = "nowhere"
quality = "right"
source = ""
points = {}
"""
EXPLAINED = "[[mutant]]\nexercise = 'square-test'\ndiff = '{}'\nreason = 'Nobody asked.'\n"


def test_a_weak_assignment_is_seen_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong points and hints of known answers, what is handed out and earns points, checks that notice nothing, stale
    explanations and a score below the floor are told by the command, by the page and by its exit status.
    """
    given = cell(
        "square", "square = abs\n### BEGIN SOLUTION\ndef square(x):\n    return x * x\n### END SOLUTION", solution=True
    )
    settings = course(tmp_path, [given, WEAK], WRONG, "c.Graders.mutation_floor = 0.95\n")
    explained = "-    return x * x\n+    return x + x"
    text = EXPLAINED.replace("'{}'", f"'''\n{explained}\n'''").format() + EXPLAINED.format("-no such line")
    (settings.answers / "ps" / "equivalent.toml").write_text(text)
    assert cli.main(["--course", str(tmp_path), "gate", "ps", "--jobs", "1"]) == 1
    shown = capsys.readouterr().out
    page = (tmp_path / ".graders" / "gate" / "ps.html").read_text()
    for rule in (
        "error: [answers: points]", "error: [answers: hint]", "error: [answers: lost]", "error: [reference: blank]",
        "error: [mutants: score]", "warning: [mutants: stale explanation]",
    ):  # fmt: skip
        assert rule in shown
        assert rule.partition("[")[2].strip("]") in page
    assert "Mutation score: " in shown
    assert "1 explained as right" in shown
    assert "Nobody asked." in page
    assert "<script" not in page


def test_chance_is_found_by_seeds(tmp_path: Path, zygote: Zygote) -> None:
    """A test that passes by chance fails for one of five seeds; the same test with a seed of its own never does."""
    for name, test in (("luck", "import random\nassert random.random() < 0.5"), ("sure", "assert square(3) == 9")):
        settings = course(tmp_path / name, [SQUARE, judge("square", test)])
        author = read_assignment(settings.course, "ps", released=False)
        found = gating.reference(author, pipeline.conditions_of(settings, "ps"), zygote, 5, 1, kernel=False)
        assert [one.rule for one in found] == (["reference: full marks"] if name == "luck" else [])


LEAK = cell("note", "# for example:\ndef other(x):\n    return (x + 1) ** 2 - 2 * x - 1", locked=True)
LEAKED = answer("square", "def square(x):\n    return (x + 1) ** 2 - 2 * x - 1", "# def square(x)\n")


def test_a_refused_release_changes_nothing_unless_it_is_forced(tmp_path: Path) -> None:
    """What the gate refuses is not released, and an earlier release stays; with a reason it is released, and that is logged."""
    settings = course(tmp_path, [LEAK, LEAKED, SQUARE_TEST])
    earlier = tmp_path / "release" / "ps" / "nb.ipynb"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("earlier")
    with pytest.raises(CourseError, match=r"(?s)leaks: shown.*return \(x \+ 1\).*--force-gate REASON"):
        releasing.release(settings, "ps")
    assert earlier.read_text() == "earlier"
    made = releasing.release(settings, "ps", force="The line is the task's own example.")
    assert made.reference is not None
    assert "return (x + 1)" in earlier.read_text()
    [line] = (tmp_path / ".graders" / "gate" / "log.jsonl").read_text().splitlines()
    logged = json.loads(line)
    assert (logged["assignment"], logged["reason"]) == ("ps", "The line is the task's own example.")
    assert len(logged["refused"]) == 1
    assert logged["time"].startswith("20")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Settings]:
    """nbgrader's own example course, as `nbgrader quickstart` makes it."""
    spec = importlib.util.find_spec("nbgrader")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    example = Path(spec.submodule_search_locations[0]) / "docs" / "source" / "user_guide" / "source"

    def made(examine: str) -> Settings:
        home = tmp_path_factory.mktemp("foreign")
        shutil.copytree(example / "ps1", home / "source" / "ps1")
        shutil.copy(example / "header.ipynb", home / "source" / "header.ipynb")
        for name in ("course_config.py", "nbgrader_config.py"):
            (home / name).write_text(f"{CONFIG}c.Graders.examine = {examine!r}\n")
        return config.load(home)

    return made


def test_a_foreign_course_goes_through_the_gate(foreign: Callable[[str], Settings]) -> None:
    """nbgrader's example course, without a word of ours, passes where its tests run in the kernel; most mutants lose points."""
    made = gating.gate(foreign("kernel"), "ps1", 1)
    assert made.refused == ()
    assert {one.rule for one in made.warnings} == {"answers: none"}
    assert made.score is not None
    assert made.score > 0.9
    assert len(made.checks) == 4
    assert "sum_of_squares" in gatepage.render(made)


def test_a_foreign_test_that_cannot_be_sealed_is_named(foreign: Callable[[str], Settings], zygote: Zygote) -> None:
    """Its one test that deletes a student's function is refused for the sealed examination, before and by running it."""
    settings = foreign("sealed")
    author = read_assignment(settings.course, "ps1", released=False)
    found = gating.lint(author)
    found += gating.reference(author, pipeline.conditions_of(settings, "ps1"), zygote, 1, 1, kernel=True)
    assert [(one.rule, one.level) for one in found] == [
        ("seal: taken away", Level.error),
        ("reference: full marks", Level.error),
    ]
    assert found[0].cell == "sum_of_squares_uses_squares"
    assert "sum_of_squares_uses_squares" in found[1].text


def test_trials_share_a_submission_unless_they_need_each_other(tmp_path: Path) -> None:
    """Exercises that nothing else reads go together, one text of each; an answer that another cell reads goes alone."""
    cells = [
        *(one for name in ("a", "b") for one in (answer(name, f"{name} = 1"), judge(name, f"assert {name} == 1"))),
        *(answer("c", "c = 1"), judge("c", "assert c == 1"), answer("d", "d = c + 1"), judge("d", "assert d == 2")),
    ]
    settings = course(tmp_path, cells)
    known = trials.exercises(read_assignment(settings.course, "ps", released=False))
    assert {one.id: one.alone for one in known} == {"a-test": False, "b-test": False, "c-test": True, "d-test": False}
    given = [trials.Trial(f"{name}-test", name + number, {}) for name in "abcd" for number in "12"]
    rows = [[one.name for one in row] for row in trials.batches(given, known)]
    assert rows == [["a1", "b1", "d1"], ["a2", "b2", "d2"], ["c1"], ["c2"]]


def test_points_of_figures_add_up() -> None:
    """The score leaves out what is explained as right, and there is none without mutants."""
    made = Gate("ps", "", "", {}, exercises=(ExerciseFigures("a", 10, 6, 2), ExerciseFigures("b", 2, 2, 0)))
    assert made.score == 0.8
    assert Gate("ps", "", "", {}).score is None
