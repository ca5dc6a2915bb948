"""From errors to advice in the student's words.

Comes in: a problem (class name and message) or a judged check. Goes out: a sentence or two that a student can act on.
Must not: quote a hidden test. Of a problem in a test only the class decides, and a name is repeated only when the
student received or wrote it.

The classes that JAX raises for each mistake were observed on 0.9.2, 0.10.2 and 0.12.0.1; they agree.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from importlib.metadata import version

from graders.coursework import Assignment, Role
from graders.records import CheckResult, Outcome
from graders.runs import Problem

NOT_ANSWERED = "This exercise is not answered yet: replace the line that raises NotImplementedError with your own code."

BY_CLASS = {
    "TracerBoolConversionError": (
        "Your code asks Python to decide something (if, while, and, or, not, min, max, assert) from a value that is "
        "only known when the compiled program runs. Let the program decide: jax.lax.cond for a branch, jnp.where for a "
        "choice between values, jax.lax.while_loop for a loop."
    ),
    "TracerIntegerConversionError": (
        "Your code needs a plain Python integer (for range, or to index a list) where the value is only known when the "
        "compiled program runs. Use jax.lax.fori_loop for the loop, index a JAX array instead of a list, or take the "
        "number from a shape."
    ),
    "TracerArrayConversionError": (
        "Your code hands a traced JAX value to NumPy, which needs actual numbers. Inside a transformed function use "
        "the jnp function of the same name."
    ),
    "ConcretizationTypeError": (
        "Your code needs an actual number (float(), int(), .item(), or a shape that depends on the data) while JAX is "
        "still tracing, when there is only a placeholder. Keep the value as a JAX array inside the function and "
        "convert it after the call."
    ),
    "NonConcreteBooleanIndexError": (
        "Selecting with a mask, as in x[mask], gives an array whose length depends on the data; a compiled program "
        "needs fixed shapes. Keep the shape and neutralise what does not count: jnp.where(mask, x, 0.0)."
    ),
    "UnexpectedTracerError": (
        "A value from inside a transformed function was kept outside it, for example in a global or a list. It means "
        "nothing after tracing. Return what you need from the function instead."
    ),
    "NotImplementedError": NOT_ANSWERED,
    "SystemExit": (
        "Your code ends Python (sys.exit(), exit() or quit()). In a notebook a cell just ends; take that call out."
    ),
    "StdinNotImplementedError": (
        "Your code asks for keyboard input. Nobody is at the keyboard while it is graded: put the value into the code."
    ),
    "RecursionError": "Your function calls itself without end. Check the case in which it should stop.",
}
SYNTAX = (
    "Python cannot read this cell{line}. Run the cell in your notebook: it marks the place. Until then the cell does "
    "nothing."
)
UNHASHABLE = (
    "An argument that is marked static must be hashable, and an array or a list is not. Static is for choices that "
    "shape the program, such as a flag or a size as a tuple; pass numbers and arrays as ordinary arguments."
)
IN_PLACE = "JAX arrays cannot be changed in place. Make a changed copy: x = x.at[i].set(value), or .at[i].add(value)."
SHAPES = "Two arrays in your code do not fit together. Print their .shape just before the line that fails, and compare."
UNDEFINED = (
    "Your code uses the name {name}, which is not defined at that point. Run all cells from the top in a fresh kernel."
)
ONLY_IN_TEST = (
    "Your code uses the name {name}, which only a test cell defines. Tests run apart from your notebook: define what "
    "your answer needs in your answer."
)
NOT_DEFINED = "The tests look for the name {name}, and your notebook does not define it. Check the spelling."
NOT_DEFINED_HERE = (
    "The tests look for a name that your notebook does not define. Check the names that the task asks for."
)
MODULE = (
    "Your code imports {name}, which is not there where submissions are graded. Use the libraries that the notebook "
    "itself imports."
)
BRANCHES = (
    "The branches of your jax.lax.cond (or the steps of a loop) give results of different shape or dtype. They must "
    "agree: compare what each returns."
)
GRADIENT = (
    "jax.grad needs a function that returns one number. Sum or average the result, or use jax.jacrev for all of it."
)
GRADIENT_DTYPE = (
    "jax.grad works on floating point numbers, and this argument is an integer. Pass 3.0 instead of 3, or a float32 "
    "array."
)
REMOVED = "{old} was removed from JAX; use {new} instead. Submissions are graded with JAX {version}."
REMOVED_NAMES = {
    "jax.tree_map": "jax.tree.map",
    "jax.tree_leaves": "jax.tree.leaves",
    "jax.tree_flatten": "jax.tree.flatten",
    "jax.tree_unflatten": "jax.tree.unflatten",
    "jax.xla_computation": "jax.jit(f).lower(...)",
    "jax.DeviceArray": "jax.Array",
    "jax.numpy.DeviceArray": "jax.Array",
    "jax.ops.index_update": "x.at[i].set(value)",
    "jax.ops.index_add": "x.at[i].add(value)",
}
NOT_CALLABLE = (
    "Something that should be a function is not one, or a function returns None. Check that it has a return line."
)

_HEAD = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exit|Exception|Interrupt))(?::\s*(.*))?\s*\Z", re.DOTALL)
_SHAPES = re.compile(
    r"incompatible shapes|shapes? .*(mismatch|not aligned|must be equal)|could not be broadcast"
    r"|mismatch in its core dimension|must have the same shape|different numbers of dimensions"
    r"|cannot (broadcast|reshape)|requires contracting dimensions",
    re.IGNORECASE,
)


def student_reads(check: CheckResult) -> str | None:
    """The text under a check that did not pass: the misconception that was recognised, else the hint.

    A broken check has none: it says nothing about the answer.
    """
    if check.outcome in (Outcome.passed, Outcome.broken):
        return None
    return check.misconception or check.hint


def problem_in(message: str | None) -> Problem | None:
    """Read a check's message of the form `TypeError: …` back into a problem; None when it is another text."""
    match = _HEAD.match(message or "")
    return Problem(match[1], match[2] or "") if match else None


