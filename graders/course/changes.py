"""The mistakes that a mutant can hold: rules from one node of a syntax tree to edits of that node.

Comes in: a node of an answer. Goes out: what each edit does, in words, and the edit. Must not: look beyond the node, or change it
before it is asked to.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

Edit = Callable[[ast.AST], ast.expr | None]  # changes the node, or returns what stands in its place
Edits = Iterator[tuple[str, Edit]]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.MatMult: ast.Mult,
}  # fmt: skip
_REDUCTIONS = {
    "sum": "mean", "mean": "sum", "max": "min", "min": "max", "prod": "sum", "square": "abs", "abs": "square",
    "argmax": "argmin", "argmin": "argmax", "all": "any", "any": "all", "std": "var", "var": "std", "cumsum": "cumprod",
    "sin": "cos", "cos": "sin", "exp": "expm1", "maximum": "minimum", "minimum": "maximum", "floor": "ceil", "ceil": "floor",
}  # fmt: skip
_DTYPES = {
    "float32": "int32", "float64": "float32", "int32": "float32", "int64": "float32", "bool_": "float32",
    "bfloat16": "float32", "float16": "float32", "complex64": "float32",
}  # fmt: skip
_ERRORS = {
    "ValueError": "KeyError", "TypeError": "ValueError", "KeyError": "ValueError", "NotImplementedError": "TypeError",
    "IndexError": "ValueError", "AssertionError": "ValueError", "RuntimeError": "ValueError", "AttributeError": "TypeError",
}  # fmt: skip
_LENGTHS = {"arange", "range", "zeros", "ones", "full", "empty", "eye"}


def edits(node: ast.AST) -> Edits:
    """Every mistake that can be made at this node."""
    for rule in (_constants, _operators, _choices, _transforms, _arguments, _lengths, _names, _statements):
        yield from rule(node)


def setting(**fields: object) -> Edit:
    """An edit that gives a node other fields."""

    def edit(node: ast.AST) -> ast.expr | None:
        for name, value in fields.items():
            setattr(node, name, copy.deepcopy(value))
        return None

    return edit


def becoming(other: ast.expr) -> Edit:
    """An edit by which an expression becomes another one."""
    return lambda node: copy.deepcopy(other)


def _expression(text: str, **parts: ast.expr) -> ast.expr:
    """An expression with other expressions put in place of names."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return copy.deepcopy(parts.get(node.id, node))

    return ast.parse(ast.unparse(Fill().visit(ast.parse(text, mode="eval")).body), mode="eval").body


def _constants(node: ast.AST) -> Edits:
    """Numbers one off, doubled and negated; booleans turned; texts changed."""
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield f"{value} became {not value}", setting(value=not value)
    elif isinstance(value, (int, float)):
        for other in (value + 1, value - 1, value * 2):
            yield f"{value} became {other}", setting(value=other)
    elif isinstance(value, str) and value:
        yield f"the text {value!r} was changed", setting(value=value + "x")


def _operators(node: ast.AST) -> Edits:
    """Another operator, `<` for `<=`, swapped operands, one operand alone."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            others: list[ast.cmpop] = [*node.ops]
            others[place] = _COMPARISONS[type(operator)]()
            yield f"{ast.unparse(node)}: another comparison", setting(ops=others)
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"{ast.unparse(node)}: and for or", setting(op=other)
    if isinstance(node, ast.BinOp):
        text, one = ast.unparse(node), ast.Constant(1)
        yield f"{text}: another operator", setting(op=_OPERATORS.get(type(node.op), ast.Add)())
        if isinstance(node.op, (ast.Sub, ast.Div, ast.Pow, ast.MatMult, ast.FloorDiv, ast.Mod)):
            yield f"{text}: operands swapped", setting(left=node.right, right=node.left)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield f"{text}: the offset dropped", setting(op=ast.Mult(), right=one)
        if isinstance(node.op, (ast.Mult, ast.Pow, ast.Div)):
            yield f"{text}: the mask, factor or power dropped", setting(op=ast.Mult(), right=one)
        if isinstance(node.op, (ast.Add, ast.Mult)):
            yield f"{text}: the left part dropped", setting(op=ast.Mult(), left=one)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert, ast.Not)):
        inner = ast.Name("bool", ast.Load()) if isinstance(node.op, ast.Not) else None
        operand: ast.expr = ast.Call(inner, [node.operand], []) if inner else node.operand
        yield f"{ast.unparse(node)}: the sign dropped", setting(op=ast.Not() if inner else ast.UAdd(), operand=operand)


def _choices(node: ast.AST) -> Edits:
    """A dropped mask, swapped branches, and a Python choice where a traced one stood."""
    if not isinstance(node, ast.Call):
        return
    last, args = _called(node), node.args
    if last == "where" and len(args) == 3:
        yield "where: the mask dropped", setting(args=[ast.Constant(True), *args[1:]])
        yield "where: the sides swapped", setting(args=[args[0], args[2], args[1]])
        yield "where: a Python choice", becoming(_expression("a if c else b", a=args[1], b=args[2], c=args[0]))
    if last in ("cond", "select") and len(args) >= 3:
        yield f"{last}: the branches swapped", setting(args=[args[0], args[2], args[1], *args[3:]])
        if last == "cond":
            chosen = _expression("a if c else b", a=args[1], b=args[2], c=args[0])
            yield "cond: a Python if", becoming(ast.Call(chosen, list(args[3:]), []))
    if last in ("fori_loop", "while_loop", "scan") and len(args) >= 3:
        place = 3 if last == "fori_loop" else 2 if last == "while_loop" else 1
        yield f"{last}: not one step", becoming(args[min(place, len(args) - 1)])


def _transforms(node: ast.AST) -> Edits:
    """Missing jit, vmap or grad; static for dynamic and the other way round; a Python loop for a mapped or summed one."""
    if not isinstance(node, ast.Call):
        return
    last, args = _called(node), node.args
    if last in ("jit", "vmap", "grad", "jacfwd", "jacrev", "stop_gradient", "block_until_ready") and args:
        yield f"{last} left out", becoming(args[0])
    if last == "jit" and args and not any((one.arg or "").startswith("static") for one in node.keywords):
        static = ast.keyword("static_argnums", ast.Constant(1))
        yield "dynamic made static", setting(keywords=[*node.keywords, static])
    for keyword in node.keywords:
        if keyword.arg in ("static_argnames", "static_argnums"):
            yield "static made dynamic", setting(keywords=[one for one in node.keywords if one is not keyword])
    if last == "sum" and not node.keywords and len(args) <= 1:
        summed = args[0] if args else node.func.value if isinstance(node.func, ast.Attribute) else None
        if summed is not None:
            yield "sum: a Python loop over numbers", becoming(_expression("sum(float(_v) for _v in x)", x=summed))


def _arguments(node: ast.AST) -> Edits:
    """Another axis; a keyword that was left out: dtype, axis, where, initial."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg in ("axis", "in_axes", "out_axes", "argnums", "dtype", "where", "initial", "keepdims"):
                yield f"{keyword.arg} left out", setting(keywords=[one for one in node.keywords if one is not keyword])
            if keyword.arg in ("in_axes", "out_axes") and isinstance(value, ast.Tuple) and len(value.elts) == 2:
                yield f"{keyword.arg} swapped", _keyword(keyword.arg, ast.Tuple(value.elts[::-1], ast.Load()))
        if _called(node) == "astype" and isinstance(node.func, ast.Attribute):
            yield "astype left out", becoming(node.func.value)
        if _called(node) in ("transpose", "flip", "sort") and node.args:
            yield f"{_called(node)} left out", becoming(node.args[0])
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        swapped = ast.Tuple(node.slice.elts[::-1], ast.Load())
        yield f"{ast.unparse(node)}: the axes swapped", setting(slice=swapped)


