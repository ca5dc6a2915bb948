"""Real zygotes, real walls: shared by the tests of the kernels."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from graders.errors import IsolationError
from graders.kernels.nursery import LEVELS, Spawn, Zygote, best_level

FOLDER = str(Path(__file__).parent)


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A light zygote that knows the entries of these tests."""
    with Zygote(preload=("entries",), path=(FOLDER,)) as started:
        yield started


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, zygote: Zygote) -> str:
    """Each level in turn; where a machine does not allow one, the law is that asking for it is refused."""
    wanted: str = request.param
    if LEVELS.index(wanted) > LEVELS.index(best_level()):
        with pytest.raises(IsolationError, match=wanted):
            zygote.spawn(Spawn(entry="entries:hello", isolation=wanted))
        pytest.skip(f"this machine does not allow {wanted}; the refusal was checked")
    return wanted


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


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A fresh pipe."""
    made = Pipe()
    yield made
    made.close_given()
    os.close(made.reading)
