"""A kernel's stdout and stderr that keep the head and the tail of what one cell prints.

Comes in: text. Goes out: at most about half of `limit_bytes` of it a cell and stream. Cutting here, while it streams, keeps both
processes flat for honest floods; the client has a cap of its own for the others.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ipykernel.iostream import OutStream


class CappedOutput(OutStream):
    """An OutStream that lets a quarter of the limit through and holds the last quarter until the cell ends.

    A cell has two streams, and the limit is for both: a flood on one must not cost the other its tail.
    """

    limit_bytes = 200_000

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._start()
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]

    def _start(self) -> None:
        self._passed = 0
        self._cut = 0
        self._held = 0
        self._tail: deque[str] = deque()

    def write(self, string: str) -> int:
        """Pass on, hold, or drop; always claims to have written everything."""
        part = self.limit_bytes // 4
        room = part - self._passed
        if room > 0:
            self._passed += len(string)
            super().write(string[:room])
        rest = string[room:] if room > 0 else string
        if rest:
            self._hold(rest, part)
        return len(string)

    def _hold(self, text: str, most: int) -> None:
        kept = text[-most:]
        self._cut += len(text) - len(kept)
        self._tail.append(kept)
        self._held += len(kept)
        while self._held - len(self._tail[0]) >= most:
            dropped = self._tail.popleft()
            self._held -= len(dropped)
            self._cut += len(dropped)

    def flush(self) -> None:
        """Send what was written. With nothing to send there is no round trip through the output thread."""
        if self._flush_pending or self._subprocess_flush_pending:
            super().flush()  # type: ignore[no-untyped-call]

    def set_parent(self, parent: Any) -> None:
        """A new cell begins: its budget is whole again."""
        self.release()
        super().set_parent(parent)  # type: ignore[no-untyped-call]

    def release(self) -> None:
        """A cell has ended: send what was held."""
        if self._tail:
            text = "".join(self._tail)
            note = f"\n… {self._cut:,} characters were cut here …\n" if self._cut else ""
            super().write(note + text)
            self.flush()
        self._start()
