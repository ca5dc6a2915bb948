"""Names that a cell binds and reads, found from its text.

Comes in: the source of a cell, IPython's own syntax included. Goes out: a syntax tree, and names. Must not: run anything, or decide
whose a name is.
"""

from __future__ import annotations

import ast
import copy
import functools
import symtable
import warnings
from collections.abc import Sequence
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager


def plain_python(source: str) -> str:
    """A cell without IPython's own syntax."""
    with warnings.catch_warnings():  # IPython's, of signs that Python does not take for an end of line
        warnings.simplefilter("ignore")
        return TransformerManager().transform_cell(source)


def parse(source: str) -> ast.Module | None:
    """The syntax tree of a cell, or None when it is not Python."""
    try:
        return ast.parse(plain_python(source))
    except (SyntaxError, ValueError):
        return None


def defined(source: str) -> set[str]:
    """Names of every function and class that a cell defines, at any depth."""
    tree = parse(source)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)} if tree else set()


def bound(tree: ast.Module) -> set[str]:
    """Names that running the cell binds at module level."""
    return {name for _, binds in _uses(tree) for name in binds}


def read(tree: ast.Module) -> list[str]:
    """Names that the cell needs from outside: those it reads before it binds them.

    A function's body runs later, so it needs only what the cell binds nowhere.
    """
    needed: set[str] = set()
    so_far: set[str] = set()
    everything = bound(tree)
    for statement, binds in _uses(tree):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            needed |= _global_reads(statement) - everything
            statement = _head(statement)
        needed |= _global_reads(statement) - so_far
        so_far |= binds
    return sorted(needed)


def _head(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
    """What a definition evaluates when it runs: decorators, defaults and annotations."""
    head = copy.copy(function)
    head.body = [ast.Pass()]
    return head


@functools.lru_cache(maxsize=8)  # of one cell several things are asked in a row
def _uses(tree: ast.Module) -> list[tuple[ast.stmt, set[str]]]:
    """The cell as simple statements in order, each with the names it binds; blocks are opened."""
    found: list[tuple[ast.stmt, set[str]]] = []

    def visit(statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            blocks = _blocks(statement)
            head = _without_blocks(statement, blocks)
            found.append((head, _binds(head)))
            for block in blocks:
                visit(block)

    visit(tree.body)
    return found


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    inner = [one.body for one in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))]
    return [block for block in [blocks[0], *inner, *blocks[1:]] if block]


def _without_blocks(statement: ast.stmt, blocks: list[list[ast.stmt]]) -> ast.stmt:
    if not blocks:
        return statement
    head = copy.copy(statement)
    for name in ("body", "orelse", "finalbody"):
        if getattr(head, name, None):
            setattr(head, name, [ast.Pass()])
    for name in ("handlers", "cases"):
        if getattr(head, name, None):
            setattr(head, name, [_emptied(one) for one in getattr(head, name)])
    return head


def _emptied(part: Any) -> Any:
    part = copy.copy(part)
    part.body = [ast.Pass()]
    return part


@functools.lru_cache(maxsize=1000)
def _tables(statement: ast.stmt) -> list[symtable.SymbolTable]:
    found, waiting = [], [symtable.symtable(ast.unparse(ast.Module([statement], [])), "cell", "exec")]
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].get_children()
    return found


@functools.lru_cache(maxsize=1000)
def _only_in_comprehensions(statement: ast.stmt) -> set[str]:
    """Loop names of comprehensions, which Python 3.12 and newer list as names of the enclosing scope (PEP 709)."""
    loops: set[str] = set()
    outside: set[str] = set()
    firsts: set[ast.expr] = set()

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, ast.comprehension):
            loops.update(one.id for one in ast.walk(node.target) if isinstance(one, ast.Name))
        elif isinstance(node, ast.Name) and not inside:
            outside.add(node.id)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            first = node.generators[0].iter  # what is looped over is found outside, whatever the loop calls its items
            firsts.add(first)
            visit(first, inside)
            inside = True
        for child in ast.iter_child_nodes(node):
            if child not in firsts:
                visit(child, inside)

    visit(statement, False)
    return loops - outside


@functools.lru_cache(maxsize=1000)
def _binds(statement: ast.stmt) -> set[str]:
    top, *inner = _tables(statement)
    own = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported() or one.is_namespace()}
    declared = {
        one.get_name()
        for table in inner
        for one in table.get_symbols()
        if one.is_declared_global() and one.is_assigned()
    }
    return ((own | declared) - _only_in_comprehensions(statement)) | _walrus(statement)


def _walrus(node: ast.AST) -> set[str]:
    """Names bound by `:=` in this scope, inside comprehensions too: Python 3.13 lists those nowhere."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return set()
    own = {node.target.id} if isinstance(node, ast.NamedExpr) else set()
    return own.union(*map(_walrus, ast.iter_child_nodes(node)))


def _global_reads(statement: ast.stmt) -> set[str]:
    targets = [one.target for one in ast.walk(statement) if isinstance(one, ast.AugAssign)]
    targets += [target for one in ast.walk(statement) if isinstance(one, ast.Delete) for target in one.targets]
    named = {one.id for one in targets if isinstance(one, ast.Name)}
    updated = named & _binds(statement) if named else named
    loads = {
        one.get_name()
        for table in _tables(statement)
        for one in table.get_symbols()
        if one.is_referenced() and (table.get_type() == "module" or one.is_global())
    }
    return (updated | loads) - _only_in_comprehensions(statement)
