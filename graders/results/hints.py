"""From errors to advice in the student's words.

Comes in: a problem (class name and message) or a judged check. Goes out: a sentence or two that a student can act on.
Must not: quote a hidden test. Of a problem in a test only the class decides, and a name is repeated only when the
student received or wrote it. What JAX's own errors mean stands in jaxerrors.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from graders.coursework import Assignment, Role
from graders.records import CheckResult, Outcome
from graders.results import jaxerrors
from graders.runs import Problem

NOT_ANSWERED = "This exercise is not answered yet: replace the line that raises NotImplementedError with your own code."

BY_CLASS = {
    **jaxerrors.BY_CLASS,
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
NOT_CALLABLE = (
    "Something that should be a function is not one, or a function returns None. Check that it has a return line."
)

_HEAD = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exit|Exception|Interrupt))(?::\s*(.*))?\s*\Z", re.DOTALL)


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
        return jaxerrors.removed(problem.message) or (MODULE.format(name=name) if name else None)
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
    if told := jaxerrors.advice(kind, message):
        return told
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
