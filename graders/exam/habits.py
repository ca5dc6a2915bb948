"""What works in a student's own notebook, and surprises where it is graded or further down in it.

Comes in: texts of cells. Goes out: flags that say it in plain words. Must not: change anything, or cost a point.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable

from graders.course.alignment import binds
from graders.records import Flag

_INSTALLS = re.compile(
    r"^\s*[!%]+\s*(?:python[\d.]*\s+-m\s+)?(?:pip[\d.]*|conda|mamba|uv|apt|apt-get)\b.*\b(?:install|add)\b",
    re.MULTILINE,
)
_MOVES = re.compile(r"^\s*%cd\b|^\s*(?:os\.)?chdir\(", re.MULTILINE)
_FUNCTIONS = {name for name in dir(builtins) if name[0].islower() and callable(getattr(builtins, name))}


def notes(theirs: Iterable[str], authors: Iterable[str]) -> list[Flag]:
    """Flags about the student's code cells; what the author's cells do as well is no habit of the student's."""
    own, given = "\n".join(theirs), "\n".join(authors)
    found = []
    if _INSTALLS.search(own) and not _INSTALLS.search(given):
        text = "Your notebook installs packages. Nothing is installed where it is graded: the course's versions are used there."
        found.append(Flag("packages_installed", text))
    if _MOVES.search(own) and not _MOVES.search(given):
        text = (
            "Your notebook changes its folder (%cd or os.chdir). Files lie beside the notebook where it is graded, and whatever "
            "is read by name after that may not be found."
        )
        found.append(Flag("folder_changed", text))
    for name in sorted((binds(own) - binds(given)) & _FUNCTIONS):
        text = (
            f"Your notebook gives the name {name}, a function of Python, another meaning. From there on {name}(…) does not do "
            f"what it did; choose another name."
        )
        found.append(Flag("builtin_hidden", text))
    return found
