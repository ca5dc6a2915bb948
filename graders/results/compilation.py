"""What a TPU would execute, in words for a student.

Comes in: a report whose receipt has a compilation. Goes out: sentences, by exercise. Must not: tell a shape, or a figure that follows
from one, of arguments that only a hidden test uses; or repeat a compiler's message, which quotes them.
"""

from __future__ import annotations

from graders.compilations import Compilation, CompiledProgram, CompileOutcome, Figures
from graders.records import Record, Report

_WHY_NOT = {
    CompileOutcome.refused: "The compiler for the {chip} did not take it. On the CPU, where it was judged, it runs.",
    CompileOutcome.out_of_memory: "It needs more memory than a {chip} has, so it would not run there.",
    CompileOutcome.cannot_check: "Whether it would run on a {chip} cannot be checked without one: it uses more than arrays, such as a callback.",
    CompileOutcome.lost: "It could not be compiled here. That says nothing about your answer.",
}


class Told(Record):
    """One function of a student: how the test calls it, and what is said of it."""

    function: str
    how: str
    sentences: tuple[str, ...]


def told(report: Report) -> dict[str, list[Told]]:
    """By grade_id of the test, what became of the programs that it used; nothing where none were compiled."""
    made = report.receipt.compilation if report.receipt else None
    found: dict[str, list[Told]] = {}
    for one in made.programs if made else ():
        assert made is not None
        found.setdefault(one.test, []).append(Told(one.function, _how(one), tuple(sentences(one, made))))
    return found


def sentences(one: CompiledProgram, made: Compilation) -> list[str]:
    """What is said of one program."""
    if one.figures is None:
        return [_WHY_NOT.get(one.outcome, _WHY_NOT[CompileOutcome.lost]).format(chip=made.chip)]
    said = [_served(one.figures), *_control(one.figures)]
    return [*said, _roofline(one.figures, made)] if one.shown else said


def _how(one: CompiledProgram) -> str:
    under = f" under {', '.join(one.transformed)}" if one.transformed else ""
    return under + (f" for {', '.join(one.arguments)}" if one.shown and one.arguments else "")


def _served(figures: Figures) -> str:
    if figures.masks:
        return "The mask is data that it reads while it runs: one program serves every mask of its shape."
    return "One program serves all values of its arguments: it reads them while it runs."


def _control(figures: Figures) -> list[str]:
    said = []
    if figures.choices and figures.conditionals:
        said.append("The conditional stayed a conditional: the side that is not chosen is not computed.")
    elif figures.choices:
        said.append("The compiler made the conditional a selection: both sides are computed, and one result is kept.")
    if figures.repetitions and figures.loops:
        said.append("The loop stayed a loop.")
    elif figures.repetitions:
        said.append("The compiler wrote the loop out: no loop is left.")
    return said


def _roofline(figures: Figures, made: Compilation) -> str:
    """The lesson's roofline: P <= min(P_peak, B * I) with I = W / Q."""
    counted = f"The compiler counts {figures.flops:,.0f} FLOP and {figures.bytes_accessed:,.0f} bytes moved"
    if not figures.intensity:
        return f"{counted}, so the roofline says nothing about it."
    machine = f"{made.peak / 1e12:,.0f} TFLOP/s and {made.bandwidth / 1e9:,.0f} GB/s"
    limit = "the memory" if figures.memory_bound else "the arithmetic"
    return (
        f"{counted}, an arithmetic intensity of {_rounded(figures.intensity)} FLOP per byte. With the {machine} of a {made.chip} the "
        f"roofline allows it at most {_rounded(figures.bound / 1e9)} GFLOP/s: {limit} is what limits it."
    )


def _rounded(value: float) -> str:
    """Three digits, which is more than a roofline deserves."""
    return f"{float(f'{value:.3g}'):,g}"
