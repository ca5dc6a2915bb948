"""Laws of what a student reads about a TPU: it follows from what the compiler found, and nothing hidden can be read off it."""

from __future__ import annotations

import json

import msgspec
import pytest
from page_reader import Page
from page_samples import RECEIPT, compiled, figures

from graders.compilations import CompiledProgram, CompileOutcome, Figures
from graders.records import report_from_json, to_json
from graders.results import compilation, feedback

replace = msgspec.structs.replace


def said(made: Figures | None, *, shown: bool = True, outcome: CompileOutcome = CompileOutcome.compiled) -> str:
    """What is said of a program with these figures."""
    whole = compiled().receipt.compilation
    one = CompiledProgram("t", "f", ("float32[7]",), (), shown, outcome, "SECRET 7", made)
    return " ".join(compilation.sentences(one, whole))


def test_the_roofline_is_told_as_the_lesson_tells_it():
    """A million inputs of four bytes and three operations: 0.75 FLOP per byte, on a v5e at most 819 * 0.75 = 614.25 GFLOP/s."""
    text = said(figures(flops=3e6, bytes_accessed=4e6, intensity=0.75, bound=614.25e9))
    assert "3,000,000 FLOP and 4,000,000 bytes" in text
    assert "0.75 FLOP per byte" in text
    assert "197 TFLOP/s and 819 GB/s of a TPU v5e" in text
    assert "at most 614 GFLOP/s: the memory is what limits it" in text
    assert "197,000 GFLOP/s: the arithmetic" in said(figures(intensity=500.0, bound=197e12, memory_bound=False))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"choices": 1, "conditionals": 1}, "conditional stayed a conditional"),
        ({"choices": 1, "conditionals": 0}, "both sides are computed"),
        ({"repetitions": 1, "loops": 1}, "loop stayed a loop"),
        ({"repetitions": 1, "loops": 0}, "no loop is left"),
        ({"masks": 1}, "one program serves every mask"),
        ({"masks": 0}, "all values of its arguments"),
    ],
)
def test_what_stayed_is_told_and_nothing_else(found: dict[str, int], words: str):
    """A choice, a loop or a mask is spoken of where the program has one, by what the compiler left of it."""
    assert words in said(figures(**found))
    assert "conditional" not in said(figures())
    assert "loop" not in said(figures())


def test_no_figure_of_a_hidden_shape_is_told():
    """A program that only hidden tests use is told in words without a number; the compiler's message is never told."""
    many = figures(flops=7e6, bytes_accessed=7e6, intensity=7.0, bound=7e9, choices=1, conditionals=1)
    for text in (said(many, shown=False), *(said(None, outcome=one) for one in CompileOutcome)):
        assert not set("0123456789") & set(text.replace("v5e", ""))
        assert "SECRET" not in text


def test_the_page_tells_it_below_the_answer():
    """Function, shapes that the student knows and sentences stand in the exercise whose test used them, on page and in feedback.json."""
    page = Page(feedback.render(compiled())).words
    assert "masked_score for float32[8], bool[8]" in page
    assert "repaired under grad" in page
    assert "float32[77]" not in page
    assert page.count("What a TPU would execute") == 2
    data = json.loads(to_json(feedback.student_copy(compiled())))
    functions = [[one["function"] for one in exercise["compiled"]] for exercise in data["exercises"]]
    assert functions == [[], ["masked_score"], ["repaired"]]
    assert b"float32[77]" not in to_json(feedback.student_copy(compiled()))


def test_a_name_stays_text():
    """What stands for a function is never markup."""
    report = compiled()
    odd = CompiledProgram("masked-score-test", "<b onload=x>", ("<i>",), ("<u>",), True, CompileOutcome.lost)
    whole = replace(report.receipt.compilation, programs=(odd,))
    page = feedback.render(replace(report, receipt=replace(report.receipt, compilation=whole)))
    for markup in ("<b ", "<i>", "<u>"):
        assert markup not in page


def test_a_receipt_from_before_is_read():
    """A report that was written without a compilation is a report, and one with it comes back as it was."""
    old = json.loads(to_json(replace(compiled(), receipt=RECEIPT)))
    del old["receipt"]["compilation"]
    assert report_from_json(json.dumps(old).encode()).receipt == RECEIPT
    assert report_from_json(to_json(compiled())) == compiled()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_figures_are_numbers(value: float):
    """A figure that is no amount does not get into a record, whatever a compiler says."""
    data = msgspec.to_builtins(figures()) | {"flops": value}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(data, Figures)
