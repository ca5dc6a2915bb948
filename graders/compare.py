"""Compare values by what they are, not by what they say of themselves.

Comes in: two values. Goes out: a sentence about the first difference, or None. Must not: call `__eq__`, `__array__` or
any other method of an object that is not a built-in, NumPy or JAX value.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

# (rtol, atol) by significant bits. float32 is the lessons' own tolerance; float64 is numpy.testing.assert_allclose's default;
# the two halves are torch.testing.assert_close's defaults, the only widely used table that names bfloat16.
_TOLERANCES = {8: (1.6e-2, 1e-5), 11: (1e-3, 1e-5), 24: (2e-5, 2e-5), 53: (1e-7, 1e-12)}
_SHOWN_CHARS = 600


def difference(actual: Any, wanted: Any, rtol: float | None = None, atol: float | None = None) -> str | None:
    """Say how `actual` differs from `wanted`, or None when it does not. Containers are compared item by item."""
    if _is_numeric(wanted):
        return _numeric_difference(actual, wanted, rtol, atol)
    if isinstance(wanted, (list, tuple)):
        return _sequence_difference(actual, wanted, rtol, atol)
    if isinstance(wanted, dict):
        return _dict_difference(actual, wanted, rtol, atol)
    if type(actual) is type(wanted) and isinstance(wanted, _EXACT) and actual == wanted:
        return None
    return f"wanted {show(wanted)}, got {show(actual)}"


_EXACT = (str, bytes, bytearray, type(None), type(Ellipsis), set, frozenset, range, slice, type, np.dtype)


def dtype_difference(actual: Any, dtype: Any) -> str | None:
    """Say that `actual` has another dtype than wanted, or None."""
    if not _is_numeric(actual):
        return f"wanted an array of dtype {np.dtype(dtype)}, got {show(actual)}"
    found = np.asarray(actual).dtype
    return None if found == np.dtype(dtype) else f"wanted dtype {np.dtype(dtype)}, got {found}"


def tolerance(*values: Any) -> tuple[float, float]:
    """The default (rtol, atol) for numbers of these dtypes: that of the coarsest floating dtype that an array brings.

    Plain Python numbers are exact literals and bring none; with no floating dtype at all, float64's is used for floats and
    exact equality for integers and booleans.
    """
    arrays = [np.asarray(value).dtype for value in values if not isinstance(value, (bool, int, float, complex))]
    bits = [_significant_bits(dtype) for dtype in arrays]
    known = [found for found in bits if found]
    if known:
        return _TOLERANCES[min(known)]
    return _TOLERANCES[53] if any(isinstance(value, (float, complex)) for value in values) else (0.0, 0.0)


def show(value: Any) -> str:
    """A short text of a value for staff; an object of unknown type is named, never asked for its repr."""
    if _is_numeric(value) and not isinstance(value, (bool, int, float, complex)):
        array = np.asarray(value)
        text = f"{np.array2string(array, threshold=50)} ({array.dtype}, shape {list(array.shape)})"
    elif isinstance(value, (bool, int, float, complex, list, tuple, dict, *_EXACT)):
        text = _repr(value)
    else:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 2] + " …"


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python refuses to write out integers of more than 4300 digits
        return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__name__}"


def _is_numeric(value: Any) -> bool:
    if type(value) in (bool, int, float, complex) or isinstance(value, np.generic):
        return not isinstance(value, (np.str_, np.bytes_, np.void, np.object_))
    if type(value) is np.ndarray:
        return value.dtype.kind in "biufcV" and value.dtype.fields is None
    jax = sys.modules.get("jax")
    return (
        jax is not None and isinstance(value, jax.Array) and not jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended)
    )


def _significant_bits(dtype: np.dtype[Any]) -> int | None:
    if dtype.kind == "c":
        return 53 if dtype.itemsize > 8 else 24
    if dtype.name == "bfloat16" or dtype.name.startswith("float8"):
        return 8
    if dtype.kind == "f":
        return {2: 11, 4: 24}.get(dtype.itemsize, 53)
    return None


def _numeric_difference(actual: Any, wanted: Any, rtol: float | None, atol: float | None) -> str | None:
    if not _is_numeric(actual):
        return f"wanted {show(wanted)}, got {show(actual)}"
    if type(actual) is type(wanted) is int and rtol is atol is None:
        return None if actual == wanted else f"wanted {show(wanted)}, got {show(actual)}"
    found, target = np.asarray(actual), np.asarray(wanted)
    if found.shape != target.shape:
        return f"wanted shape {list(target.shape)}, got shape {list(found.shape)}: {show(actual)}"
    if (found.dtype.kind == "b") != (target.dtype.kind == "b"):
        return f"wanted {show(wanted)}, got {show(actual)}: one is boolean, the other is not"
    default_r, default_a = tolerance(actual, wanted)
    relative = default_r if rtol is None else rtol
    absolute = default_a if atol is None else atol
    if _close(found, target, relative, absolute):
        return None
    return f"wanted {show(wanted)}, got {show(actual)} (rtol {relative:g}, atol {absolute:g})"


def _close(found: np.ndarray[Any, Any], target: np.ndarray[Any, Any], rtol: float, atol: float) -> bool:
    if found.dtype.kind in "biu" and target.dtype.kind in "biu" and rtol == atol == 0.0:
        return bool(np.array_equal(found, target))
    wide = np.complex128 if "c" in (found.dtype.kind, target.dtype.kind) else np.float64
    try:
        with np.errstate(invalid="ignore"):  # inf - inf
            return bool(np.allclose(found.astype(wide), target.astype(wide), rtol=rtol, atol=atol, equal_nan=True))
    except OverflowError:  # an integer beyond every float
        return False


def _sequence_difference(actual: Any, wanted: Any, rtol: float | None, atol: float | None) -> str | None:
    kind = list if isinstance(wanted, list) else tuple
    if not isinstance(actual, kind):
        return f"wanted a {kind.__name__}, got {show(actual)}"
    if len(actual) != len(wanted):
        return f"wanted {len(wanted)} items, got {len(actual)}: {show(actual)}"
    for index, (one, other) in enumerate(zip(actual, wanted, strict=True)):
        problem = difference(one, other, rtol, atol)
        if problem is not None:
            return f"item {index}: {problem}"
    return None


def _dict_difference(actual: Any, wanted: dict[Any, Any], rtol: float | None, atol: float | None) -> str | None:
    if not isinstance(actual, dict):
        return f"wanted a dict, got {show(actual)}"
    if actual.keys() != wanted.keys():
        return f"wanted the keys {show(list(wanted))}, got {show(list(actual))}"
    for key, target in wanted.items():
        problem = difference(actual[key], target, rtol, atol)
        if problem is not None:
            return f"key {key!r}: {problem}"
    return None
