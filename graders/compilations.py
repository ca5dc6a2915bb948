"""What a compiler made of a submission's programs for a platform that is not there, as frozen records.

Comes in: nothing. Goes out: the part of a receipt that tells of it. Must not: import anything but the standard library and msgspec.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec


class Noted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As `records.Record`, which stands on these."""


class CompileOutcome(str, Enum):
    """What became of a program that was to be compiled. The last two say nothing about the program itself."""

    compiled = "compiled"
    refused = "refused"  # it does not lower for the platform, or its compiler does not take it
    out_of_memory = "out_of_memory"
    cannot_check = "cannot_check"  # it calls out of its arrays, as callbacks do
    lost = "lost"


Amount = Annotated[float, msgspec.Meta(ge=0, le=1e30)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**60)]


class Figures(Noted):
    """What a compiler says of one program. Counts of operations and bytes are its own, and other versions count otherwise.

    `intensity` is FLOP per byte accessed and `bound` the roofline's FLOP per second. `choices` and `repetitions` are
    the conditionals and loops of the program as it was handed over, `conditionals` and `loops` those that the device would
    execute. `masks` are the boolean arrays among the arguments that it reads.
    """

    compile_s: Amount
    flops: Amount
    bytes_accessed: Amount
    intensity: Amount
    bound: Amount
    memory_bound: bool
    argument_bytes: Count
    output_bytes: Count
    temporary_bytes: Count
    code_bytes: Count
    choices: Count
    conditionals: Count
    repetitions: Count
    loops: Count
    fusions: Count
    masks: Count


class CompiledProgram(Noted):
    """One exported program of a student and what the compiler of another platform made of it. Nothing was run.

    `function` is its name in the test `test`, "" where it has none. `arguments` are dtypes and shapes, for staff unless `shown`;
    `transformed` are transformations, first to last. `reason` is the compiler's word where it was not compiled: staff only.
    """

    test: str
    function: str
    arguments: tuple[str, ...]
    transformed: tuple[str, ...]
    shown: bool
    outcome: CompileOutcome
    reason: str = ""
    figures: Figures | None = None


class Compilation(Noted):
    """What was compiled in one examination, for which topology and by which compiler; `wall_s` is what it added to the run.

    One `chip` of it does `peak` FLOP per second at most and moves `bandwidth` bytes per second.
    `left_out` counts programs beyond the most that are compiled. `problem` is a sentence where no compiler was to be had.
    """

    topology: str
    chip: str
    peak: float
    bandwidth: float
    compiler: str
    wall_s: float
    programs: tuple[CompiledProgram, ...] = ()
    left_out: int = 0
    problem: str | None = None
