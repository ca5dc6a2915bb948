"""The files of the candidate's private folder: the student's own, and the instructor's data as released.

Comes in: an assignment and a submission. Goes out: files by name, and flags. Must not: let a file of the student's stand
where the instructor's belongs, or be imported instead of a library.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Collection
from importlib.machinery import PathFinder

from graders.coursework import Assignment, Submission
from graders.records import Flag

_MODULES = (".py", ".pyc", ".pyd", ".so")


def belongings(assignment: Assignment, submission: Submission) -> tuple[dict[str, bytes], list[Flag]]:
    """What the folder gets. Python files of the assignment are the student's to change, its data are not."""
    files: dict[str, bytes] = {}
    flags = []
    packages = {path.partition("/")[0] for path in submission.files if "/" in path and path.endswith(_MODULES)}
    for path, data in submission.files.items():
        if path not in assignment.files and _hides_library(path, packages):
            flags.append(Flag("library_hidden", f"Your file {path} hides the library of that name; it was left out."))
        elif _in_the_way(path, assignment):
            text = f"Your file {path} stood where the instructor's data is; it was left out."
            flags.append(Flag("data_restored", text))
        elif path in assignment.files and not path.endswith(".py") and data != assignment.files[path]:
            flags.append(Flag("data_restored", f"The data file {path} was changed; the instructor's copy was used."))
        else:
            files[path] = data
    for path in assignment.answer_files:
        if path not in submission.files:
            text = f"{path} is not among the files that were handed in, so what it should hold counts as unanswered."
            flags.append(Flag("answer_missing", text, path))
    return assignment.files | files, flags


def _hides_library(path: str, packages: Collection[str]) -> bool:
    """Whether Python would import this file, which lies beside the notebook, in the place of a library.

    A folder hides a package only if there is Python in it: a folder of data named `test` hides nothing.
    """
    top, _, rest = path.partition("/")
    if rest:
        return top in packages and _is_library(top)
    return path.endswith(_MODULES) and _is_library(top.partition(".")[0])


@functools.cache
def _is_library(name: str) -> bool:
    if name in sys.stdlib_module_names or name in {"graders", "jax", "numpy"}:
        return True
    where = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    found = PathFinder.find_spec(name, where) if name.isidentifier() else None
    return found is not None and found.loader is not None


def _in_the_way(path: str, assignment: Assignment) -> bool:
    """Whether a file stands where the instructor has a folder, or in a folder where the instructor has a file."""
    return any(one.startswith(f"{path}/") or path.startswith(f"{one}/") for one in assignment.files)
