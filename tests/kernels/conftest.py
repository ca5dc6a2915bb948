"""Real zygotes, real walls: shared by the tests of the kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from kernel_pipes import FOLDER, Pipe

from graders.kernels.nursery import LEVELS, Zygote, best_level

# Where a machine does not allow a level, that asking for it is refused is a law of test_sandbox.
_ALLOWED = LEVELS[: LEVELS.index(best_level()) + 1]


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A light zygote that knows the entries of these tests."""
    with Zygote(preload=("entries",), path=(FOLDER,)) as started:
        yield started


@pytest.fixture(params=_ALLOWED)
def level(request: pytest.FixtureRequest) -> str:
    """Each level that this machine allows, in turn."""
    wanted: str = request.param
    return wanted


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A fresh pipe."""
    made = Pipe()
    yield made
    made.close_given()
    os.close(made.reading)
