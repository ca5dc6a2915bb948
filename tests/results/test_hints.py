"""Laws of advice: it names what to do, and it never quotes a hidden test."""

from __future__ import annotations

from decimal import Decimal

import pytest
from result_samples import assignment, cell, failed, passed

from graders.coursework import Reference, Role
from graders.records import Outcome
from graders.results import hints
from graders.results.scoring import score
from graders.runs import CellRun, Ended, Problem, RawCheck, Run, TestRun

# Messages as JAX 0.9.2, NumPy 2.4 and Python 3.11 write them
# A student's cell of three lines, in which the names stand that the errors below are about.
SOURCE = """import torch.nn
wanted = expected
x = """

KNOWN = [
    ("TracerBoolConversionError", "Attempted boolean conversion of traced array with shape bool[].", "jax.lax.cond"),
    ("ConcretizationTypeError", "Abstract tracer value encountered where concrete value is expected", "after the call"),
    ("TracerArrayConversionError", "The numpy.ndarray conversion method __array__() was called", "jnp"),
    ("TracerIntegerConversionError", "The __index__() method was called on traced array", "fori_loop"),
    ("UnexpectedTracerError", "Encountered an unexpected tracer.", "Return what you need"),
    ("NonConcreteBooleanIndexError", "Array boolean indices must be concrete; got bool[3]", "jnp.where"),
    ("NotImplementedError", "", "not answered yet"),
    ("NameError", "name 'expected' is not defined", "expected"),
    ("ModuleNotFoundError", "No module named 'torch.nn'", "torch.nn"),
    ("SystemExit", "0", "take that call out"),
    (
        "StdinNotImplementedError",
        "raw_input was called, but this frontend does not support input requests.",
        "keyboard",
    ),
    ("SyntaxError", "invalid syntax (<ipython-input>, line 3)", "line 3"),
    ("ValueError", "Non-hashable static arguments are not supported.", "static"),
    ("TypeError", "unhashable type: 'list'", "static"),
    ("TypeError", "JAX arrays are immutable and do not support in-place item assignment.", ".at[i].set"),
    ("TypeError", "add got incompatible shapes for broadcasting: (3,), (4,).", ".shape"),
    ("ValueError", "operands could not be broadcast together with shapes (3,) (4,) ", ".shape"),
    ("TypeError", "dot_general requires contracting dimensions to have the same shape, got (3,) and (2,).", ".shape"),
    ("TypeError", "cond branches must have equal output types but they differ.", "branches"),
    ("TypeError", "Gradient only defined for scalar-output functions. Output had shape: (3,).", "one number"),
    ("AttributeError", "module 'jax' has no attribute 'tree_map'", "jax.tree.map"),
]


@pytest.mark.parametrize(("name", "message", "told"), KNOWN)
def test_known_errors_become_advice(name, message, told):
    """Each error that students meet with JAX is answered with what to do about it."""
    assert told in hints.advice_for_cell(Problem(name, message), SOURCE)


def test_an_unknown_error_gets_no_advice():
    """No advice is better than a guess."""
    assert hints.advice_for_cell(Problem("ZeroDivisionError", "division by zero"), SOURCE) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NameError", "name 'hidden_input_58' is not defined"),
        ("ModuleNotFoundError", "No module named 'hidden_input_58'"),
        ("SyntaxError", "invalid syntax (line 5858)"),
    ],
)
def test_an_error_of_a_cell_cannot_carry_what_a_hidden_test_said(name, message):
    """Student code chooses the words of its errors, so advice repeats only what stands in the student's own cell."""
    assert "58" not in (hints.advice_for_cell(Problem(name, message), SOURCE) or "")


def test_a_name_that_only_a_test_defines_is_said_to_be_one():
    """An answer that leans on a test's helper is told so, by the author's text alone."""
    book = assignment(
        cell(Role.locked, source="import numpy as np\nshared = 1"),
        cell(Role.answer, "a", source="x = shared"),
        cell(Role.test, "t", 1, source="shared = 2\nhelper = 3\nassert x"),
    )
    assert {"helper"} == hints.names_of_tests(book)
    run = Run(
        (CellRun(1, "a", Ended.error, problem=Problem("NameError", "name 'helper' is not defined")),),
        (TestRun("t", Ended.error, problem=Problem("NameError", "name 'x' is not defined")),),
    )
    [one] = score(book, Reference("0" * 64, {}), run, {"a": "x = helper"})
    assert "which only a test cell defines" in one.advice


def test_advice_on_a_test_repeats_no_name_that_students_never_saw():
    """A name that stands only in the hidden part of a test is not told."""
    problem = Problem("NameError", "name 'hidden_trap' is not defined")
    assert "hidden_trap" not in hints.advice_for_test(problem, "masked_score = ...")
    assert "masked_score" in hints.advice_for_test(
        Problem("NameError", "name 'masked_score' is not defined"), "masked_score = ..."
    )


@pytest.mark.parametrize(("name", "message", "told"), KNOWN)
def test_advice_on_a_test_does_not_quote_its_message(name, message, told):
    """Of an error in a test only the class and known phrases decide; nothing of the message is repeated."""
    secret = "SECRET 12345.678"
    assert secret not in (hints.advice_for_test(Problem(name, f"{message} {secret}"), "") or "")


def test_an_error_inside_a_check_is_read_back():
    """A check that failed by an exception leads to the same advice as the exception itself."""
    book = assignment(cell(Role.answer, "a"), cell(Role.test, "t", 1))
    message = "jax.errors.TracerBoolConversionError: Attempted boolean …"
    checks = (RawCheck("p", Decimal(1), Outcome.failed, message=message),)
    ref = Reference("0" * 64, {"t": (RawCheck("p", Decimal(1), Outcome.passed),)})
    run = Run((), (TestRun("t", Ended.ok, checks),))
    report = score(book, ref, run, {"a": "x"})
    assert hints.BY_CLASS["TracerBoolConversionError"] == report[0].advice
    assert hints.problem_in("the padding was counted") is None


def test_the_misconception_comes_before_the_hint():
    """A student reads the misconception when one was recognised, else the hint, and nothing under a passed check."""
    assert hints.student_reads(failed("p", 1, "h", "m")) == "m"
    assert hints.student_reads(failed("p", 1, "h")) == "h"
    assert hints.student_reads(failed("p", 1)) is None
    assert hints.student_reads(passed("p", 1)) is None
