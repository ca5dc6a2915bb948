"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import postgres
import pytest
from hypothesis import settings

from graders.kernels import xla

# What tests compute themselves for comparison is compiled as quickly as where the grader compiles.
os.environ.setdefault("XLA_FLAGS", xla.flags())

# A law that holds on a busy machine is not broken by the time that it took there.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_LONGEST = ("test_answers", "test_attacks", "test_cli", "test_gating", "test_guides", "test_recording", "test_session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files: two workers then end at about the same time."""
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope="session", autouse=True)
def own_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Reports are signed with a key of these tests, not with the one of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """A PostgreSQL server of these tests. Where there is no PostgreSQL, they fail and say what to install."""
    with postgres.server() as one:
        yield one
