"""What one cell shows, head and tail kept within a limit, nothing kept that a browser would render as more than text.

Comes in: the content of Jupyter messages, made by an adversary. Goes out: nbformat 4 output dictionaries. Must not: keep
HTML, SVG, LaTeX, Markdown or scripts: nothing of a candidate is ever rendered.
"""

from __future__ import annotations

import re
from typing import Any

from graders.records import CHECKS_TYPE
from graders.runs import Problem

_KEPT_TYPES = ("text/plain", "image/png", "image/jpeg", CHECKS_TYPE)
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Outputs:
    """Output of one cell, head and tail kept within a limit of bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._used = 0
        self._items: list[dict[str, Any]] = []
        self.cut_bytes = 0

    def add(self, kind: str, content: dict[str, Any]) -> Problem | None:
        """Take one message in; an error message also comes back as a `Problem`."""
        if kind == "stream":
            self._stream("stderr" if content.get("name") == "stderr" else "stdout", str(content.get("text", "")))
        elif kind in ("display_data", "execute_result"):
            self._display(kind, content)
        elif kind == "error":
            lines = [str(line) for line in content.get("traceback", [])][:200]
            name, message = str(content.get("ename", ""))[:200], str(content.get("evalue", ""))[:20_000]
            item = {"output_type": "error", "ename": name, "evalue": message, "traceback": lines}
            self._keep(item, len(message) + sum(map(len, lines)))
            return Problem(_utf8(name), _utf8(message), _utf8(_ANSI.sub("", "\n".join(lines)))[-20_000:])
        return None

    def items(self) -> tuple[dict[str, object], ...]:
        """nbformat 4 output dictionaries."""
        if self.cut_bytes:
            note = f"\n… {self.cut_bytes:,} bytes of output were cut …\n"
            return (*self._items, {"output_type": "stream", "name": "stderr", "text": note})
        return tuple(self._items)

    def _stream(self, name: str, text: str) -> None:
        room = max(0, self._limit - self._used)
        kept = _utf8(text[:room])
        self.cut_bytes += len(text) - len(text[:room])
        if not kept:
            return
        self._used += len(kept)
        if self._items and self._items[-1].get("name") == name:
            self._items[-1]["text"] += kept
        else:
            self._items.append({"output_type": "stream", "name": name, "text": kept})

    def _display(self, kind: str, content: dict[str, Any]) -> None:
        data = content.get("data")
        if not isinstance(data, dict):
            return
        kept = {t: _utf8(data[t]) for t in _KEPT_TYPES if isinstance(data.get(t), str)}
        # nbconvert puts a picture's text into an attribute as it is
        kept = {t: text for t, text in kept.items() if not t.startswith("image/") or _BASE64.fullmatch(text)}
        item: dict[str, Any] = {"output_type": kind, "data": kept, "metadata": {}}
        if kind == "execute_result":
            item["execution_count"] = None
        if kept:
            self._keep(item, sum(map(len, kept.values())))

    def _keep(self, item: dict[str, Any], size: int) -> None:
        if self._used + size > self._limit * 4:  # a picture may be larger than text
            self.cut_bytes += size
            return
        self._used += size
        self._items.append(item)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
