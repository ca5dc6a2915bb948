"""Laws of sealing: what is run, in which order, whose text it is, and what a person is told."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from written_cells import NOTEBOOK, answer, as_received, assignment, cell, handed_in, judge, locked, submission

from graders.coursework import Assignment, Role, SubmittedCell
from graders.exam.plan import ExamPlan, Segment, Step, seal, segments

TEST_B = "### BEGIN HIDDEN TESTS\nassert b == 2\n### END HIDDEN TESTS\nassert b > 0"


def lesson() -> Assignment:
    """Set-up, two exercises, a written answer."""
    return assignment(
        [
            cell(Role.plain, None, "# Lesson", cell_type="markdown"),
            locked("set-up", "import numpy as np"),
            answer("a", "a = 1"),
            judge("a-test", "assert a == 1"),
            answer("b", "b = 2"),
            judge("b-test", TEST_B, 3),
            cell(Role.written, "why", "Because.", 2, released="YOUR ANSWER HERE", cell_type="markdown"),
        ]
    )


def sealed(given: Assignment, cells: list[SubmittedCell]) -> ExamPlan:
    """The plan of a submission of these cells."""
    return seal(given, submission(given, cells))


def steps_of(plan: ExamPlan) -> tuple[Step, ...]:
    """The steps of its only notebook."""
    return plan.notebooks[0].steps


def told(plan: ExamPlan) -> set[tuple[str, str | None]]:
    """Names of the flags, with the cells they are about."""
    return {(flag.name, flag.cell) for flag in plan.flags}


def run_order(plan: ExamPlan) -> list[str]:
    """Ids of the steps, and the text of those that have none."""
    return [step.id or step.source for step in steps_of(plan)]


def renamed(cells: list[SubmittedCell], id: str, new: str | None) -> list[SubmittedCell]:
    """The cells with another id on one of them."""
    return [msgspec.structs.replace(one, id=new) if one.id == id else one for one in cells]


ORDER = ["# Lesson", "set-up", "a", "a-test", "b", "b-test", "why"]


def test_as_received_is_run_as_released_and_nothing_is_flagged() -> None:
    """The released notebook handed in unchanged needs no repair."""
    given = lesson()
    plan = sealed(given, as_received(given))
    assert run_order(plan) == ORDER
    assert plan.flags == ()
    assert plan.notebooks[0].answers == {
        "a": "raise NotImplementedError()",
        "b": "raise NotImplementedError()",
        "why": "YOUR ANSWER HERE",
    }


def test_positions_count_the_steps() -> None:
    """Each step has its own position, and they ascend."""
    given = lesson()
    plan = sealed(given, [*as_received(given), SubmittedCell("code", "more = 1")])
    assert [step.position for step in steps_of(plan)] == list(range(8))


def test_whose_text_stands_where() -> None:
    """Tests run the author's whole text, locked cells the released one, answers the student's."""
    given = assignment([locked("l", "shown = 1"), answer("a", "a = 1"), judge("t", TEST_B)])
    hidden = msgspec.structs.replace(given.notebooks[NOTEBOOK][0], source="shown = 1\nhidden = 2")
    given = msgspec.structs.replace(given, notebooks={NOTEBOOK: (hidden, *given.notebooks[NOTEBOOK][1:])})
    plan = seal(given, handed_in(given, {"l": "shown = 99", "a": "a = 5", "t": "pass"}))
    assert [(step.source, step.author) for step in steps_of(plan)] == [
        ("shown = 1", True),
        ("a = 5", False),
        (TEST_B, True),
    ]


def test_a_copied_test_runs_once() -> None:
    """S1: of two cells with the id of a test, one remains, with the instructor's text."""
    given = lesson()
    cells = as_received(given)
    plan = sealed(given, [*cells, SubmittedCell("code", "assert True", "a-test")])
    assert run_order(plan) == ORDER
    assert told(plan) == {("cell_repeated", "a-test")}


def test_a_split_answer_runs_in_its_order_as_one() -> None:
    """S2: two cells with the id of an answer both run, in the order in which they stand."""
    given = lesson()
    cells = as_received(given)
    cells[2:3] = [SubmittedCell("code", "half = 1", "a"), SubmittedCell("code", "a = half", "a")]
    plan = sealed(given, cells)
    assert [step.source for step in steps_of(plan) if step.id == "a"] == ["half = 1", "a = half"]
    assert plan.notebooks[0].answers["a"] == "half = 1\na = half"
    assert told(plan) == {("cell_repeated", "a")}


