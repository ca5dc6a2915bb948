"""Laws of answer files: a Python file with regions of a solution is part of the assignment, and of what is handed in."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from notebook_samples import answer, dump, hidden, locked, notebook, with_answers

from graders.config import Settings
from graders.course import markers
from graders.course.assignments import read_assignment, released_notebook
from graders.kernels.nursery import best_level
from graders.records import Report
from graders.results.folders import folder
from graders.results.report import REPORT, read
from graders.run import gating, grading, pipeline, releasing, trials

SECRET = "the_sum_of_both_is_returned = one + other"
MODEL = f'''"""Two functions to write."""


def add(one, other):
    """The sum."""
    # TODO
    ### BEGIN SOLUTION
    {SECRET}
    return the_sum_of_both_is_returned
    ### END SOLUTION


class Twice:
    def of(self, value):
        ### BEGIN SOLUTION
        return add(value, value)
        ### END SOLUTION
'''
RELEASED = '''"""Two functions to write."""


def add(one, other):
    """The sum."""
    # TODO
    # YOUR CODE HERE
    raise NotImplementedError()


class Twice:
    def of(self, value):
        # YOUR CODE HERE
        raise NotImplementedError()
'''
LISTS = """\
import pathlib
listing = "".join(path.read_text() for path in pathlib.Path().rglob("*.py"))"""


def judged(id: str, source: str, points: int) -> dict[str, object]:
    """A hidden test of model.py."""
    made = hidden(id, source, points)
    made["metadata"]["graders"] = {"file": "model.py"}
    return made


BOOK = notebook(
    locked("setup", "import model"),
    judged("add-test", "assert model.add(2, 3) == 5", 2),
    answer("listing", "listing = ''"),
    hidden("listing-test", "assert isinstance(listing, str)", 1),
    judged("twice-test", "assert model.Twice().of(4) == 8", 3),
)
OWN = "def add(one, other):\n    return sum([one, other])\n\nclass Twice:\n    def of(self, value):\n        return 2 * value\n"
HALF = "def add(one, other):\n    return other + one\n\nclass Twice:\n    def of(self, value):\n        return value\n"
CLASS: dict[str, tuple[str | None, dict[str, str]]] = {
    "own": (OWN, {"listing": LISTS}),
    "half": (HALF, {"listing": LISTS}),
    "without": (None, {"listing": LISTS}),
    "received": (RELEASED, {}),
    "renamed": (OWN, {"listing": LISTS}),
}
NAMES = {"renamed": "my model (1).py"}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, small_course: Callable) -> Settings:
    """A course with an answer file, released, with everything handed in and graded."""
    settings = small_course(tmp_path_factory.mktemp("files"), {"ps1": BOOK})
    (settings.course / "source" / "ps1" / "model.py").write_text(MODEL)
    releasing.release(settings, "ps1", best_level())
    blank = released_notebook(settings.course, "ps1", "nb")
    for student, (model, cells) in CLASS.items():
        where = settings.course / "submitted" / student / "ps1"
        where.mkdir(parents=True)
        (where / "nb.ipynb").write_bytes(dump(with_answers(blank, cells)))
        if model is not None:
            (where / NAMES.get(student, "model.py")).write_text(model)
    ready = grading.prepare(settings, "ps1", best_level())
    grading.grade_class(settings, ready, sorted(CLASS), 1, False, lambda report: None)
    return settings


def report_of(course: Settings, student: str) -> Report:
    """The stored report of one student."""
    return read(folder(course.course, "autograded", student, "ps1") / REPORT)


def test_a_region_gives_way_to_a_line_at_its_indentation() -> None:
    """Students receive the file with each region replaced by a place to write that still is Python, and nothing else changed."""
    assert markers.stripped(MODEL) == RELEASED
    compile(markers.stripped(MODEL), "model.py", "exec")
    assert markers.stripped(OWN) == OWN
    assert (markers.has_solution(MODEL), markers.has_solution(OWN)) == (True, False)


def test_the_release_holds_the_stripped_file(course: Settings) -> None:
    """The released folder has the file without its solution."""
    assert (course.course / "release" / "ps1" / "model.py").read_text() == RELEASED


def test_the_students_file_is_what_is_graded(course: Settings) -> None:
    """The file that was handed in earns what its functions are worth; the author's own would have earned all."""
    points = {student: {one.id: one.score for one in report_of(course, student).exercises} for student in CLASS}
    assert points == {
        "own": {"add-test": 2, "listing-test": 1, "twice-test": 3},
        "half": {"add-test": 2, "listing-test": 1, "twice-test": 0},
        "without": {"add-test": 0, "listing-test": 1, "twice-test": 0},
        "received": {"add-test": 0, "listing-test": 0, "twice-test": 0},
        "renamed": {"add-test": 2, "listing-test": 1, "twice-test": 3},
    }


