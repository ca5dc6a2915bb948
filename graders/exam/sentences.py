"""What a student reads about a cell or a test that did not end by itself.

Comes in: how it ended, the limits, and what the candidate says that it was doing. Goes out: a sentence. Must not: say of
what a candidate told that it is so beyond "when it was stopped"; it decides no score.
"""

from __future__ import annotations

import re

from graders.exam.pair import Conditions
from graders.runs import Ended

LOST_NAMES = "An earlier test, whose names this one needs, was lost. A person will look at it."
TRANSLATING = (
    " When it was stopped, JAX was still tracing and compiling, and had not begun to compute. Under jax.jit a Python loop is "
    "written out pass by pass: use jax.lax.fori_loop or jax.lax.scan. A large array that is made of constants inside the "
    "function is computed by the compiler: pass it as an argument."
)
# Where JAX 0.9 to 0.12 trace a function, lower it and have it compiled
_TRANSLATORS = re.compile(r'/jax/_src/(?:compiler|interpreters/(?:partial_eval|mlir))\.py"')


def sentence(ended: Ended, conditions: Conditions, *, called: bool = False, stack: str = "") -> str | None:
    """The sentence, or None for what ended by itself. `called`: a test called the code; `stack`: see `kernels.stacks`."""
    subject = "Your code, called by a test," if called else "This cell"
    told = {
        Ended.timeout: f"{subject} did not finish within {conditions.cell_timeout_s:g} s and was stopped.",
        Ended.memory: f"{subject} used more than {conditions.limits.memory_bytes / 2**20:,.0f} MiB of memory and was stopped.",
        Ended.died: f"{subject} ended the Python process it ran in (os._exit, a crash, or a kill).",
        Ended.forged: f"{subject} spoke to the examination behind the notebook's back; the test was ended.",
        Ended.budget: f"The {conditions.submission_timeout_s:g} s for the whole submission were used up before this was done.",
    }.get(ended)
    return told + TRANSLATING if told and translating(stack) else told


def translating(stack: str) -> bool:
    """Whether JAX was making a program of a function."""
    return _TRANSLATORS.search(stack) is not None
