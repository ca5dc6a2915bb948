"""What an author writes inside hidden tests, in an examiner, in a plain script and in a plain kernel."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from decimal import Decimal

import jax
import jax.numpy as jnp
import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbgrader.utils import determine_grade

from graders import checks
from graders.checks import CheckFailed, check, expect, operations, recording
from graders.records import Outcome


def test_a_block_is_one_check():
    """A block that ends is passed, one that raises is failed; each keeps its title, its points and its hint, in order."""
    with recording() as recorder:
        with check("first", points=2, hint="look"):
            pass
        with check("second", points=0.1):
            raise ValueError("no")
        with check("third"):
            assert 1 == 2, "not equal"
    found = [(one.title, one.points, one.outcome, one.hint) for one in recorder.checks]
    assert found == [
        ("first", Decimal(2), Outcome.passed, "look"),
        ("second", Decimal("0.1"), Outcome.failed, None),
        ("third", Decimal(1), Outcome.failed, None),
    ]
    assert [one.message for one in recorder.checks][:2] == [None, "ValueError: no"]
    assert recorder.checks[2].message.startswith("AssertionError: not equal")


def test_points_are_exact_decimals():
    """Ten checks of 0.1 are worth 1, not 0.9999."""
    with recording() as recorder:
        for _ in range(10):
            with check("a tenth", points=0.1):
                pass
    assert sum(one.points for one in recorder.checks) == 1


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_process_ends_the_test(ending):
    """An interrupt is no failed check: it goes through the block, and nothing is recorded for it."""
    with recording() as recorder, pytest.raises(ending), check("interrupted"):
        raise ending
    assert recorder.checks == []


def test_a_recorder_hears_its_own_checks_only():
    """Recordings may stand in each other; each hears what runs inside it and not inside an inner one."""
    with recording() as outer:
        with recording() as inner, check("inner"):
            pass
        with check("outer"):
            pass
    assert [one.title for one in outer.checks] == ["outer"]
    assert [one.title for one in inner.checks] == ["inner"]


def test_expect_carries_both_values_and_the_misconception():
    """A failed expectation tells wanted and found value apart from its message, and names the first wrong value that fits."""
    with recording() as recorder, check("the masked sum"):
        expect(
            jnp.float32(58.0),
            55.0,
            misconceptions={30.0: "no offset", 58.0: "The padding was counted.", 58.00001: "later"},
        )
    (found,) = recorder.checks
    assert found.misconception == "The padding was counted."
    assert found.expected == "55.0"
    assert found.actual == "58. (float32, shape [])"
    assert found.outcome is Outcome.failed


@pytest.mark.parametrize(
    ("actual", "wanted", "misconceptions", "named"),
    [
        (58.0, 55.0, {58.0: "padding"}, "padding"),
        (57.0, 55.0, {58.0: "padding"}, None),
        (np.nan, 55.0, {np.nan: "stored in the padding"}, "stored in the padding"),
        (np.arange(1, 4), np.arange(3), [(np.arange(1, 4), "starts at 1")], "starts at 1"),
        ([1, 2], [1], [([1, 2], "one too many")], "one too many"),
        ("Text", "text", {"Text": "capital"}, "capital"),
        (None, 55.0, {None: "returns nothing"}, "returns nothing"),
        (np.float32(58.0001), 55.0, {58.0: "padding"}, "padding"),
    ],
)
def test_misconceptions_are_matched_like_values(actual, wanted, misconceptions, named):
    """A wrong value is recognised with the same tolerance and the same rules as the right one."""
    with pytest.raises(CheckFailed) as caught:
        expect(actual, wanted, misconceptions=misconceptions)
    assert caught.value.misconception == named


def test_expect_passes_what_is_right():
    """The right value raises nothing, misconceptions or not; a wanted dtype is part of being right."""
    expect(jnp.float32(55.0), 55.0, misconceptions={55.0: "never told"})
    expect({"a": [1, 2.0]}, {"a": [1, 2.0]})
    expect(jnp.arange(3.0), np.arange(3.0), dtype=np.float32)
    with pytest.raises(CheckFailed, match="dtype"):
        expect(np.arange(3.0), np.arange(3.0), dtype=np.float32)


def test_operations_of_a_plain_function():
    """Counts are those of the StableHLO text that JAX prints for the same function."""

    def function(x):
        return jnp.where(x > 0, jnp.sin(x) * x, x)

    x = jnp.arange(4.0)
    text = jax.jit(function).lower(x).as_text()
    counts = operations(function, x)
    for name in ("sine", "multiply", "compare", "select"):
        assert counts[name] == text.count(f"stablehlo.{name} ") > 0
    assert operations(jax.jit(function), x) == counts


def test_all_that_is_public_is_documented():
    """What authors import has a docstring, and a star import gives them nothing else."""
    assert set(checks.__all__) == {"CheckFailed", "check", "expect", "operations"}
    assert all(inspect.getdoc(getattr(checks, name)) for name in checks.__all__)


def test_in_a_plain_script_a_failed_check_is_seen():
    """Without examiner and kernel a failed block raises, so that a test which is run by hand cannot fail unseen."""
    script = "from graders.checks import check, expect\nwith check('one'):\n    expect(1, 1)\nwith check('two'):\n    expect(1, 2)\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("graders.checks.CheckFailed: wanted 2, got 1")


def test_importing_the_checks_leaves_jax_out():
    """A course without JAX does not pay for it: the checks load it with the first count of operations."""
    script = "import sys, graders.checks; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


CELLS = {
    "all": ("with check('a', points=1):\n    expect(x, 1)\nwith check('b', points=2):\n    expect(x + 1, 2)", 3),
    "part": ("with check('a', points=1):\n    expect(x, 1)\nwith check('b', points=2):\n    expect(x, 2)", 1),
    "none": ("with check('a', points=1):\n    expect(x, 0)\nwith check('b', points=2):\n    expect(x, 2)", 0),
    "raises": ("with check('a', points=1):\n    expect(x, 1)\nraise ValueError('beside the checks')", 0),
    "later": ("with check('b', points=2.5):\n    expect(x, 1)\nassert x == 1", 2.5),
}


def test_the_same_cell_is_partial_credit_in_plain_nbgrader():
    """Run in a plain kernel, a cell of checks ends in the points earned, and nbgrader's own reading gives those points."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells.append(nbformat.v4.new_code_cell("from graders.checks import check, expect\nx = 1"))
    for name, (source, _) in CELLS.items():
        cell = nbformat.v4.new_code_cell(textwrap.dedent(source))
        cell.metadata.nbgrader = {
            "grade": True,
            "grade_id": name,
            "points": 3,
            "solution": False,
            "locked": True,
            "schema_version": 3,
        }
        notebook.cells.append(cell)
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute()
    earned = {cell.metadata.nbgrader["grade_id"]: determine_grade(cell)[0] for cell in notebook.cells[1:]}
    assert earned == {name: points for name, (_, points) in CELLS.items()}
    assert "passed: a (1 points)" in str(notebook.cells[1].outputs)
