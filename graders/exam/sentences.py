"""What a student reads about a cell or a test that did not end by itself.

Comes in: how it ended, and the limits. Goes out: a sentence. Must not: say what a test does.
"""

from __future__ import annotations

from graders.exam.pair import Conditions
from graders.runs import Ended

LOST_NAMES = "An earlier test, whose names this one needs, was lost. A person will look at it."


def sentence(ended: Ended, limits: Conditions, called: bool = False) -> str | None:
    """Which limit it met, and how much that is; None for an end of its own. `called`: by a test, not as a cell."""
    subject = "Your code, called by a test," if called else "This cell"
    return {
        Ended.timeout: f"{subject} did not finish within {limits.cell_timeout_s:g} s and was stopped.",
        Ended.memory: f"{subject} used more than {limits.limits.memory_bytes / 2**20:,.0f} MiB of memory and was stopped.",
        Ended.died: f"{subject} ended the Python process it ran in (os._exit, a crash, or a kill).",
        Ended.forged: f"{subject} spoke to the examination behind the notebook's back; the test was ended.",
        Ended.budget: f"The {limits.submission_timeout_s:g} s for the whole submission were used up before this was done.",
    }.get(ended)
