"""The bytes of a notebook, whoever made them, to plain cells.

Comes in: bytes and the name they had. Goes out: `RawCell`s with flags for what had to be guessed, or `SubmissionError` with
a sentence that says what arrived instead. Must not: execute anything, or keep outputs.

Version 4 is read here as the JSON that it is. nbformat is imported for older versions only: it takes 2 s, and every
worker would pay that.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from graders.errors import SubmissionError
from graders.records import Flag, Record

_CELL_TYPES = ("code", "markdown", "raw")


class RawCell(Record):
    """One cell: its text, and the two parts of its metadata that mean something here."""

    cell_type: str
    source: str
    nbgrader: dict[str, Any] = msgspec.field(default_factory=dict)
    graders: dict[str, Any] = msgspec.field(default_factory=dict)


def parse(data: bytes, name: str) -> tuple[tuple[RawCell, ...], list[Flag]]:
    """Read one notebook.

    Raises:
        SubmissionError: the bytes are no notebook; the text says what they are instead.
    """
    text, flags = _decode(data, name)
    if not text.strip():
        raise SubmissionError(f"{name} is empty. Save the notebook in Jupyter and hand it in again.")
    if "\n<<<<<<< " in "\n" + text:
        raise SubmissionError(f"{name} holds git conflict markers. Resolve the conflict, then hand it in again.")
    if text.lstrip()[:1] == "<":
        raise SubmissionError(
            f"{name} is a web page, not a notebook: probably a login page was saved. Download it again."
        )
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{name} is not complete JSON ({error}); it was probably cut off while saving.") from None
    version = raw.get("nbformat") if isinstance(raw, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise SubmissionError(f"{name} is JSON but not a notebook: it has no nbformat version.")
    if version > 4:
        raise SubmissionError(f"{name} was made by a newer Jupyter (nbformat {version}); save it as version 4.")
    cells = (raw if version == 4 else _upgrade(raw, name)).get("cells")
    if not isinstance(cells, list):
        raise SubmissionError(f"{name} is not a valid notebook: it has no list of cells.")
    return tuple(_cell(cell) for cell in cells if isinstance(cell, dict)), flags


def _decode(data: bytes, name: str) -> tuple[str, list[Flag]]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), []
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        text = f"{name} is not UTF-8; it was read as Windows-1252, and special characters may be wrong."
        return data.decode("cp1252", "replace"), [Flag("encoding_guessed", text)]


def _upgrade(raw: dict[str, Any], name: str) -> dict[str, Any]:
    import nbformat

    try:
        return dict(nbformat.convert(nbformat.from_dict(raw), 4))
    except Exception as error:  # nbformat raises many things for malformed cells
        raise SubmissionError(f"{name} is not a valid notebook: {type(error).__name__}: {error}.") from None


def _cell(cell: dict[str, Any]) -> RawCell:
    source = cell.get("source", "")
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    # CRLF is the editor's; half an emoji (a lone surrogate) is no text and could not be stored
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode()
    kind = cell.get("cell_type")
    metadata = cell.get("metadata")
    parts = metadata if isinstance(metadata, dict) else {}
    ours = [part if isinstance(part := parts.get(name), dict) else {} for name in ("nbgrader", "graders")]
    return RawCell(kind if kind in _CELL_TYPES else "raw", text, *ours)