def advice_for_cell(problem: Problem, source: str, test_names: frozenset[str] = frozenset()) -> str | None:
    """Advice about an error that the student's own cell raised.

    `source` is the text of the cell: only what stands there is repeated, since student code chooses the words of its errors
    and could put into them what a hidden test told it. `test_names` are the names that only tests define.
    """
    name = _quoted(problem.message)
    if name is not None and not _stands_in(name, source):
        name = None
    if problem.name == "NameError" and name:
        return (ONLY_IN_TEST if name in test_names else UNDEFINED).format(name=name)
    if problem.name in ("ModuleNotFoundError", "ImportError"):
        return MODULE.format(name=name) if name else None
    if problem.name in ("SyntaxError", "IndentationError", "TabError"):
        line = re.search(r"line (\d+)", problem.message)
        shown = f" (line {line[1]})" if line and int(line[1]) <= source.count("\n") + 1 else ""
        return SYNTAX.format(line=shown)
    return _by_class(problem)


def advice_for_test(problem: Problem, released: str) -> str | None:
    """Advice about an error that surfaced in a test. `released` is the text that students received."""
    if problem.name == "NameError":
        name = _quoted(problem.message)
        return NOT_DEFINED.format(name=name) if name and _stands_in(name, released) else NOT_DEFINED_HERE
    return _by_class(problem)


def _by_class(problem: Problem) -> str | None:
    kind, message = problem.name.rpartition(".")[2], problem.message
    if kind == "RuntimeError" and "input" in message.lower() and "stdin" in message.lower():
        kind = "StdinNotImplementedError"
    if kind in BY_CLASS:
        return BY_CLASS[kind]
    if kind in ("ValueError", "TypeError") and ("unhashable" in message or "Non-hashable static" in message):
        return UNHASHABLE
    if kind == "TypeError" and ("item assignment" in message or "immutable" in message):
        return IN_PLACE
    if kind == "TypeError" and "Gradient only defined for scalar-output" in message:
        return GRADIENT
    if kind == "TypeError" and message.startswith("grad requires real- or complex-valued inputs"):
        return GRADIENT_DTYPE
    if kind == "TypeError" and re.search(r"must have equal (output )?types|body_fun output and input must", message):
        return BRANCHES
    if kind in ("ValueError", "TypeError") and _SHAPES.search(message):
        return SHAPES
    removed = re.search(r"module '(jax[.\w]*)' has no attribute '(\w+)'", message)
    old = f"{removed[1]}.{removed[2]}" if removed else ""
    if old in REMOVED_NAMES:
        return REMOVED.format(old=old, new=REMOVED_NAMES[old], version=version("jax"))
    if kind == "TypeError" and ("is not callable" in message or "NoneType" in message):
        return NOT_CALLABLE
    return None


def _stands_in(name: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _quoted(message: str) -> str | None:
    """The identifier or dotted module that an error message quotes first."""
    match = re.search(r"'([A-Za-z_][\w.]*)'", message)
    return match[1] if match else None


def names_of_tests(assignment: Assignment) -> frozenset[str]:
    """The names that test cells bind and no other cell of the assignment does, from the author's text alone."""
    tests: set[str] = set()
    others: set[str] = set()
    for cells in assignment.notebooks.values():
        for cell in cells:
            if cell.cell_type == "code":
                (tests if cell.role is Role.test else others).update(_bound(cell.source))
    return frozenset(tests - others)


@lru_cache(maxsize=1000)
def _bound(source: str) -> set[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with a magic; it binds nothing that advice could name
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names
