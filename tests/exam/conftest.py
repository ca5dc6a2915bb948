"""A zygote that can serve a namespace, and candidates born of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from candidates import Candidate

from graders.exam.pair import PRELOAD
from graders.kernels.nursery import PRELOAD as KERNEL_PRELOAD
from graders.kernels.nursery import Zygote

FOLDER = str(Path(__file__).parent)


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A warm zygote that also knows how to serve a namespace."""
    with Zygote((*KERNEL_PRELOAD, *PRELOAD, "served"), path=(FOLDER,)) as started:
        yield started


@pytest.fixture(scope="module")
def candidates(zygote: Zygote) -> Iterator[Callable[[str], Candidate]]:
    """Makes a candidate of a text; one text makes one candidate for all tests of a module."""
    made: dict[str, Candidate] = {}

    def candidate(source: str) -> Candidate:
        if source not in made:
            made[source] = Candidate(zygote, source)
        return made[source]

    yield candidate
    for one in made.values():
        one.close()


@pytest.fixture
def candidate(zygote: Zygote) -> Iterator[Callable[[str], Candidate]]:
    """Makes a fresh candidate of a text."""
    made: list[Candidate] = []

    def fresh(source: str) -> Candidate:
        made.append(Candidate(zygote, source))
        return made[-1]

    yield fresh
    for one in made:
        one.close()
