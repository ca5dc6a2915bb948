"""A table as CSV that a spreadsheet may open.

Comes in: column names, rows of text and numbers. Goes out: text. Must not: let a cell begin like a formula, or round a number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

# OWASP, "CSV Injection": what a spreadsheet takes for the beginning of a formula, full-width forms too
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")  # some begin a formula, and a lone carriage return begins a row


def harmless(text: str) -> str:
    """One line of text that no spreadsheet runs: an apostrophe stands before what begins like a formula."""
    text = _CONTROLS.sub(" ", text)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def exact(number: Decimal | None) -> str:
    """Every digit and no exponent; nothing for no number."""
    text = "" if number is None else f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def table(
    columns: Sequence[str], rows: Iterable[Mapping[str, str | Decimal | None]], blank: Mapping[str, str] | None = None
) -> str:
    """The table with a row of names above it. Where a row has nothing, the cell is empty, or what `blank` says for its column."""
    blank = blank or {}
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([harmless(name) for name in columns])
    for row in rows:
        cells = ((name, row.get(name)) for name in columns)
        writer.writerow(
            [(harmless(cell) if isinstance(cell, str) else exact(cell)) or blank.get(name, "") for name, cell in cells]
        )
    return file.getvalue()
