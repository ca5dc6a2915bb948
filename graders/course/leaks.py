"""What a release must not show: every line of a solution or of a hidden test, wherever in the released files it stands.

Comes in: an `Assignment`, and the files of its source and of its release. Goes out: findings. Must not: open anything itself.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping

from graders.course import downloads, markers
from graders.coursework import ANSWERS, Assignment, ReleasedCell, Role
from graders.findings import Finding, Level

_SHORTEST = 13  # characters: a shorter line, such as `return total`, says nothing
_LONG = 20  # from here on a line is also looked for inside longer ones
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def leaks(assignment: Assignment, source: Mapping[str, bytes], release: Mapping[str, bytes]) -> list[Finding]:
    """Every secret line that the release shows.

    Args:
        assignment: the author's cells and the released ones.
        source: the files of source/, by relative name.
        release: the files of release/, likewise, notebooks too.
    """
    secrets = _secrets(assignment, source)
    found: dict[tuple[str, str], Finding] = {}
    for path, data in sorted(release.items()):
        for place, shown in _texts(path, data):
            for line in _shown(shown, secrets, loose=place != "source"):
                where = f"{path}, {place}" if path.endswith(".ipynb") and place != "source" else path
                told = _told(secrets[line], line, where)
                found.setdefault((secrets[line][1], line), told)
    return list(found.values())


Origin = tuple[str, str, str]


def _secrets(assignment: Assignment, source: Mapping[str, bytes]) -> dict[str, Origin]:
    """Secret lines with notebook, cell and what they belong to."""
    found: dict[str, Origin] = {}
    for name, cells in assignment.notebooks.items():
        for cell in cells:
            what = "hidden test" if cell.role is Role.test else "solution"
            for line in secret_lines(cell):
                found.setdefault(line, (name, cell.id or f"number {cell.position}", what))
    for path, data in source.items():
        if path.endswith(".py"):
            inside, outside = markers.regions(data.decode(errors="replace"))
            for line in _telling(inside) - _telling(outside):
                found.setdefault(line, (path, "", "solution"))
    return found


def secret_lines(cell: ReleasedCell) -> set[str]:
    """Lines of a cell that students must not see: those in its regions, and the whole of an answer without a region."""
    if cell.role not in (*ANSWERS, Role.test, Role.task):
        return set()
    inside, outside = markers.regions(cell.source)
    if not inside and cell.role in ANSWERS:
        inside, outside = outside, cell.released.splitlines()  # nbgrader replaces all of it
        if cell.source == cell.released:
            return set()
    return _telling(inside) - _telling(outside)


def _telling(lines: Iterable[str]) -> set[str]:
    """Lines that give something away: not short, no import, and no head of a definition, which the task may well state."""
    stripped = (line.strip() for line in lines)
    return {one for one in stripped if len(one) >= _SHORTEST and not re.match(r"(import|from|def|class) \w|@", one)}


def _shown(text: str, secrets: Mapping[str, Origin], loose: bool) -> list[str]:
    """The secret lines in a text. `loose`: also as a part of a longer line, as in a traceback or an output."""
    lines = {line.strip() for line in text.splitlines()}
    return sorted(one for one in secrets if one in lines or (loose and len(one) >= _LONG and one in text))


def _texts(path: str, data: bytes) -> Iterator[tuple[str, str]]:
    """Every text in a released file, each with where it stands."""
    try:
        raw = json.loads(data) if path.endswith(".ipynb") else None
    except ValueError:
        raw = None
    if not isinstance(raw, dict):
        made = path.startswith(f"{downloads.FOLDER}/")  # of released cells, line for line
        yield "source" if made or path.endswith(".py") else "text", data.decode(errors="replace")
        return
    for cell in raw.get("cells", []):
        yield "source", _joined(cell.get("source", ""))
        for place in ("outputs", "attachments", "metadata"):
            for text in _strings(cell.get(place)):
                yield place, text
    for text in _strings(raw.get("metadata")):
        yield "metadata", text


def _joined(text: object) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def _strings(value: object) -> Iterator[str]:
    """Texts below a JSON value; a list of texts is one, and what is base64 is also read as what it encodes."""
    if isinstance(value, str):
        yield _ANSI.sub("", value)
        with contextlib.suppress(binascii.Error, ValueError):
            yield base64.b64decode(value, validate=True).decode(errors="replace") if len(value) > _LONG else ""
    elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        yield _ANSI.sub("", "".join(value))
    elif isinstance(value, (list, dict)):
        for one in value if isinstance(value, list) else value.values():
            yield from _strings(one)


def _told(origin: Origin, line: str, where: str) -> Finding:
    notebook, cell, what = origin
    text = (
        f"the released notebook holds the line {line!r} of this {what} (in {where}). "
        "Wanted: no line of it in anything that students receive. Word the other place differently, or clear that output."
    )
    return Finding("leaks: shown", Level.error, notebook, cell, None, text)
