"""Wrong answers made from right ones, to see whether an assignment's tests notice.

Comes in: the source of an answer. Goes out: mutants, each a source with one thing changed and a sentence that says what.
Must not: run anything, or make the same text twice.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterable, Iterator

from graders.course import changes
from graders.exam.bindings import bound, plain_python, read
from graders.records import Record


class Mutant(Record):
    """One changed answer. `what` says in words what was changed, `diff` shows it."""

    what: str
    source: str
    diff: str


def mutants(source: str, wanted: Iterable[str], released: str = "", visible: str = "") -> tuple[Mutant, ...]:
    """Every mutant of an answer, each different from the answer, from the released stub and from each other.

    Only statements are changed on which a name in `wanted` depends, or which call something for its effect: what an answer
    prints or asserts for itself is nobody's business. From `visible`, what students see of the tests, come functions that
    return the results which stand there.
    """
    try:
        tree = ast.parse(plain_python(source))
    except (SyntaxError, ValueError):
        return ()
    original = ast.unparse(tree)
    seen = {original, _normal(released)}
    found = []
    wanted = set(wanted)
    for what, changed in [*_changes(tree, _relevant(tree, set(wanted))), *_hard_coded(tree, wanted, visible)]:
        text = ast.unparse(ast.fix_missing_locations(changed))
        if text in seen or not _compiles(text):
            continue
        seen.add(text)
        lines = difflib.unified_diff(original.splitlines(), text.splitlines(), lineterm="", n=0)
        shown = [line for line in lines if not line.startswith(("--- ", "+++ ", "@@"))]
        found.append(Mutant(what, text + "\n", "\n".join(shown)))
    return tuple(found)


def _normal(source: str) -> str:
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:
        return source


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _relevant(tree: ast.Module, wanted: set[str]) -> set[int]:
    """Identities of the nodes below the statements that matter to `wanted`, found backwards; docstrings do not."""
    chosen: set[int] = set()
    for statement in reversed(tree.body):
        part = ast.Module([statement], [])
        call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        effect = call and ast.unparse(statement.value.func) != "print"  # type: ignore[attr-defined]
        if effect or bound(part) & wanted:
            wanted |= set(read(part))
            chosen |= {id(node) for node in ast.walk(statement)}
    return chosen - {id(node) for node in _idle(tree)}


def _idle(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes whose change is no mistake: docstrings and other texts that stand alone, annotations, what is printed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield from ast.walk(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "print":
            yield from ast.walk(node)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.AST):
                yield from ast.walk(annotation)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for argument in node.exc.args:
                yield from ast.walk(argument)


def _changes(tree: ast.Module, places: set[int]) -> Iterator[tuple[str, ast.Module]]:
    """One tree for every edit that is possible at one of the places."""
    for index, node in enumerate(ast.walk(tree)):
        for what, edit in changes.edits(node) if id(node) in places else ():
            fresh = copy.deepcopy(tree)
            twin = next(one for number, one in enumerate(ast.walk(fresh)) if number == index)
            instead = edit(twin)
            if instead is not None:
                _Replaced(twin, instead).visit(fresh)
            yield what, fresh


class _Replaced(ast.NodeTransformer):
    """One node replaced by another."""

    def __init__(self, node: ast.AST, instead: ast.expr) -> None:
        self.node = node
        self.instead = instead

    def visit(self, node: ast.AST) -> ast.AST:
        """The node that stands there now."""
        return self.instead if node is self.node else self.generic_visit(node)


def _hard_coded(tree: ast.Module, wanted: set[str], visible: str) -> Iterator[tuple[str, ast.Module]]:
    """Functions that give the results which the visible tests show: always the same one, or by looking up the arguments."""
    for index, node in enumerate(tree.body):
        if not isinstance(node, ast.FunctionDef) or node.name not in wanted:
            continue
        pairs = _shown(node.name, visible)
        bodies = [(f"always returns {result}", f"return {result}") for result in dict.fromkeys(two for _, two in pairs)]
        if pairs:
            known = "".join(f"(({''.join(f'{one}, ' for one in given)}), {result}), " for given, result in pairs)
            alike = "all(bool(__import__('numpy').array_equal(one, two)) for one, two in zip(given, known))"
            table = f"for known, result in ({known}):\n    if {alike}:\n        return result\nreturn {pairs[-1][1]}"
            bodies.append(("knows the visible results", table))
        for what, body in bodies:
            fresh = copy.deepcopy(tree)
            twin = fresh.body[index]
            assert isinstance(twin, ast.FunctionDef)
            twin.args = ast.parse("lambda *given: 0", mode="eval").body.args  # type: ignore[attr-defined]
            twin.decorator_list, twin.body = [], ast.parse(body).body
            yield f"{node.name}: {what}", fresh


def _shown(name: str, visible: str) -> list[tuple[tuple[str, ...], str]]:
    """Arguments and results of the calls of `name` whose result stands beside them in a comparison, names filled in."""
    try:
        tree = ast.parse(plain_python(visible))
    except SyntaxError:
        return []
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            left = node.left
            while (
                isinstance(left, ast.Call) and ast.unparse(left.func) in ("float", "int", "bool", "str") and left.args
            ):
                left = left.args[0]
            called = isinstance(left, ast.Call) and ast.unparse(left.func) == name
            literal = not any(isinstance(one, (ast.Name, ast.Call)) for one in ast.walk(node.comparators[0]))
            if called and literal and isinstance(left, ast.Call):
                given = tuple(ast.unparse(_Filled(values).visit(copy.deepcopy(one))) for one in left.args)
                found.append((given, ast.unparse(node.comparators[0])))
    return found


class _Filled(ast.NodeTransformer):
    """Names that the visible test assigns, replaced by what it assigns."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The value of a name, or the name."""
        return copy.deepcopy(self.values.get(node.id, node))
