"""What the tests of the kernels share beside fixtures."""

from __future__ import annotations

import os
import select
from pathlib import Path

FOLDER = str(Path(__file__).parent)


class Pipe:
    """A pipe whose one end a born process gets: what it says, and whether anyone inside still lives."""

    def __init__(self) -> None:
        self.reading, self.given = os.pipe()

    def close_given(self) -> None:
        """Let go of our copy, so that the end of file is the end of everyone inside."""
        if self.given >= 0:
            os.close(self.given)
            self.given = -1

    def read(self, timeout_s: float = 10.0) -> bytes:
        """What was said; empty at end of file. Fails when there is neither in time."""
        self.close_given()
        assert select.select([self.reading], [], [], timeout_s)[0], "neither a word nor the end came in time"
        return os.read(self.reading, 65536)