def _keyword(name: str, value: ast.expr) -> Edit:
    def edit(node: ast.AST) -> ast.expr | None:
        assert isinstance(node, ast.Call)
        next(one for one in node.keywords if one.arg == name).value = copy.deepcopy(value)
        return None

    return edit


def _lengths(node: ast.AST) -> Edits:
    """One too many and one too few, where a length is not a literal (those are changed as constants)."""
    if not isinstance(node, ast.Call):
        return
    if _called(node) in _LENGTHS and node.args and isinstance(node.args[-1], (ast.Name, ast.Attribute, ast.Subscript)):
        for sign, words in (("+", "many"), ("-", "few")):
            other = _expression(f"n {sign} 1", n=node.args[-1])
            yield f"{_called(node)}: one too {words}", setting(args=[*node.args[:-1], other])
    if _called(node) in ("arange", "range") and len(node.args) == 1:
        yield f"{_called(node)}: starts at one", setting(args=[ast.Constant(1), *node.args])
    if ast.unparse(node.func) == "len" and len(node.args) == 1:
        shorter = _expression("len(x) - 1", x=node.args[0])
        yield "len: one too few", becoming(shorter)


def _names(node: ast.AST) -> Edits:
    """Another reduction, another dtype, another error class."""
    if isinstance(node, ast.Attribute):
        for table in (_REDUCTIONS, _DTYPES):
            if node.attr in table:
                yield f"{node.attr} became {table[node.attr]}", setting(attr=table[node.attr])
    if isinstance(node, ast.Name) and node.id in _ERRORS:
        yield f"{node.id} became {_ERRORS[node.id]}", setting(id=_ERRORS[node.id])


def _statements(node: ast.AST) -> Edits:
    """A decorator left out or made static, a condition turned, a result replaced, a statement skipped."""
    if isinstance(node, ast.FunctionDef):
        if node.decorator_list:
            yield f"{node.name}: the decorator left out", setting(decorator_list=[])
        if [ast.unparse(one) for one in node.decorator_list] == ["jax.jit"] and len(node.args.args) > 1:
            static = _expression(f"lambda f: jax.jit(f, static_argnums={len(node.args.args) - 1})")
            yield f"{node.name}: the last argument made static", setting(decorator_list=[static])
        if node.args.args:
            first = ast.Name(node.args.args[0].arg, ast.Load())
            yield f"{node.name}: returns its argument", setting(body=[ast.Return(first)])
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield "a condition turned", setting(test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.If) and not node.orelse:
        yield "a guard left out", setting(test=ast.Constant(False))
    if isinstance(node, ast.Return) and node.value is not None:
        yield "returns zero", setting(value=ast.Constant(0.0))
        yield "returns nothing", setting(value=None)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield f"{ast.unparse(node.value)[:60]}: not called", setting(value=ast.Constant(None))
    if isinstance(node, ast.AugAssign):
        yield f"{ast.unparse(node)[:60]}: another operator", setting(op=_OPERATORS.get(type(node.op), ast.Add)())


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]
