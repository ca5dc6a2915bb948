"""Laws of what is allowed by default: what a platform computes rightly passes there, and no profile lets another number pass."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest

from graders import tolerances
from graders.compare import Allowed, difference
from graders.targets import BUILT_IN

PROFILES = ("cpu", "tpu")
DTYPES = [np.float16, np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16]


def passes(actual: object, wanted: object, profile: str) -> bool:
    """Whether the two are the same where the author says nothing of tolerances."""
    return difference(actual, wanted, Allowed(profile=profile)) is None


@pytest.mark.parametrize("size", [1, 3, 64, 512])
def test_a_product_of_matrices_is_right_on_the_platform_that_computed_it(size: int) -> None:
    """Factors rounded to bfloat16 and summed in float32, as a TPU does by default, pass as a TPU's and fail as a CPU's."""
    draw = np.random.default_rng(size)
    one, other = draw.uniform(1, 2, (2, size, size)).astype(np.float32)
    rounded = [each.astype(ml_dtypes.bfloat16).astype(np.float32) for each in (one, other)]
    on_tpu, exact = rounded[0] @ rounded[1], one.astype(np.float64) @ other.astype(np.float64)
    assert passes(on_tpu, exact, "tpu")
    assert not passes(on_tpu, exact, "cpu")
    assert passes(one @ other, exact, "cpu")


def test_a_function_that_is_as_far_off_as_jax_tells_is_right() -> None:
    """6213 units in the last place, JAX's greatest bound of float32 on a TPU (log10), pass as a TPU's and fail as a CPU's."""
    wanted = np.geomspace(1, 30, 7).astype(np.float32)
    far = wanted + 6213 * np.spacing(wanted)
    assert (passes(far, wanted, "tpu"), passes(far, wanted, "cpu")) == (True, False)


@pytest.mark.parametrize("profile", PROFILES)
def test_another_number_passes_nowhere(profile: str) -> None:
    """58 is not 55 and 0.02 is not 0, in any dtype and as plain numbers; integers and booleans are exact."""
    for dtype in DTYPES:
        assert not passes(np.asarray([58, 1], dtype), np.asarray([55, 1], dtype), profile)
        assert not passes(np.asarray(0.02, dtype), np.asarray(0, dtype), profile)
    assert not passes(58.0, 55.0, profile)
    assert not passes(np.int32(1001), np.int32(1000), profile)
    assert not passes(10**6 + 1, 10**6, profile)
    assert not passes(True, False, profile)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tpu_is_allowed_no_less_than_a_cpu(dtype: type) -> None:
    """For no dtype is the TPU's tolerance narrower, so a right answer of a CPU is right there too."""
    narrow, wide = (tolerances.default(profile, np.zeros(1, dtype)) for profile in PROFILES)
    assert (wide[0] >= narrow[0], wide[1] >= narrow[1]) == (True, True)
    assert tolerances.default("tpu", 1.0) >= tolerances.default("cpu", 1.0)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_author_has_the_last_word(profile: str) -> None:
    """A tolerance that is given is that of every platform, narrower or wider than its own."""
    one, near = np.float32(1), np.float32(1.001)
    assert difference(near, one, Allowed(rtol=1e-6, atol=0.0, profile=profile)) is not None
    assert difference(near, one, Allowed(rtol=2e-3, atol=0.0, profile=profile)) is None
    assert difference(np.float32(1.5), one, Allowed(atol=0.6, profile=profile)) is None


@pytest.mark.parametrize(("platform", "profile"), [("cpu", "cpu"), ("gpu", "cpu"), ("tpu", "tpu")])
def test_without_an_examiner_the_own_platform_decides(
    monkeypatch: pytest.MonkeyPatch, platform: str, profile: str
) -> None:
    """A plain kernel computes and compares in one process, so whoever works on a TPU is compared as there."""
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    assert tolerances.here() == profile


def test_each_target_has_a_profile() -> None:
    """The platform of whoever holds the accelerator; what is only compiled for a TPU was computed on a CPU."""
    found = {name: target.tolerances for name, target in BUILT_IN.items()}
    assert found == {"cpu": "cpu", "tpu": "tpu", "tpu-export": "tpu", "tpu-compile": "cpu"}
    assert set(found.values()) <= set(PROFILES)
