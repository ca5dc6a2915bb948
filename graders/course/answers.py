"""Known answers: what students typically write, and the points that each should get.

Comes in: TOML files of `c.Graders.answers`. Goes out: `KnownAnswer`s, `Hostile`s and `Equivalent`s. Must not: run any of them.
"""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from graders.errors import CourseError
from graders.records import Record


class KnownAnswer(Record):
    """One answer to one exercise. `points` says what each check should give, by title; `hint` is text that must be shown."""

    exercise: str
    cell: str
    name: str
    quality: str
    source: str
    points: dict[str, Decimal]
    hint: str | None = None


class Hostile(Record):
    """A whole submission that attacks: answers by cell (the reference everywhere else) and the points it should get."""

    name: str
    what: str
    total: Decimal
    cells: dict[str, str]


class Equivalent(Record):
    """Why a mutant that the tests let pass is a right answer: its `diff` as the gate shows it, and the reason."""

    exercise: str
    diff: str
    reason: str


def known_answers(folder: Path) -> tuple[KnownAnswer, ...]:
    """Every known answer of one assignment, in the order of the files."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        table = _read(path)
        shared = {"exercise": table.get("exercise"), "cell": table.get("cell")}
        found += [_convert(path, shared | answer, KnownAnswer) for answer in table.get("answer", [])]
    return tuple(found)


def hostile(folder: Path) -> tuple[Hostile, ...]:
    """The hostile submissions of one assignment."""
    path = folder / "hostile.toml"
    entries = _read(path).get("submission", []) if path.is_file() else []
    return tuple(_convert(path, entry, Hostile) for entry in entries)


def equivalent(folder: Path) -> tuple[Equivalent, ...]:
    """The mutants of one assignment that are explained."""
    path = folder / "equivalent.toml"
    entries = _read(path).get("mutant", []) if path.is_file() else []
    return tuple(_convert(path, entry, Equivalent) for entry in entries)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} is not TOML: {error}.") from None


_Kind = TypeVar("_Kind", KnownAnswer, Hostile, Equivalent)


def _convert(path: Path, entry: dict[str, object], kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.convert(entry, kind, strict=False)
    except msgspec.ValidationError as error:
        raise CourseError(
            f"{path}: the entry {entry.get('name') or entry.get('diff')!r} is not as it should be: {error}."
        ) from None
