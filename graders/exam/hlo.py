"""What a device would execute, read off the text of a compiled program.

Comes in: optimised HLO as XLA prints it, made from a student's program. Goes out: counts of instructions. Must not: count a word
that only stands in a name or a note, since the student chooses those.
"""

from __future__ import annotations

import re
from collections import Counter

# `%name = type opcode(`: neither names nor types hold a quotation mark; what is quoted comes after the opcode.
_INSTRUCTION = re.compile(r"^ *(?:ROOT )?%?[\w.-]+ = (?:[^\x22\n]*? )?([a-z][a-z0-9-]*)\(", re.MULTILINE)


def instructions(text: str) -> Counter[str]:
    """How often each opcode stands in the text, in all its computations: `fusion`, `conditional`, `while`, ..."""
    return Counter(_INSTRUCTION.findall(text))
