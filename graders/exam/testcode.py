"""A test as Python code: compiled once by whoever grades, run by the examiner of every submission.

Comes in: a segment of a test and its name. Goes out: code objects, or their bytes for an examiner, which is the same interpreter. Must
not: see anything of a submission.
"""

from __future__ import annotations

import ast
import functools
import marshal
from types import CodeType

from graders.exam.plan import Segment


def filename(name: str, segment: Segment) -> str:
    """What tracebacks call it."""
    return f"<test {name}, line {segment.line + 1} on>"


@functools.lru_cache(maxsize=256)
def packed(name: str, segment: Segment) -> bytes:
    """The code of a segment as bytes, 6 ms for a long one; empty when it is not Python, which its examiner then says."""
    try:
        return marshal.dumps(_split(segment.source, filename(name, segment)))
    except (SyntaxError, ValueError):
        return b""


def unpacked(name: str, segment: Segment, code: bytes) -> tuple[CodeType, CodeType | None]:
    """The code of a segment and, apart, of the expression it ends in. `code` is what `packed` made of it, or empty.

    Raises:
        SyntaxError: the segment is not Python.
    """
    if not code:
        return _split(segment.source, filename(name, segment))
    body, last = marshal.loads(code)  # of whoever grades: a candidate's bytes never come here
    return body, last


def _split(source: str, filename: str) -> tuple[CodeType, CodeType | None]:
    tree = ast.parse(source, filename)
    last = None
    match tree.body:
        case [*_, ast.Expr(ending)] if not source.rstrip().endswith(";"):
            tree.body.pop()
            last = compile(ast.Expression(ending), filename, "eval")
    return compile(tree, filename, "exec"), last
