"""Laws of the rules that read an assignment's text: each names its fault where there is one, and is silent where there is none."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from graders.course import markers
from graders.course.leaks import leaks
from graders.course.lint import lint
from graders.coursework import Assignment, ReleasedCell, Role
from graders.findings import Finding, Level

BEGIN, END = "### BEGIN HIDDEN TESTS\n", "\n### END HIDDEN TESTS"
SOLVED = "### BEGIN SOLUTION\n{}\n### END SOLUTION"


def cell(role: Role, source: str, id: str | None, released: str | None = None, points: int = 0) -> ReleasedCell:
    """A code cell of a notebook `nb`."""
    shown = source if released is None else released
    return ReleasedCell("nb", 0, id, role, "code", source, shown, Decimal(points))


def assignment(*cells: ReleasedCell, files: dict[str, bytes] | None = None, **others: ReleasedCell) -> Assignment:
    """An assignment of one notebook, and of one-cell notebooks by name."""
    notebooks = {"nb": cells} | {name: (one,) for name, one in others.items()}
    return Assignment("ps", notebooks, files or {}, "0")


def found(test: str, *, answer: str = "f = abs", before: str = "import numpy as np", after: str = "") -> list[Finding]:
    """The findings about a lesson with this test between other cells."""
    cells = [
        cell(Role.locked, before, "setup"),
        cell(Role.answer, answer, "f"),
        cell(Role.test, test, "f-test", points=1),
        cell(Role.locked, after, "after"),
    ]
    return lint(assignment(*cells))


def told(findings: list[Finding]) -> set[tuple[str, str]]:
    """Rules and levels."""
    return {(one.rule, one.level.value) for one in findings}


SEAL = {
    "shell": [
        ("get_ipython().run_cell('1')", "error"),
        ("%timeit f(1)", "error"),
        ("!ls", "error"),
        ("display(f)", "error"),
        ("assert f(-1) == 1", ""),
    ],
    "nowhere": [
        ("assert g(1)", "error"),
        ("assert f(1) == wanted\nwanted = 1", "error"),
        ("wanted = 1\nassert f(1) == wanted", ""),
        ("assert all(f(one) for one in [1])", ""),
    ],
    "forged": [
        ("assert helper(f(1))", "error"),
        ("assert f(1) == table[0]", "error"),
        ("assert table[0] == f(1)", "error"),
        ("from graders.checks import expect\nexpect(f(1), table)", "error"),
        ("np.testing.assert_allclose(f(1), table)", "error"),
        ("helper = abs\nassert helper(f(1)) == 1", ""),
        ("assert f(-1) == np.abs(-1)", ""),
    ],
    "locked read": [
        ("for row in table:\n    assert f(row) >= 0", "warning"),
        ("table = [1]\nfor row in table:\n    assert f(row) >= 0", ""),
    ],
    "taken away": [
        ("del f", "error"),
        ("f = f", "warning"),
        ("kept = f", ""),
    ],
    "needed later": [
        ("shape = (1, 2)", "error"),
        ("form = (1, 2)", ""),
    ],
    "points": [
        ("from graders.checks import check\nwith check('a', points=2):\n    pass", "error"),
        (
            "from graders.checks import check\nwith check('a', points=0.5):\n    pass\nwith check('b', 0.5):\n    pass",
            "",
        ),
        ("from graders.checks import check\nfor n in (1,):\n    with check('a', points=n):\n        pass", ""),
    ],
    "no Python": [("assert f(", "error"), ("assert f(1)", "")],
}


@pytest.mark.parametrize(
    ("rule", "test", "level"), [(rule, *case) for rule, cases in SEAL.items() for case in cases], ids=str
)
def test_a_test_that_cannot_be_sealed_is_named(rule: str, test: str, level: str) -> None:
    """A fault of sealing is found under its rule and level, and a sound way to write the same is not."""
    before = "import numpy as np\ntable = [1]\ndef helper(x):\n    return x"
    findings = [one for one in found(test, before=before, after="print(shape)") if one.rule == f"seal: {rule}"]
    assert {one.level.value for one in findings} == ({level} if level else set())
    assert all(one.cell == "f-test" and one.text.endswith(".") for one in findings)


def test_what_an_answer_also_binds_is_judged_and_not_judged_with() -> None:
    """A name that a locked cell starts and an answer binds anew belongs to the answer."""
    assert told(found("assert f(1) == total", answer="f = abs\ntotal = 1", before="total = 0")) == set()


def test_a_name_that_only_the_solution_knows_is_an_error() -> None:
    """Students must be able to read somewhere what a hidden test calls; a word in a comment is enough."""
    solution, test = SOLVED.format("def area(r):\n    return 3 * r"), BEGIN + "assert area(1) == 3" + END
    for stub, wanted in (("# your code", {("seal: unknown to students", "error")}), ("# write area(r)", set())):
        cells = (cell(Role.answer, solution, "a", stub), cell(Role.test, test, "a-test", "", points=1))
        assert told(lint(assignment(*cells))) == wanted


def test_ids_are_there_and_unique_over_notebooks() -> None:
    """A graded cell without an id, and an id that two notebooks use, are errors; a plain cell needs none."""
    twice = assignment(cell(Role.answer, "a = 1", "a"), other=cell(Role.answer, "b = 1", "a"))
    assert told(lint(twice)) == {("seal: repeated id", "error")}
    assert told(lint(assignment(cell(Role.answer, "a = 1", None)))) == {("seal: no id", "error")}
    assert lint(assignment(cell(Role.plain, "a = 1", None), cell(Role.answer, "a = 1", "a"))) == []


def test_tests_in_the_kernel_may_do_more() -> None:
    """Where tests run inside the notebook, only what is wrong there too is named."""
    cells = (cell(Role.answer, "f = abs", "f"), cell(Role.test, "del f\nassert g", "t", points=1))
    assert told(lint(assignment(*cells), sealed=False)) == {("seal: nowhere", "error")}


STABILITY = {
    "exact float": [("assert f(1) == 0.1", 1), ("assert f(1) == -2.5", 1), ("assert f(1) == 140.0", 0)],
    "random numbers": [
        ("rng = np.random.default_rng(0)\nassert f(rng.random()) == 0.6369616873214543", 1),
        ("draw = np.random.rand(3)\nnp.testing.assert_allclose(f(draw), [0.1, 0.2, 0.3])", 1),
        ("draw = np.random.rand(3)\nnp.testing.assert_allclose(f(draw), np.abs(draw))", 0),
    ],
    "timing": [
        ("import time\nbegun = time.perf_counter()\nf(1)\nassert time.perf_counter() - begun < 1", 1),
        ("import time\nbegun = time.perf_counter()\nf(1)\nspent = time.perf_counter() - begun", 0),
    ],
    "program text": [
        ("import jax\nassert 'mul' in str(jax.make_jaxpr(f)(1))", 1),
        ("import jax\ntext = jax.jit(f).lower(1).as_text()\nassert 'while' not in text", 1),
        ("import jax\nassert len(jax.make_jaxpr(f)(1).eqns) == 1", 0),
    ],
}


@pytest.mark.parametrize(
    ("rule", "test", "times"), [(rule, *case) for rule, cases in STABILITY.items() for case in cases], ids=str
)
def test_a_test_that_depends_on_the_day_is_a_warning(rule: str, test: str, times: int) -> None:
    """What decides by the last bit, a draw, a clock or a printed program is warned of with its line, and refuses nothing."""
    findings = [one for one in found(test) if one.rule == f"stability: {rule}"]
    lines = {number for number, text in enumerate(test.splitlines(), 1) if "assert" in text}
    assert {one.line for one in findings} == (lines if times else set())
    assert all(one.level is Level.warning for one in findings)


NEAR = ["### BEGIN HIDDEN TEST", "### begin hidden tests", "# Begin Solution", "### BEGIN_SOLUTION", "#END HIDEN TESTS"]
PROSE = [
    "# the end of the solution is below",
    "# Hidden facts",
    "# Begin with x",
    "begin = 1",
    "# solution",
    "# End of tests",
]


@pytest.mark.parametrize("line", NEAR)
def test_a_near_miss_is_an_error_that_quotes_the_cell(line: str) -> None:
    """A comment that almost is a marker hides nothing, so it is an error, with the lines around it."""
    [finding] = markers.of_text(f"x = 1\n{line}\nassert x == 1", "nb", "x-test")
    assert (finding.rule, finding.level, finding.line) == ("leaks: marker near miss", Level.error, 2)
    assert f"    x = 1\n    {line}\n    assert x == 1" in finding.text


@pytest.mark.parametrize("line", PROSE)
def test_prose_is_no_marker(line: str) -> None:
    """Comments and code that speak of solutions and tests are left alone."""
    assert markers.of_text(line, "nb", "x") == []


REGIONS = {
    "a = 1\n### BEGIN SOLUTION\nb = 1": "not closed",
    "a = 1\n### END SOLUTION": "not opened",
    "### BEGIN SOLUTION\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS": "not closed",
    "### BEGIN SOLUTION\na = 1\n### END HIDDEN TESTS": "not opened",
    "a = 1  ### BEGIN SOLUTION\n### END SOLUTION": "not alone",
    "### BEGIN SOLUTION\na = 1\n### END SOLUTION": "",
    "### BEGIN HIDDEN TESTS\na\n### END HIDDEN TESTS\n### BEGIN HIDDEN TESTS\na\n### END HIDDEN TESTS": "",
}


@pytest.mark.parametrize(("source", "rule"), REGIONS.items())
def test_regions_open_and_close(source: str, rule: str) -> None:
    """Each BEGIN has its END, each END its BEGIN, and each stands alone on a line."""
    found = {one.rule for one in markers.of_text(source, "nb", "a")}
    assert found == ({f"leaks: marker {rule}"} if rule else set())


@pytest.mark.parametrize(
    ("role", "region", "wrong"),
    [
        (Role.test, "SOLUTION", True),
        (Role.answer, "HIDDEN TESTS", True),
        (Role.locked, "SOLUTION", True),
        (Role.plain, "HIDDEN TESTS", True),
        (Role.test, "HIDDEN TESTS", False),
        (Role.answer, "SOLUTION", False),
        (Role.written, "SOLUTION", False),
    ],
)
def test_a_region_stands_where_nbgrader_removes_it(role: Role, region: str, wrong: bool) -> None:
    """A solution belongs into an answer cell and hidden tests into a test cell."""
    source = f"### BEGIN {region}\na = 1\n### END {region}"
    assert ("leaks: marker misplaced" in {one.rule for one in markers.of_cell(cell(role, source, "a"))}) == wrong


def test_markers_in_python_files_count_too() -> None:
    """A Python file of the assignment is read for near misses like a cell."""
    [finding] = lint(assignment(files={"model.py": b"# begin solution\nx = 1\n# end solution"}))[:1]
    assert (finding.rule, finding.notebook, finding.line) == ("leaks: marker near miss", "model.py", 1)


SECRET = "total = alpha + beta + gamma"
AUTHOR = assignment(cell(Role.answer, SOLVED.format(SECRET), "a", "# your code"))
SHOWN = {
    "nb.ipynb source": {"cells": [{"cell_type": "markdown", "source": ["For example:\n", f"    {SECRET}\n"]}]},
    "nb.ipynb outputs": {"cells": [{"source": "", "outputs": [{"text": [f"----> 3 {SECRET}\n"]}]}]},
    "nb.ipynb attachments": {"cells": [{"source": "", "attachments": {"a.txt": {"text/plain": SECRET}}}]},
    "nb.ipynb metadata": {"cells": [{"source": "", "metadata": {"note": {"old": SECRET}}}]},
    "nb.ipynb notebook metadata": {"cells": [], "metadata": {"old": [SECRET]}},
    "helper.py": f"def f():\n    {SECRET}\n",
    "notes.md": f"See `{SECRET}`.",
    "clean.ipynb": {"cells": [{"source": "total = alpha + beta", "outputs": [{"text": "gamma"}]}]},
    "clean.py": "total = alpha\n",
}


@pytest.mark.parametrize("place", SHOWN)
def test_a_secret_line_is_found_wherever_it_stands(place: str) -> None:
    """Source, outputs, attachments, metadata and other files of a release are searched for every line of a solution."""
    shown = SHOWN[place]
    data = shown if isinstance(shown, str) else json.dumps(shown)
    findings = leaks(AUTHOR, {}, {place.partition(" ")[0]: data.encode()})
    assert [one.cell for one in findings] == ([] if place.startswith("clean") else ["a"])
    assert all(SECRET in one.text for one in findings)


def test_solutions_in_python_files_and_in_answers_without_a_region_are_secrets() -> None:
    """The regions of a Python file are secret, and all of an answer that nbgrader replaces as a whole."""
    whole = assignment(cell(Role.answer, "# a word\n" + SECRET, "a", "# your code"))
    assert len(leaks(whole, {}, {"x.py": SECRET.encode()})) == 1
    source = {"model.py": SOLVED.format(f"def f():\n    {SECRET}").encode()}
    assert [one.notebook for one in leaks(assignment(), source, {"model.py": SECRET.encode()})] == ["model.py"]
    assert leaks(assignment(), source, {"model.py": b"def g():\n    pass"}) == []
