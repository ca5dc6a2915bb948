"""Wrong answers made from right ones, to see whether an assignment's tests notice.

Comes in: the source of an answer. Goes out: mutants, each a source with one thing changed and a sentence that says what.
Must not: run anything, or make the same text twice.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Callable, Iterable, Iterator

from graders.exam.ownership import bound, read
from graders.records import Record

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.MatMult: ast.Mult,
}  # fmt: skip
_REDUCTIONS = {
    "sum": "mean",
    "mean": "sum",
    "max": "min",
    "min": "max",
    "prod": "sum",
    "square": "abs",
    "abs": "square",
}
_DTYPES = {"float32": "int32", "float64": "float32", "int32": "float32", "bool_": "float32"}
_ERRORS = {
    "ValueError": "KeyError",
    "TypeError": "ValueError",
    "KeyError": "ValueError",
    "NotImplementedError": "TypeError",
}


class Mutant(Record):
    """One changed answer. `what` says in words what was changed, `diff` shows it."""

    what: str
    source: str
    diff: str


def mutants(source: str, wanted: Iterable[str], released: str = "") -> tuple[Mutant, ...]:
    """Every mutant of an answer, each different from the answer, from the released stub and from each other.

    Only statements are changed on which a name in `wanted` depends, or which call something for its effect: what an answer
    prints or asserts for itself is nobody's business.
    """
    tree = ast.parse(source)
    original = ast.unparse(tree)
    seen = {original, _normal(released)}
    found = []
    for what, changed in _changes(tree, _relevant(tree, set(wanted))):
        text = ast.unparse(ast.fix_missing_locations(changed))
        if text in seen or not _compiles(text):
            continue
        seen.add(text)
        lines = difflib.unified_diff(original.splitlines(), text.splitlines(), lineterm="", n=0)
        found.append(Mutant(what, text + "\n", "\n".join(line for line in lines if line[:3] not in ("---", "+++"))))
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
    """Identities of the nodes below the statements that matter to `wanted`, found backwards."""
    chosen: set[int] = set()
    for statement in reversed(tree.body):
        part = ast.Module([statement], [])
        call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        effect = call and ast.unparse(statement.value.func) != "print"  # type: ignore[attr-defined]
        if effect or (bound(part) & wanted and not isinstance(statement, ast.For)):
            wanted |= set(read(part))
            chosen |= {id(node) for node in ast.walk(statement)}
    return chosen


def _changes(tree: ast.Module, places: set[int]) -> Iterator[tuple[str, ast.Module]]:
    """One tree for every change that a rule makes at a node."""
    for index, node in enumerate(ast.walk(tree)):
        for rule in _RULES if id(node) in places else ():
            for what, edit in rule(node):
                fresh = copy.deepcopy(tree)
                twin = next(one for number, one in enumerate(ast.walk(fresh)) if number == index)
                edit(twin)
                yield what, fresh


Edit = Callable[[ast.AST], None]
Edits = Iterator[tuple[str, Edit]]


def _set(**fields: object) -> Edit:
    def edit(node: ast.AST) -> None:
        for name, value in fields.items():
            setattr(node, name, copy.deepcopy(value))

    return edit


def _constants(node: ast.AST) -> Edits:
    """Numbers one off, doubled and negated; booleans turned; texts changed."""
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield f"{value} became {not value}", _set(value=not value)
    elif isinstance(value, (int, float)):
        for other in (value + 1, value - 1, value * 2):
            yield f"{value} became {other}", _set(value=other)
    elif isinstance(value, str) and value:
        yield f"the text {value!r} was changed", _set(value=value + "x")


def _operators(node: ast.AST) -> Edits:
    """Another operator, swapped operands, one operand alone."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = _COMPARISONS[type(node.ops[0])]()
        yield f"{ast.unparse(node)}: another comparison", _set(ops=[other])
    if isinstance(node, ast.BinOp):
        text = ast.unparse(node)
        yield f"{text}: another operator", _set(op=_OPERATORS.get(type(node.op), ast.Add)())
        if isinstance(node.op, (ast.Sub, ast.Div, ast.Pow)):
            yield f"{text}: operands swapped", _set(left=node.right, right=node.left)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield f"{text}: the offset dropped", _set(op=ast.Mult(), right=ast.Constant(1))
        if isinstance(node.op, (ast.Mult, ast.Pow)):
            yield f"{text}: the factor or power dropped", _set(op=ast.Mult(), right=ast.Constant(1))


