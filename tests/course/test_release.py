"""Laws of release and simulation: what students receive, what is refused, and a class that is the same every time."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from notebook_samples import answer, hidden, locked, notebook, secret_lines

from graders.config import Settings
from graders.course.answers import hostile, known_answers
from graders.course.assignments import EXECUTION_RECORD, read_assignment
from graders.course.release import generate
from graders.course.simulate import simulate
from graders.errors import CourseError
from graders.kernels.nursery import best_level
from graders.run import releasing

LESSON = "performance-02"
Maker = Callable[[Path, dict[str, dict]], Settings]


def texts(path: Path) -> list[str]:
    """The text of every cell of a notebook file."""
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_release_holds_no_hidden_line(root: Path) -> None:
    """No line that stands between the markers of a source notebook, and no marker, is in what students receive."""
    for source in (root / "source").rglob("*.ipynb"):
        released = "\n".join(texts(root / "release" / source.relative_to(root / "source")))
        secrets = set().union(*map(secret_lines, texts(source)))
        assert len(secrets) > 20
        assert {line.strip() for line in released.splitlines()} & secrets == set()
        for marker in ("BEGIN HIDDEN", "END HIDDEN", "BEGIN SOLUTION", "END SOLUTION"):
            assert marker not in released


def test_the_committed_release_is_what_the_source_generates(root: Path, settings: Settings, tmp_path: Path) -> None:
    """release/ is, byte for byte, what nbgrader and we make of source/ in a course that holds nothing else; only a record
    of our own run stands beside it.
    """
    for name in ("course_config.py", "nbgrader_config.py"):
        (tmp_path / name).write_bytes((root / name).read_bytes())
    for path, data in contents(root / "source").items():
        (tmp_path / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / path).write_bytes(data)
    names = [path.name for path in (root / "source").iterdir() if path.is_dir()]
    for name in names:
        generate(tmp_path, settings.course_id, name)
    committed = contents(root / "release")
    beside = {path for path in committed if path.endswith(f"/{EXECUTION_RECORD}")}
    assert contents(tmp_path / "release") == {path: committed[path] for path in committed.keys() - beside}


FAULTY = notebook(
    answer("a", "a = 1"),
    hidden(
        "a-test", "from graders.checks import check, expect\nwith check('a is two', points=2):\n    expect(a, 2)", 2
    ),
    answer("b", "b = 1"),
    hidden("b-test", "from graders.checks import check\nwith check('b is there', points=1):\n    assert b", 3),
    answer("c", "c = 1"),
    hidden("c-test", "c / 4", 1),
    answer("d", "d = unknown"),
    hidden("d-test", "assert True", 1),
    answer("e", "e = 1"),
    hidden("e-test", "assert e == 3", 1),
    answer("good", "good = 1"),
    hidden("good-test", "assert good == 1", 1),
)
LEAKING = notebook(
    locked("note", "# for example: assert treble(7) == 21\npass"),
    locked("helper", "def treble_by_hand(x):\n    return x + x + x"),
    answer("t", "def treble(x):\n    return x + x + x"),
    hidden("t-test", "assert treble(7) == 7 + 7 + 7", 1),
)


def test_a_solution_that_fails_its_own_tests_is_not_released(tmp_path: Path, small_course: Maker) -> None:
    """A release is refused, with every fault by name: a failed check, points that do not add up, a number that falls
    short, a cell that raises, an assertion that fails; and nothing is released.
    """
    settings = small_course(tmp_path, {"ps1": FAULTY})
    with pytest.raises(CourseError) as refused:
        releasing.release(settings, "ps1", best_level())
    told = str(refused.value)
    assert "'a is two' of a-test" in told
    assert "the checks of b-test are worth 1 points, the cell 3" in told
    assert "c-test ends in 0.25, and the cell is worth 1 points" in told
    assert "cell d: NameError: name 'unknown' is not defined" in told
    assert "test e-test" in told
    assert "good" not in told.replace("good-test is", "")
    assert not (tmp_path / "release").exists()


def test_a_hidden_line_that_would_leak_is_not_released(tmp_path: Path, small_course: Maker) -> None:
    """A line of a solution that another cell shows is named, and no release stays behind."""
    settings = small_course(tmp_path, {"ps1": LEAKING})
    with pytest.raises(CourseError, match="cell t: the released notebook holds the line 'return x \\+ x \\+ x'"):
        releasing.release(settings, "ps1", best_level())
    assert not (tmp_path / "release" / "ps1").exists()


def handed_in(settings: Settings) -> dict[str, bytes]:
    """Every submitted file."""
    return contents(settings.course / "submitted")


@pytest.fixture
def lesson_folder(tmp_path: Path, root: Path, settings: Settings) -> Settings:
    """A course folder of one test, with the lesson's source and release."""
    for room in ("source", "release"):
        for path, data in contents(root / room).items():
            (tmp_path / room / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / room / path).write_bytes(data)
    return msgspec.structs.replace(settings, course=tmp_path)


