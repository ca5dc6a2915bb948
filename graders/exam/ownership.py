"""Who owns a name that a test reads: decided from the author's source alone, before any student is seen.

Comes in: the cells of an assignment. Goes out: for each test, the names to fetch from the candidate and the imports to make
in the examiner. Must not: look at a submission; an answer that defines a test's own names changes nothing.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence

from graders.coursework import ReleasedCell, Role
from graders.exam.bindings import bound, parse, read
from graders.records import Record


class Names(Record):
    """What a test needs from outside itself: `candidate` names, `imports`, one statement each, and names of `earlier` tests."""

    candidate: tuple[str, ...]
    imports: tuple[str, ...]
    earlier: tuple[str, ...] = ()


def owners(cells: Sequence[ReleasedCell], own_modules: Iterable[str]) -> dict[str, Names]:
    """Decide ownership for every test of one notebook.

    Args:
        cells: the author's cells in released order.
        own_modules: names of the assignment's Python files, which belong to the candidate.
    """
    modules = set(own_modules)
    binders: dict[str, Role] = {}
    imports: dict[str, str] = {}
    decided: dict[str, Names] = {}
    for cell in cells:
        tree = parse(cell.source) if cell.cell_type == "code" else None
        if tree is None:
            continue
        if cell.role is Role.test and cell.id:
            decided[cell.id] = _names(tree, binders, imports)
        imported = _imports(tree, modules)
        for name in bound(tree):
            binders[name] = cell.role
            if not _adds_to(imports.get(name, ""), imported.get(name, "")):
                imports.pop(name, None)
        for name, statements in imported.items():
            imports[name] = "\n".join(filter(None, (imports.get(name), statements)))
    return decided


def _names(tree: ast.Module, binders: dict[str, Role], imports: dict[str, str]) -> Names:
    wanted = [name for name in read(tree) if name in binders or not hasattr(builtins, name)]
    here = [name for name in wanted if name not in imports]
    return Names(
        tuple(name for name in here if binders.get(name) is not Role.test),
        tuple(imports[name] for name in wanted if name in imports),
        tuple(name for name in here if binders.get(name) is Role.test),
    )


def _imports(tree: ast.Module, own_modules: set[str]) -> dict[str, str]:
    """Import statements at module level by the name that they bind last, but those of the assignment's own files."""
    found: dict[str, str] = {}
    for node in tree.body:
        for name in bound(ast.Module([node], [])):
            statement = _import_of(node, name, own_modules)
            together = _adds_to(found.get(name, ""), statement)
            found[name] = f"{found[name]}\n{statement}" if together else statement
    return {name: statements for name, statements in found.items() if statements}


def _import_of(node: ast.stmt, name: str, own_modules: set[str]) -> str:
    """The statement by which `node` imports `name`, or nothing."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.ImportFrom) and node.level):
        return ""
    module = node.module if isinstance(node, ast.ImportFrom) else None
    found = [
        ast.unparse(ast.ImportFrom(module, [alias], 0) if module else ast.Import([alias]))
        for alias in node.names
        if (alias.asname or alias.name.partition(".")[0]) == name
        and (module or alias.name).partition(".")[0] not in own_modules
    ]
    return "\n".join(found)


def _adds_to(before: str, statement: str) -> bool:
    """Whether `import a.c` follows `import a.b`: it then leaves all that `a` held."""
    return all(text.startswith("import ") and " as " not in text for text in (before, statement))
