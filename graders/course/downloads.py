"""What students may take away from a released notebook: its worked examples as Python, its text as Markdown.

Comes in: the cells of a released notebook. Goes out: files by relative name. Must not: see the author's text, so that
nothing of a solution or a hidden test can get in; or make a file that hides a library from whoever runs it.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterable, Sequence

from graders.course.parsing import RawCell
from graders.course.repairs import role_of
from graders.coursework import ANSWERS, Role

FOLDER = "downloads"
_EXAMPLES = (Role.plain, Role.locked)
# A line of IPython's own, alone or on the right of an assignment; and an import that may stand at the top of a file only
_NO_PYTHON = re.compile(r"\s*(([\w.]+\s*=\s*)?[%!?]|.*\?\s*$|from\s+__future__\b)")


def downloads(name: str, cells: Sequence[RawCell]) -> dict[str, bytes]:
    """The files of one notebook, below `downloads/`."""
    stem = f"{name}-examples" if name in sys.stdlib_module_names | _imported(cells) else name
    made = {f"{stem}.py": examples(name, cells), f"{name}.md": text(cells)}
    return {f"{FOLDER}/{path}": content.encode("utf-8", "replace") for path, content in made.items()}


def examples(name: str, cells: Iterable[RawCell]) -> str:
    """The code that is neither answer nor test, in percent format, with the text around it as comments."""
    parts = [f"# The worked examples of {name}. Answers and tests are in the notebook alone.\n#"]
    for cell in cells:
        role = role_of(cell)
        if cell.cell_type == "markdown" and role in (*_EXAMPLES, Role.task):
            parts.append(f"# %% [markdown]\n{_comment(cell.source)}")
        elif cell.cell_type == "code" and role in _EXAMPLES and cell.source.strip():
            parts.append(f"# %%\n{as_python(cell.source)}")
        elif role in ANSWERS:
            parts.append(
                f"# %% [markdown]\n# (In the notebook: your answer {_one_line(cell.nbgrader.get('grade_id'))})"
            )
    return "\n\n".join(parts) + "\n"


def text(cells: Iterable[RawCell]) -> str:
    """Every text and code cell as released, code in fences that no line of it can close."""
    parts = []
    for cell in cells:
        source = cell.source.strip("\n")
        if cell.cell_type == "markdown":
            parts.append(source)
        elif cell.cell_type == "code" and source.strip():
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", source)), default=0))
            parts.append(f"{fence}python\n{source}\n{fence}")
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def as_python(source: str) -> str:
    """A cell as plain Python: what only IPython reads becomes a comment, the whole cell if nothing less helps."""
    lines = source.replace("\r", "\n").strip("\n").split("\n")
    for _ in range(len(lines)):
        number = _faulty(lines)
        if number is None:
            return "\n".join(lines)
        line = lines[number - 1] if number <= len(lines) else ""
        if source.lstrip().startswith("%%") or not _NO_PYTHON.match(line):
            break
        indent = line[: len(line) - len(line.lstrip())]
        lines[number - 1] = f"{indent}pass  # {line.lstrip()}"
    return "\n".join(lines) if _faulty(lines) is None else _comment(source)


def _faulty(lines: Sequence[str]) -> int | None:
    """The line at which a cell stops being Python that can stand anywhere in a file; None when it never does."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile("pass\n" + "\n".join(lines) + "\n", "cell", "exec", dont_inherit=True)
    except SyntaxError as error:
        return max(1, (error.lineno or 1) - 1)
    except (ValueError, RecursionError, MemoryError):  # a null character; brackets without end
        return 1
    return None


def _comment(source: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in source.replace("\0", "").strip("\n").splitlines())


def _one_line(identity: object) -> str:
    return " ".join(str(identity or "").split())


def _imported(cells: Iterable[RawCell]) -> set[str]:
    """Top-level names of the modules that the code cells import."""
    found: set[str] = set()
    for cell in cells:
        if cell.cell_type == "code":
            for node in ast.walk(_tree(as_python(cell.source))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.partition(".")[0])
    return found


def _tree(source: str) -> ast.Module:
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(source)