@pytest.mark.parametrize("gone", ["a-test", "b-test", "set-up"])
def test_a_deleted_cell_of_the_instructor_comes_back(gone: str) -> None:
    """S3: it stands where it was released, with its text and its names."""
    given = lesson()
    whole = sealed(given, as_received(given))
    plan = sealed(given, [one for one in as_received(given) if one.id != gone])
    assert steps_of(plan) == steps_of(whole)
    assert told(plan) == {("cell_restored", gone)}


@pytest.mark.parametrize("gone", ["a", "why"])
def test_a_deleted_answer_is_no_answer(gone: str) -> None:
    """S4: nothing stands in for it, its test runs all the same, and a person is told."""
    given = lesson()
    plan = sealed(given, [one for one in as_received(given) if one.id != gone])
    assert run_order(plan) == [one for one in ORDER if one != gone]
    assert gone not in plan.notebooks[0].answers
    assert told(plan) == {("answer_missing", gone)}


def test_a_renamed_test_is_a_plain_cell_and_the_test_comes_back() -> None:
    """S6: an unknown id means nothing; the known one that is missing is put back."""
    given = lesson()
    plan = sealed(given, renamed(as_received(given), "a-test", "mine"))
    plain = [step for step in steps_of(plan) if step.role is Role.plain and step.cell_type == "code"]
    assert [(step.source, step.author, step.names) for step in plain] == [("assert a == 1", False, None)]
    assert [step.source for step in steps_of(plan) if step.id == "a-test"] == ["assert a == 1"]
    assert ("cell_restored", "a-test") in told(plan)


@pytest.mark.parametrize("new", ["mine", None])
def test_a_renamed_answer_still_runs_before_its_test(new: str | None) -> None:
    """S6: its text is a plain cell of the student, in the place where it stood."""
    given = lesson()
    cells = [msgspec.structs.replace(one, source="a = 1") if one.id == "a" else one for one in as_received(given)]
    plan = sealed(given, renamed(cells, "a", new))
    assert run_order(plan) == ["# Lesson", "set-up", "a = 1", "a-test", "b", "b-test", "why"]
    assert told(plan) == {("answer_missing", "a")}


@pytest.mark.parametrize("kind", ["markdown", "raw"])
@pytest.mark.parametrize(("id", "text"), [("a", "raise NotImplementedError()"), ("a-test", "assert a == 1")])
def test_a_changed_cell_type_is_restored(kind: str, id: str, text: str) -> None:
    """S7: a code cell that became text is code again, and keeps its text."""
    given = lesson()
    cells = [msgspec.structs.replace(one, cell_type=kind) if one.id == id else one for one in as_received(given)]
    plan = sealed(given, cells)
    assert [(step.cell_type, step.source) for step in steps_of(plan) if step.id == id] == [("code", text)]
    assert told(plan) == {("cell_type_changed", id)}


def test_points_come_from_the_author() -> None:
    """S8: a submitted cell carries no points at all, so that what its metadata says cannot count."""
    assert set(SubmittedCell.__struct_fields__) == {"cell_type", "source", "id", "older", "shown"}
    assert [one.points for one in lesson().notebooks[NOTEBOOK] if one.points] == [1, 3, Decimal(2)]


@pytest.mark.parametrize("text", ["", "# assert a == 1", "assert True", "assert a == 1\nprint('mine')"])
def test_an_edited_test_is_replaced_and_noted(text: str) -> None:
    """S9: the instructor's text is used, and the note says only that it was changed."""
    given = lesson()
    plan = seal(given, handed_in(given, {"a-test": text}))
    assert [step.source for step in steps_of(plan) if step.id == "a-test"] == ["assert a == 1"]
    assert told(plan) == {("locked_text_changed", "a-test")}
    assert "cheat" not in plan.flags[0].text.lower()


def test_white_space_at_line_ends_is_no_change() -> None:
    """An editor that trims or adds white space has changed nothing."""
    given = lesson()
    plan = seal(given, handed_in(given, {"a-test": "\nassert a == 1  \n\n", "set-up": "import numpy as np\n"}))
    assert plan.flags == ()