def _calls(node: ast.AST) -> Edits:
    """Another reduction, axis or dtype; a dropped mask; swapped branches; a value that was static or not jitted."""
    if not isinstance(node, ast.Call):
        return
    text = ast.unparse(node.func)
    last = text.rpartition(".")[2]
    if last == "where" and len(node.args) == 3:
        yield "where: the mask dropped", _set(args=[ast.Constant(True), *node.args[1:]])
        yield "where: the sides swapped", _set(args=[node.args[0], node.args[2], node.args[1]])
    if last in ("cond", "select") and len(node.args) >= 3:
        yield f"{last}: the branches swapped", _set(args=[node.args[0], node.args[2], node.args[1], *node.args[3:]])
    if last in ("jit", "vmap") and node.args:
        yield f"{last} left out", _become(node.args[0])
    for keyword in node.keywords:
        if keyword.arg in ("axis", "in_axes", "argnums") and isinstance(keyword.value, ast.Constant):
            others = [one for one in node.keywords if one is not keyword]
            yield f"{keyword.arg} left out", _set(keywords=others)
        if keyword.arg in ("static_argnames", "static_argnums"):
            yield "static made dynamic", _set(keywords=[one for one in node.keywords if one is not keyword])
    if last == "arange" and node.args and isinstance(node.args[0], ast.Constant):
        yield "arange: one too many at the start", _set(args=[ast.Constant(1), *node.args])


def _become(other: ast.expr) -> Edit:
    def edit(node: ast.AST) -> None:
        # a node cannot be replaced in place, but a call of the identity is as good
        assert isinstance(node, ast.Call)
        node.func = ast.Lambda(
            ast.arguments(posonlyargs=[], args=[ast.arg("_same")], kwonlyargs=[], kw_defaults=[], defaults=[]),
            ast.Name("_same", ast.Load()),
        )
        node.args, node.keywords = [copy.deepcopy(other)], []

    return edit


def _names(node: ast.AST) -> Edits:
    """Another reduction, another dtype, another error class."""
    if isinstance(node, ast.Attribute):
        for table in (_REDUCTIONS, _DTYPES):
            if node.attr in table:
                yield f"{node.attr} became {table[node.attr]}", _set(attr=table[node.attr])
    if isinstance(node, ast.Name) and node.id in _ERRORS:
        yield f"{node.id} became {_ERRORS[node.id]}", _set(id=_ERRORS[node.id])


def _statements(node: ast.AST) -> Edits:
    """A decorator left out, a condition turned, a result replaced, a statement skipped."""
    if isinstance(node, ast.FunctionDef):
        if node.decorator_list:
            yield f"{node.name}: the decorator left out", _set(decorator_list=[])
        if node.name and node.args.args:
            first = ast.Name(node.args.args[0].arg, ast.Load())
            yield f"{node.name}: returns its argument", _set(body=[ast.Return(first)])
    if isinstance(node, (ast.If, ast.IfExp)):
        yield "a condition turned", _set(test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Return) and node.value is not None:
        yield "returns zero", _set(value=ast.Constant(0.0))
        yield "returns nothing", _set(value=None)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield f"{ast.unparse(node.value)[:60]}: not called", _set(value=ast.Constant(None))


_RULES: tuple[Callable[[ast.AST], Edits], ...] = (_constants, _operators, _calls, _names, _statements)
