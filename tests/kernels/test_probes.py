"""Every wall holds: nothing forbidden can be done from inside."""

from __future__ import annotations

import functools

import pytest

from graders.kernels import landlock
from graders.kernels.attempts import ATTEMPTS
from graders.kernels.probes import Probe, doctor

# What only Landlock refuses at the level `process`; without it, doctor must say that these do not hold.
NEEDS_LANDLOCK = {name for name, (wall, _) in ATTEMPTS.items() if wall == "files"}


@functools.cache
def probes(level: str) -> dict[str, Probe]:
    """The probes of one level, tried once for all tests."""
    return {probe.name: probe for probe in doctor(level)}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_forbidden_thing_is_refused(level: str, name: str) -> None:
    """What a candidate must not do is refused at both levels."""
    if level == "process" and name in NEEDS_LANDLOCK and not landlock.abi():
        pytest.skip("this kernel has no Landlock, and doctor says that files are open")
    probe = probes(level)[name]
    assert probe.held, f"{probe.wall}: {probe.detail}"