def test_the_released_order_is_the_order() -> None:
    """S10: cells in reverse run as released, and that is said once."""
    given = lesson()
    plan = sealed(given, as_received(given)[::-1])
    assert [one for one in run_order(plan) if one in ORDER[1:]] == ORDER[1:]
    assert [flag.name for flag in plan.flags] == ["cells_reordered"]


def test_a_new_cell_stays_behind_the_cell_that_it_follows() -> None:
    """S11: an answer in a new cell below the stub runs after the stub and before the test."""
    given = lesson()
    cells = as_received(given)
    cells[3:3] = [SubmittedCell("code", "a = 1"), SubmittedCell("code", "  \n"), SubmittedCell("markdown", "so")]
    plan = sealed(given, cells)
    assert run_order(plan) == ["# Lesson", "set-up", "a", "a = 1", "so", "a-test", "b", "b-test", "why"]
    assert [step.author for step in steps_of(plan) if step.source == "a = 1"] == [False]
    assert plan.flags == ()


def test_new_cells_before_everything_run_first() -> None:
    """A student's cell above the first one of the instructor stays there."""
    given = lesson()
    assert run_order(sealed(given, [SubmittedCell("code", "early = 1"), *as_received(given)]))[0] == "early = 1"


def test_a_notebook_that_was_not_handed_in_is_planned_as_released() -> None:
    """S12 for one notebook of several: nothing in it was attempted, and its tests run."""
    given = lesson()
    other = tuple(msgspec.structs.replace(one, notebook="other") for one in given.notebooks[NOTEBOOK])
    both = msgspec.structs.replace(given, notebooks=given.notebooks | {"other": other})
    plan = seal(both, submission(given, as_received(given)))
    assert [one.name for one in plan.notebooks] == [NOTEBOOK, "other"]
    assert plan.notebooks[1].answers == plan.notebooks[0].answers
    assert [step.source for step in plan.notebooks[1].steps] == [step.source for step in plan.notebooks[0].steps]


@pytest.mark.parametrize("path", ["numpy.py", "jax.py", "jax/__init__.py", "graders/checks.py", "ml_dtypes.py"])
def test_a_file_that_hides_a_library_is_left_out(path: str) -> None:
    """F8: the file does not reach the candidate, and the student reads which one it is."""
    given = lesson()
    plan = seal(given, submission(given, as_received(given), {path: b"forged", "own.py": b"kept", "my/numpy.py": b"k"}))
    assert plan.files == {"own.py": b"kept", "my/numpy.py": b"k"}
    assert told(plan) == {("library_hidden", None)}
    assert path in plan.flags[0].text


def test_data_files_are_the_instructors() -> None:
    """F10: changed and missing data come back; files of the student's own stay."""
    given = assignment([answer("a", "a = 1")], {"data/rows.csv": b"1,2\n", "scale.txt": b"10"})
    plan = seal(given, submission(given, as_received(given), {"data/rows.csv": b"9,9\n", "data/own.csv": b"3"}))
    assert plan.files == {"data/rows.csv": b"1,2\n", "scale.txt": b"10", "data/own.csv": b"3"}
    assert told(plan) == {("data_restored", None)}
    assert plan.course_files == given.files


@pytest.mark.parametrize(
    ("theirs", "ours"), [("data", "data/rows.csv"), ("data/rows.csv/x", "data/rows.csv"), ("a/b", "a/b/c/d.csv")]
)
def test_a_file_where_the_instructor_has_a_folder_gives_way(theirs: str, ours: str) -> None:
    """F10: a file of the student that stands in the way of the instructor's data is left out, and that is said."""
    given = assignment([answer("a", "a = 1")], {ours: b"1,2\n"})
    plan = seal(given, submission(given, as_received(given), {theirs: b"x", "kept.txt": b"y"}))
    assert plan.files == {ours: b"1,2\n", "kept.txt": b"y"}
    assert told(plan) == {("data_restored", None)}
    assert theirs in plan.flags[0].text