def test_the_answer_shown_is_the_file(course: Settings) -> None:
    """Beside the checks stands the file as it was handed in, and one that is as received was not attempted."""
    shown = {student: report_of(course, student).exercises[0] for student in CLASS}
    assert [shown[one].answer for one in ("own", "half", "received", "renamed")] == [OWN, HALF, RELEASED, OWN]
    assert {student: one.attempted for student, one in shown.items()} == {
        "own": True,
        "half": True,
        "without": False,
        "received": False,
        "renamed": True,
    }


def test_a_file_that_is_missing_is_told(course: Settings) -> None:
    """Who hands in no file is told so, by its name."""
    flags = {
        student: [one.cell for one in report_of(course, student).flags if one.name == "answer_missing"]
        for student in CLASS
    }
    assert flags == {"own": [], "half": [], "without": ["model.py"], "received": [], "renamed": []}


def test_the_authors_file_never_reaches_a_candidate(course: Settings) -> None:
    """A student who prints every Python file there finds their own or the released one, never the solution."""
    for student in CLASS:
        where = folder(course.course, "autograded", student, "ps1")
        text = (where / "nb.ipynb").read_text() + (where / REPORT).read_text()
        assert SECRET not in text


def test_a_changed_solution_is_another_version(course: Settings) -> None:
    """The version of an assignment follows its author's file, though students receive the same text."""
    before = read_assignment(course.course, "ps1")
    path = course.course / "source" / "ps1" / "model.py"
    try:
        path.write_text(MODEL.replace("one + other", "other + one"))
        after = read_assignment(course.course, "ps1")
    finally:
        path.write_text(MODEL)
    assert before.files == after.files
    assert before.sha256 != after.sha256


def test_the_gate_tries_wrong_files(course: Settings, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Mutants are made of the file and noticed, and a known answer for it earns its points."""
    answers = course.course / "tests" / "answers" / "ps1"
    answers.mkdir(parents=True)
    (answers / "add.toml").write_text(
        f"""exercise = "add-test"\ncell = "model.py"\n[[answer]]\nname = "half"\nquality = "partly"\nsource = '''{HALF}'''\n"""
        '[answer.points]\n"The tests of this cell pass" = 2\n'
    )
    made = gating.gate(course, "ps1", 1, best_level())
    assert made.refused == ()
    figures = {one.exercise: (one.tried > 3, one.killed == one.tried) for one in made.exercises}
    assert figures["add-test"] == (True, True)


def test_known_answers_make_a_class(course: Settings) -> None:
    """A simulated submission holds the file that was drawn for it."""
    assignment = read_assignment(course.course, "ps1")
    job = trials.job(course.course, course.course / "source" / "ps1", assignment, "one", {"model.py": HALF})
    assert job.files["model.py"].decode() == HALF
    ready = grading.prepare(course, "ps1", best_level())
    with pipeline.new_zygote() as zygote:
        assert pipeline.grade(job, ready, zygote).report.score == Decimal(3)
