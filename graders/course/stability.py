"""Tests that will judge the same answer differently some day: on another machine, another version, another run.

Comes in: a test cell. Goes out: warnings, each with its line. Must not: run anything, or refuse a release.
"""

from __future__ import annotations

import ast
import re

from graders.coursework import ReleasedCell
from graders.exam.bindings import parse
from graders.findings import Finding, Level

_RANDOM = re.compile(r"(^|\.)(random|default_rng|RandomState|PRNGKey)(\.|$)|^(randint|randn|rand)$")
_CLOCK = re.compile(r"(^|\.)(perf_counter|monotonic|process_time|time|thread_time)(_ns)?$|(^|\.)timeit(\.|$)")
_PROGRAM = re.compile(r"(^|\.)(make_jaxpr|lower|xla_computation|as_text|compiler_ir)$")
_TOLERANT = re.compile(r"(^|\.)(isclose|allclose|approx|assert_allclose|assert_almost_equal)$")
_SMALL = 2**24  # integers up to here are exact in float32


def unstable(cell: ReleasedCell) -> list[Finding]:
    """Comparisons of this test that depend on more than the answer."""
    tree = parse(cell.source)
    if tree is None:
        return []
    kinds = {name: _tainted(tree, pattern) for name, pattern in _KINDS.items()}
    found = []
    for line, sides in _comparisons(tree):
        if any(_exact_float(side) for side in sides) and not any(_calls(side, _TOLERANT) for side in sides):
            found.append(_warn(cell, "exact float", line, _EXACT))
        numbers = any(_numbers(side) for side in sides)
        if numbers and any(_touches(side, _RANDOM, kinds["random"]) for side in sides):
            found.append(_warn(cell, "random numbers", line, _DRAWN))
        if any(_touches(side, _CLOCK, kinds["clock"]) for side in sides):
            found.append(_warn(cell, "timing", line, _TIMED))
        if any(_program_text(side, kinds["program"]) for side in sides):
            found.append(_warn(cell, "program text", line, _PRINTED))
    for line, wanted in _expected(tree):
        if numbers_of(wanted) and _touches_any(tree, line, kinds["random"]):
            found.append(_warn(cell, "random numbers", line, _DRAWN))
    return list(dict.fromkeys(found))


_KINDS = {"random": _RANDOM, "clock": _CLOCK, "program": _PROGRAM}
_EXACT = "a float is compared with ==, so the last bit decides. Use expect(actual, wanted), whose tolerance follows the dtype."
_DRAWN = (
    "random numbers are compared with literal ones; a new NumPy or JAX may draw others. Compare a property, or compute the "
    "wanted value in this cell from the same draw."
)
_TIMED = "a time decides here; another machine is slower. Compare counts, such as operations(f, x), or record times without judging."
_PRINTED = "the text of a jaxpr or of HLO is compared; it changes with each JAX. Compare values, or counts with operations(f, x)."


def _warn(cell: ReleasedCell, rule: str, line: int, text: str) -> Finding:
    return Finding(f"stability: {rule}", Level.warning, cell.notebook, cell.id or "", line, text)


def _comparisons(tree: ast.Module) -> list[tuple[int, list[ast.expr]]]:
    return [(node.lineno, [node.left, *node.comparators]) for node in ast.walk(tree) if isinstance(node, ast.Compare)]


def _expected(tree: ast.Module) -> list[tuple[int, ast.expr]]:
    """The wanted values of `expect` and of NumPy's assertions, by line."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1]
    named = re.compile(r"(^|\.)(expect|assert_\w+|allclose|array_equal)$")
    return [(node.lineno, node.args[1]) for node in calls if named.search(ast.unparse(node.func))]


def _touches_any(tree: ast.Module, line: int, names: set[str]) -> bool:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == line and node.args]
    return any(_touches(node.args[0], _RANDOM, names) for node in calls)


def _tainted(tree: ast.Module, pattern: re.Pattern[str]) -> set[str]:
    """Names that hold what such a call gave, directly or through another name."""
    names: set[str] = set()
    for _ in range(3):
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if _touches(node.value, pattern, names):
                    names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return names


def _touches(node: ast.AST, pattern: re.Pattern[str], names: set[str]) -> bool:
    return _calls(node, pattern) or any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))


def _calls(node: ast.AST, pattern: re.Pattern[str]) -> bool:
    return any(isinstance(one, ast.Call) and bool(pattern.search(ast.unparse(one.func))) for one in ast.walk(node))


def _program_text(node: ast.AST, names: set[str]) -> bool:
    """Whether a jaxpr or lowered program is turned into text here."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            called = ast.unparse(one.func)
            if called.rpartition(".")[2] in ("as_text", "pretty_print"):
                return True
            if called in ("str", "repr") and one.args and _touches(one.args[0], _PROGRAM, names):
                return True
        if isinstance(one, ast.FormattedValue) and _touches(one.value, _PROGRAM, names):
            return True
    return isinstance(node, ast.Name) and node.id in names


def _exact_float(node: ast.expr) -> bool:
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    if not isinstance(value, ast.Constant) or not isinstance(value.value, float):
        return False
    return not (value.value.is_integer() and abs(value.value) <= _SMALL)


def numbers_of(node: ast.expr) -> bool:
    """Whether an expression is made of literal numbers alone, such as a list of them or an array of that list."""
    named = (ast.Name, ast.Attribute)
    parts = [one for one in ast.walk(node) if isinstance(one, ast.Constant)]
    free = [one for one in ast.walk(node) if isinstance(one, named) and not _library(one)]
    return bool(parts) and not free and all(isinstance(one.value, (int, float)) for one in parts)


_numbers = numbers_of


def _library(node: ast.Name | ast.Attribute) -> bool:
    return ast.unparse(node).partition(".")[0] in ("np", "jnp", "numpy", "jax")
