"""How far a number may be from the wanted one when its author does not say: a profile for each platform, and in it a tolerance for each dtype.

Comes in: the name of a profile and the values that are compared. Goes out: (rtol, atol). Must not: ask a value anything but its dtype, or let
a candidate choose the profile: it follows the target, whose platform both processes are held to.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

CPU, TPU = "cpu", "tpu"
_PLAIN = 0  # a Python float, which has no dtype
# (rtol, atol) by significant bits.
_PROFILES = {
    # float32 is the lessons' own tolerance; float64 is numpy.testing.assert_allclose's default; the two halves are
    # torch.testing.assert_close's defaults, the only widely used table that names bfloat16.
    CPU: {8: (1.6e-2, 1e-5), 11: (1e-3, 1e-5), 24: (2e-5, 2e-5), 53: (1e-7, 1e-12), _PLAIN: (1e-7, 1e-12)},
    # A product of matrices rounds both factors to bfloat16, 2**-9 each (docs.jax.dev/en/latest/201/precision.html), and functions of float32
    # are up to 6213 units in the last place off, 7e-4 (docs.jax.dev/en/latest/accuracy.html). float16 and float64 are emulated, with no bound
    # told for the latter: it gets what float32 has on a CPU. A Python float is most often a float32 of JAX, which has no wider one by default.
    TPU: {8: (1.6e-2, 1e-3), 11: (1e-2, 1e-3), 24: (1e-2, 1e-3), 53: (2e-5, 2e-5), _PLAIN: (1e-2, 1e-3)},
}
_FLOAT8 = re.compile(r"float8_e\dm(\d)")
NUMBERS = (bool, int, float, complex)


def default(profile: str, *values: Any) -> tuple[float, float]:
    """The (rtol, atol) for numbers of these dtypes: that of the coarsest floating dtype that an array brings.

    Plain Python numbers are exact literals and bring none; with no floating dtype at all, floats have a tolerance of their own, and
    integers and booleans are compared exactly.
    """
    table = _PROFILES[profile]
    dtypes = [np.asarray(value).dtype for value in values if type(value) not in NUMBERS]
    known = [found for found in (_of(dtype, table) for dtype in dtypes) if found]
    if known:
        return max(known)
    return table[_PLAIN] if any(type(value) in (float, complex) for value in values) else (0.0, 0.0)


def here() -> str:
    """The profile of this process, where no target says which: a plain kernel, which computes and compares in one place."""
    jax = sys.modules.get("jax")
    return TPU if jax is not None and jax.default_backend() == TPU else CPU


def _of(dtype: np.dtype[Any], table: dict[int, tuple[float, float]]) -> tuple[float, float] | None:
    if eighth := _FLOAT8.match(dtype.name):
        return 2.0 ** -int(eighth[1]), 1e-2  # one unit in the last place
    if dtype.kind == "c":
        return table[53 if dtype.itemsize > 8 else 24]
    if dtype.name == "bfloat16":
        return table[8]
    return table[{2: 11, 4: 24}.get(dtype.itemsize, 53)] if dtype.kind == "f" else None
