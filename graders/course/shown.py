"""What a cell showed when its student saved it: text and pictures, for the student's own page.

Comes in: the outputs of a cell as a notebook file has them, made by an adversary. Goes out: `Shown`s within bounds. Must not: keep anything
that a browser would render as more than text or a picture.

These outputs are older than the grading, so nothing of a hidden test can stand in them, whatever the student's code does there.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterator
from typing import Any

from graders.records import Picture, Shown

MOST_TEXT = 3_000  # characters of a cell
MOST_PICTURES = 3
LARGEST_PICTURE = 400_000  # characters of base64; a figure of Matplotlib has 20,000 to 100,000
LARGEST_SIDE = 5_000  # pixels: a picture of few bytes may unfold to gigabytes
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def shown(outputs: object) -> Shown | None:
    """The text of all outputs, head kept, and the pictures; None when there is neither."""
    texts, cut = "", False
    pictures: list[Picture] = []
    for one in outputs if isinstance(outputs, list) else ():
        if not isinstance(one, dict):
            continue
        given = one.get("data")
        data = given if isinstance(given, dict) else {}
        picture = _picture(data)
        if picture is not None and len(pictures) < MOST_PICTURES:
            pictures.append(picture)
            continue
        cut = cut or "image/png" in data
        texts += "".join(_texts(one, data))[: MOST_TEXT + 1 - len(texts)]
    if len(texts) > MOST_TEXT:
        texts = texts[:MOST_TEXT] + "\n… (cut here)"
    if cut:
        texts = f"{texts.rstrip()}\n(A picture is not shown.)".lstrip()
    return Shown(texts, tuple(pictures)) if texts.strip() or pictures else None


def _texts(one: dict[str, Any], data: dict[str, Any]) -> Iterator[str]:
    if one.get("output_type") == "stream":
        yield _joined(one.get("text"))
    elif one.get("output_type") == "error":
        yield f"{_joined(one.get('ename'))}: {_joined(one.get('evalue'))}\n"
    elif "text/plain" in data and "image/png" not in data:
        yield _joined(data["text/plain"]) + "\n"


def _picture(data: dict[str, Any]) -> Picture | None:
    """A PNG that is one by its first bytes, and neither too long nor too large to be drawn."""
    text = data.get("image/png")
    text = "".join(_joined(text).split()) if text is not None else ""
    if not 0 < len(text) <= LARGEST_PICTURE:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not raw.startswith(_PNG) or len(raw) < len(_PNG) + 8:
        return None
    width, height = struct.unpack_from(">II", raw, len(_PNG))
    fits = 0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE
    return Picture(base64.b64encode(raw).decode(), width, height) if fits else None


def _joined(value: object) -> str:
    """Text as notebooks write it, in one piece or as lines."""
    parts = value if isinstance(value, list) else [value]
    return _ANSI.sub("", "".join(part for part in parts if isinstance(part, str)))