def test_the_same_seed_makes_the_same_class(lesson_folder: Settings) -> None:
    """A class is decided by its seed and size: the same files and expectations again, others with another seed."""
    assignment = read_assignment(lesson_folder.course, LESSON)
    made, files = [], []
    for seed in (3, 3, 4):
        made.append(simulate(lesson_folder.course, assignment, lesson_folder.answers, 24, seed))
        files.append(handed_in(lesson_folder))
    assert made[0] == made[1] != made[2]
    assert files[0] == files[1] != files[2]


def test_a_class_is_drawn_from_known_answers(lesson_folder: Settings) -> None:
    """Of 24 students six attack, each in its own way, two hand in what they received, and every cell is a known text."""
    assignment = read_assignment(lesson_folder.course, LESSON)
    made = simulate(lesson_folder.course, assignment, lesson_folder.answers, 24, 0)
    attacks = {one.name: one.total for one in hostile(lesson_folder.answers / LESSON)}
    assert {one.what: one.total for one in made if not one.honest} == attacks
    assert len(attacks) == 6
    blank = (lesson_folder.course / "release" / LESSON / f"{LESSON}.ipynb").read_text()
    same = [one for one in made if json.loads(submitted(lesson_folder, one.student)) == json.loads(blank)]
    assert [one.total for one in same] == [Decimal(0)] * 2
    points = {one.name: sum(one.points.values()) for one in known_answers(lesson_folder.answers / LESSON)}
    for one in made:
        if one.honest and one not in same:
            assert one.total == sum(points[name] for name in one.what.split("; "))


def submitted(settings: Settings, student: str) -> str:
    """The notebook of one student."""
    return (settings.course / "submitted" / student / LESSON / f"{LESSON}.ipynb").read_text()


def test_simulation_leaves_other_students_alone(lesson_folder: Settings) -> None:
    """Folders of students that a simulation did not make stay as they are; where a name is taken, it refuses."""
    own = lesson_folder.course / "submitted"
    for student in ("student-77", "somebody else"):
        (own / student / LESSON).mkdir(parents=True)
        (own / student / LESSON / f"{LESSON}.ipynb").write_text("mine")
    assignment = read_assignment(lesson_folder.course, LESSON)
    simulate(lesson_folder.course, assignment, lesson_folder.answers, 3, 0)
    assert submitted(lesson_folder, "student-77") == submitted(lesson_folder, "somebody else") == "mine"
    assert {path.name for path in own.iterdir()} == {
        "student-77",
        "somebody else",
        "student-01",
        "student-02",
        "student-03",
    }
    before = handed_in(lesson_folder)
    with pytest.raises(CourseError, match="student-77"):
        simulate(lesson_folder.course, assignment, lesson_folder.answers, 80, 0)
    assert handed_in(lesson_folder) == before