def test_python_files_of_the_assignment_are_answers() -> None:
    """A project's Python file is the student's; one that is missing comes as it was released."""
    given = assignment(
        [locked("l", "import mine, other"), judge("t", "mine, other")], {"mine.py": b"", "other.py": b"o"}
    )
    plan = seal(given, submission(given, as_received(given), {"mine.py": b"x = 1"}))
    assert plan.files == {"mine.py": b"x = 1", "other.py": b"o"}
    assert plan.flags == ()
    names = steps_of(plan)[1].names
    assert names is not None
    assert (names.candidate, names.imports) == (("mine", "other"), ())


def test_only_tests_have_names_and_segments() -> None:
    """What a test needs is decided from the author's cells, whatever an answer says."""
    given = lesson()
    plan = seal(given, handed_in(given, {"a": "a = 1; assert_equal = b = 0; from os import *"}))
    found = {step.id: (step.names.candidate if step.names else None, bool(step.segments)) for step in steps_of(plan)}
    assert found["a-test"] == (("a",), True)
    assert found["b-test"] == (("b",), True)
    assert {found[one] for one in ("set-up", "a", "b", "why")} == {(None, False)}


def test_segments_follow_the_hidden_regions() -> None:
    """Visible and hidden stretches run apart, each knowing the line before which it begins."""
    source = "x = 1\n### BEGIN HIDDEN TESTS\ny = 2\n### END HIDDEN TESTS\nz = 3\n"
    found = segments(source)
    assert [part.hidden for part in found] == [False, True, False]
    lines = source.split("\n")
    for part, (name, number) in zip(found, (("x", 0), ("y", 2), ("z", 4)), strict=True):
        assert f"{name} = " in part.source
        own = part.source.split("\n")
        assert own[next(i for i, line in enumerate(own) if line.startswith(name))] == lines[number]
        assert part.line + next(i for i, line in enumerate(own) if line.startswith(name)) == number


@pytest.mark.parametrize(
    "source",
    [
        "with a:\n    x = 1\n    ### BEGIN HIDDEN TESTS\n    y = 2\n    ### END HIDDEN TESTS\n    z = 3",
        "if a:\n    ### BEGIN HIDDEN TESTS\n    y = 2\n    ### END HIDDEN TESTS\n    pass",
        "text = '''\n### BEGIN HIDDEN TESTS\n'''",
    ],
)
def test_parts_that_do_not_stand_alone_run_as_one(source: str) -> None:
    """A hidden region inside a block cannot be cut out; the whole then counts as hidden."""
    assert segments(source) == (Segment(source + "\n", True, 0),)


def test_a_test_without_hidden_region_is_visible() -> None:
    """One segment, not hidden."""
    assert [(part.hidden, part.line) for part in segments("assert a")] == [(False, 0)]


def test_an_open_region_hides_to_the_end() -> None:
    """A hidden region that is never closed hides what follows it."""
    assert [part.hidden for part in segments("a = 1\n### BEGIN HIDDEN TESTS\nb = 2\n")] == [False, True]


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("!pip install -U jax", ["packages_installed"]),
        ("%pip install jax==0.4", ["packages_installed"]),
        ("  !python3 -m pip install --user jax", ["packages_installed"]),
        ("# pip install jax", []),
        ("%cd ..", ["folder_changed"]),
        ("import os\nos.chdir('/tmp')", ["folder_changed"]),
        ("sum = 0\nlist = [1]", ["builtin_hidden", "builtin_hidden"]),
        ("def max(a, b):\n    return a", ["builtin_hidden"]),
        ("summed = sum([1, 2])\nValueError = 3", []),
    ],
)
def test_habits_that_surprise_are_told(text: str, flags: list[str]) -> None:
    """Packages that are installed, a folder that is changed and functions of Python that are hidden are flagged, and run as written."""
    cells = [answer("a", "a = 1"), judge("a-test", "assert a == 1")]
    plan = seal(assignment(cells), handed_in(assignment(cells), {"a": text}))
    assert [one.name for one in plan.flags if one.name != "answer_missing"] == flags
    assert text in [step.source for step in plan.notebooks[0].steps]


def test_a_habit_of_the_author_is_none_of_the_students() -> None:
    """What the author's own cells do is not held against who does it too."""
    cells = [answer("a", "sum = 3"), judge("a-test", "assert sum == 3")]
    plan = seal(assignment(cells), handed_in(assignment(cells), {"a": "sum = 1 + 2"}))
    assert plan.flags == ()
