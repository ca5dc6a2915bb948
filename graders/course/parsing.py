"""The bytes of a notebook, whoever made them, to plain cells.

Comes in: bytes and the name they had. Goes out: `RawCell`s with flags for what had to be guessed, or `SubmissionError` with
a sentence that says what arrived instead. Must not: execute anything, or keep more of an output than text and pictures.

Version 4 is read here as the JSON that it is. nbformat is imported for older versions only: it takes 2 s, and every
worker would pay that.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from graders.course.decoding import decode, plain_text
from graders.course.shown import shown
from graders.errors import SubmissionError
from graders.records import Flag, Record, Shown

_CELL_TYPES = ("code", "markdown", "raw")
# How files begin that people hand in by mistake
_NO_TEXT = {
    b"PK\x03\x04": "a zip archive or an office document",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x1f\x8b": "a compressed archive",
    b"Rar!": "an archive",
    b"7z\xbc\xaf": "an archive",
    b"\xd0\xcf\x11\xe0": "an office document",
}


class RawCell(Record):
    """One cell: its text, the two parts of its metadata that mean something here, the id that Jupyter gave it, and what it showed."""

    cell_type: str
    source: str
    nbgrader: dict[str, Any] = msgspec.field(default_factory=dict)
    graders: dict[str, Any] = msgspec.field(default_factory=dict)
    cell_id: str | None = None
    shown: Shown | None = None


def parse(data: bytes, name: str) -> tuple[tuple[RawCell, ...], list[Flag]]:
    """Read one notebook.

    Raises:
        SubmissionError: the bytes are no notebook; the text says what they are instead.
    """
    for first, what in _NO_TEXT.items():
        if data.startswith(first):
            raise SubmissionError(
                f"{name} is {what}, not a notebook. Save the notebook in Jupyter as .ipynb and hand that in."
            )
    text, flags = decode(data, name)
    if not text.strip("\0 \t\n\ufeff"):
        raise SubmissionError(_nothing_in(name, data))
    raw = _json(text, name)
    version = raw.get("nbformat") if isinstance(raw, dict) else None
    if isinstance(version, bool) or not isinstance(version, (int, float)):
        raise SubmissionError(f"{name} is JSON but not a notebook: it has no nbformat version.")
    if version >= 5:
        raise SubmissionError(f"{name} was made by a newer Jupyter (nbformat {version}); save it as version 4.")
    cells = (raw if version >= 4 else _upgrade(raw, name)).get("cells")
    if not isinstance(cells, list):
        raise SubmissionError(f"{name} is not a valid notebook: it has no list of cells.")
    return tuple(_cell(cell) for cell in cells if isinstance(cell, dict)), flags


def _json(text: str, name: str) -> Any:
    """The JSON in a text, or why there is none."""
    if re.search(r"^(<<<<<<< |>>>>>>> |=======$)", text, re.MULTILINE):
        raise SubmissionError(f"{name} holds git conflict markers. Resolve the conflict, then hand it in again.")
    begins = text.lstrip("\0 \t\n\ufeff")
    if begins[:1] == "<":
        raise SubmissionError(
            f"{name} is a web page, not a notebook: probably a login page was saved. Download it again."
        )
    if begins.startswith("version https://git-lfs"):
        raise SubmissionError(
            f"{name} is a pointer of git-lfs; the notebook itself was not fetched. Run `git lfs pull`."
        )
    if begins[:1] not in ("{", "["):
        # a number, a word or a Python script may be valid JSON or not: it is no notebook in either case
        if "\0" in begins[:1000]:
            raise SubmissionError(f"{name} is neither a notebook nor any text. Save the notebook in Jupyter again.")
        first = begins.partition("\n")[0][:40]
        raise SubmissionError(
            f"{name} is plain text that begins {first!r}, not a notebook: it has no nbformat version."
        )
    try:
        return json.loads(begins)
    except RecursionError:
        raise SubmissionError(
            f"{name} is not complete JSON that a notebook could be: it is nested too deeply."
        ) from None
    except ValueError as error:
        if str(error).startswith("Extra data"):
            told = f"{name} goes on after the end of the notebook ({error}): another text was added to it. Hand in one notebook."
            raise SubmissionError(told) from None
        raise SubmissionError(f"{name} is not complete JSON ({error}); it was probably cut off while saving.") from None


def _nothing_in(name: str, data: bytes) -> str:
    if b"\0" in data:
        return f"{name} holds nothing but zero bytes: it was damaged when it was saved or copied. Hand in another copy."
    return f"{name} is empty. Save the notebook in Jupyter and hand it in again."


def _upgrade(raw: dict[str, Any], name: str) -> dict[str, Any]:
    import nbformat

    try:
        return dict(nbformat.convert(nbformat.from_dict(raw), 4))
    except Exception as error:  # nbformat raises many things for malformed cells
        raise SubmissionError(f"{name} is not a valid notebook: {type(error).__name__}: {error}.") from None


def _cell(cell: dict[str, Any]) -> RawCell:
    source = cell.get("source", "")
    text = plain_text("".join(map(str, source)) if isinstance(source, list) else str(source))
    kind = cell.get("cell_type")
    metadata = cell.get("metadata")
    parts = metadata if isinstance(metadata, dict) else {}
    ours = [part if isinstance(part := parts.get(name), dict) else {} for name in ("nbgrader", "graders")]
    # Jupyter keeps a cell's id beside its text (nbformat 4.5), Colab among its metadata
    own = next((one for one in (cell.get("id"), parts.get("id")) if isinstance(one, str) and one), None)
    return RawCell(kind if kind in _CELL_TYPES else "raw", text, ours[0], ours[1], own, shown(cell.get("outputs")))
