"""Laws of sealing answers that stand where no answer was expected, and of files that stand where a library is."""

from __future__ import annotations

import pytest
from written_cells import NOTEBOOK, answer, as_received, assignment, cell, judge, submission

from graders.coursework import Assignment, Role, SubmittedCell
from graders.exam.plan import ExamPlan, seal

STUB = "def {0}(x):\n    raise NotImplementedError()"


def lesson() -> Assignment:
    """An open cell of the author, then two exercises with a stub that defines a function each."""
    return assignment(
        [
            cell(Role.plain, None, "import math\nrate = 3"),
            answer("f", "def f(x): return x", STUB.format("f")),
            judge("f-test", "assert f(1) == 1"),
            cell(Role.plain, None, "## The second", cell_type="markdown"),
            answer("g", "def g(x): return x", STUB.format("g")),
            judge("g-test", "assert g(rate) == rate"),
        ]
    )


def sealed(cells: list[SubmittedCell], given: Assignment | None = None) -> ExamPlan:
    """The plan of a submission of these cells."""
    given = given or lesson()
    return seal(given, submission(given, cells))


def code(plan: ExamPlan) -> list[str]:
    """What is run, by id or text."""
    return [step.id or step.source for step in plan.notebooks[0].steps if step.cell_type == "code"]


def told(plan: ExamPlan) -> list[tuple[str, str | None]]:
    """The flags with their cells."""
    return [(flag.name, flag.cell) for flag in plan.flags]


F = SubmittedCell("code", "def f(x): return x + 0")
G = SubmittedCell("code", "def g(x): return x + 0")
BOTH = SubmittedCell("code", f"{F.source}\n{G.source}")
OPEN = "import math\nrate = 3"


def test_an_answer_above_its_stub_runs_after_it() -> None:
    """S11: a new cell directly above an untouched stub runs behind it, and what it does not define stays."""
    cells = as_received(lesson())
    plan = sealed([*cells[:4], SubmittedCell("code", "note = 1"), G, *cells[4:]])
    assert code(plan) == [OPEN, "f", "f-test", "note = 1", "g", G.source, "g-test"]
    assert told(plan) == [("answer_above", "g")]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_stub_does_not_undo_an_answer_further_up(place: int) -> None:
    """S11: what one new cell defines for later exercises is not defined anew by their untouched stubs."""
    cells = as_received(lesson())
    plan = sealed([*cells[:place], BOTH, *cells[place:]])
    assert "g" not in code(plan)
    assert ("answer_above", "g") in told(plan)
    assert [step.position for step in plan.notebooks[0].steps] == list(range(len(plan.notebooks[0].steps)))
    assert plan.notebooks[0].answers["g"] == STUB.format("g")


def test_a_name_that_is_asked_for_twice_is_defined_anew() -> None:
    """S12: an answer to one exercise does not stand in for an untouched one that asks for the same name."""
    given = assignment(
        [
            answer("f", "def f(x): return x", STUB.format("f")),
            judge("f-test", "f"),
            answer("f-again", "def f(x): return -x", STUB.format("f")),
            judge("f-again-test", "f"),
        ]
    )
    cells = as_received(given)
    plan = sealed([SubmittedCell("code", F.source, "f"), *cells[1:]], given)
    assert code(plan) == ["f", "f-test", "f-again", "f-again-test"]
    assert plan.flags == ()


def test_an_answer_below_its_test_is_named() -> None:
    """S10: a name that only a new cell below its test binds is told with the test; a second definition is not."""
    cells = as_received(lesson())
    assert told(sealed([*cells, F])) == [("defined_below", "f-test")]
    answered = [SubmittedCell("code", F.source, "f") if one.id == "f" else one for one in cells]
    assert told(sealed([*answered, F])) == []


def test_open_cells_of_the_author_keep_their_order() -> None:
    """S10: cells without an id run where they were released, if their text is the author's."""
    plan = sealed(as_received(lesson())[::-1])
    assert code(plan) == [OPEN, "f", "f-test", "g", "g-test"]
    assert [step.source for step in plan.notebooks[0].steps][3] == "## The second"


def test_an_open_cell_that_is_gone_comes_back_unless_something_replaces_it() -> None:
    """S3: deleted imports are put back as the author's; an edited copy, or any cell that binds one of the names, is left."""
    gone = as_received(lesson())[1:]
    plan = sealed(gone)
    assert (code(plan)[0], plan.notebooks[0].steps[0].author) == (OPEN, True)
    assert told(plan) == [("cell_restored", None)]
    for text in ("import math", "rate = 4", "from cmath import *\nrate, other = 1, 2", "for rate in range(3): pass"):
        edited = sealed([SubmittedCell("code", text), *gone])
        assert OPEN not in code(edited)
        assert edited.flags == ()


def test_an_untouched_copy_below_the_answer_is_not_run() -> None:
    """S2: of two cells with one id, the one that is still as it was handed out does not undo the other."""
    cells = as_received(lesson())
    for own in ([F, cells[1]], [cells[1], F]):
        copies = [SubmittedCell("code", one.source, "f") for one in own]
        plan = sealed([cells[0], *copies, *cells[2:]])
        assert [step.source for step in plan.notebooks[0].steps if step.id == "f"] == [F.source]
        assert told(plan) == [("cell_repeated", "f")]


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("numpy.py", True), ("numpy.pyc", True), ("numpy.cpython-311-x86_64-linux-gnu.so", True), ("random.py", True),
        ("jinja2.py", True), ("scipy/__init__.py", True), ("json/__init__.py", True), ("test/rows.csv", False),
        ("numpy.txt", False), ("mine.py", False), ("numbers/data.csv", False), ("Numpy.py", False), ("json", False),
    ],
)  # fmt: skip
def test_what_hides_a_library_is_left_out(path: str, hidden: bool) -> None:
    """F8: a module or package with the name of an installed one is left out; data under such a name is not."""
    given = lesson()
    plan = seal(given, submission(given, as_received(given), {path: b"x"}))
    assert (path not in plan.files, told(plan)) == (hidden, [("library_hidden", None)] * hidden)


def test_a_file_that_the_course_hands_out_hides_nothing() -> None:
    """F8: an answer file that the author named like a module of Python stays the student's answer."""
    given = assignment([answer("f", "f = 1")], {"random.py": b"stub"})
    plan = seal(given, submission(given, as_received(given), {"random.py": b"mine"}))
    assert (plan.files, plan.flags) == ({"random.py": b"mine"}, ())
    assert list(given.notebooks) == [NOTEBOOK]
