"""Compare values by what they are, not by what they say of themselves.

Comes in: two values. Goes out: a sentence about the first difference, or None. Must not: call `__eq__`, `__array__`,
`__repr__` or any other method of an object that is not a built-in, NumPy or JAX value.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from graders import tolerances

_ATOMS = (bool, int, float, complex, str, bytes, bytearray, type(None), type(Ellipsis), range, Decimal, Fraction)
_SHOWN_CHARS = 600
_SHOWN_ITEMS = 100
_SHOWN_DEPTH = 6


class Allowed(NamedTuple):
    """What the author allows, and the profile that says what is allowed where the author does not."""

    rtol: float | None = None
    atol: float | None = None
    profile: str = tolerances.CPU


_DEFAULT = Allowed()


def difference(actual: Any, wanted: Any, allowed: Allowed = _DEFAULT) -> str | None:
    """Say how `actual` differs from `wanted`, or None when it does not. Containers are compared item by item."""
    kind = type(wanted)
    if actual is wanted:
        return None
    if kind is not type(actual):  # a fraction or decimal where a float was computed, or the other way round
        actual, wanted = _as_float(actual), _as_float(wanted)
    if _is_numeric(wanted):
        return _numeric_difference(actual, wanted, allowed)
    if issubclass(kind, (list, tuple)):
        return _sequence_difference(actual, wanted, allowed)
    if issubclass(kind, dict):
        return _dict_difference(actual, wanted, allowed)
    return None if _same(actual, wanted) else f"wanted {show(wanted)}, got {show(actual)}"


def dtype_difference(actual: Any, dtype: Any) -> str | None:
    """Say that `actual` has another dtype than wanted, or None."""
    if not _is_numeric(actual) or type(actual) in tolerances.NUMBERS:
        return f"wanted an array of dtype {np.dtype(dtype)}, got {show(actual)}"
    found = np.asarray(actual).dtype
    return None if found == np.dtype(dtype) else f"wanted dtype {np.dtype(dtype)}, got {found}"


def show(value: Any) -> str:
    """A short text of a value for staff; an object of unknown type is named, never asked for its repr."""
    if _is_numeric(value) and type(value) not in tolerances.NUMBERS:
        array = np.asarray(value)
        text = f"{np.array2string(array, threshold=50)} ({array.dtype}, shape {list(array.shape)})"
    else:
        text = _text(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 2] + " …"


# --- what a value is --------------------------------------------------------------------------------------------------


def _is_numeric(value: Any) -> bool:
    kind = type(value)
    if kind in tolerances.NUMBERS or issubclass(kind, np.generic):
        return not issubclass(kind, (np.str_, np.bytes_, np.void, np.object_, np.datetime64, np.timedelta64))
    if kind is np.ndarray:
        return value.dtype.kind in "biufcV" and value.dtype.fields is None
    jax = sys.modules.get("jax")
    return (
        jax is not None and issubclass(kind, jax.Array) and not jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended)
    )


def _is_key(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return (
        jax is not None
        and issubclass(type(value), jax.Array)
        and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
    )


def _is_plain(value: Any) -> bool:
    """Whether `==` on this value asks nobody but Python and NumPy."""
    kind = type(value)
    if kind in (tuple, set, frozenset):
        return all(map(_is_plain, value))
    if kind is slice:
        return all(map(_is_plain, (value.start, value.stop, value.step)))
    return kind in _ATOMS or issubclass(kind, (np.generic, np.dtype, type))


def _text(value: Any, depth: int = 0) -> str:
    kind = type(value)
    if issubclass(kind, (list, tuple, set, frozenset)):
        marks = "[]" if issubclass(kind, list) else "()" if issubclass(kind, tuple) else "{}"
        return marks[0] + _texts(value, depth) + marks[1]
    if issubclass(kind, dict):
        pairs = [f"{_text(k, depth + 1)}: {_text(v, depth + 1)}" for k, v in _first(dict.items(value), depth)]
        return "{" + ", ".join(pairs) + ("}" if len(value) == len(pairs) else ", …}")
    if kind is int and value.bit_length() > 10_000:  # Python refuses to write out more than 4300 digits
        return f"an integer of {value.bit_length()} bits"
    if _is_plain(value) or _is_numeric(value) or (kind is np.ndarray and not value.dtype.hasobject):
        return repr(value)
    return f"an object of type {kind.__name__}"


def _texts(items: Any, depth: int) -> str:
    texts = [_text(one, depth + 1) for one in _first(items, depth)]
    return ", ".join(texts) + ("" if len(texts) == len(items) else ", …" if texts else "…")


def _first(items: Iterable[Any], depth: int) -> Iterable[Any]:
    return itertools.islice(items, _SHOWN_ITEMS if depth < _SHOWN_DEPTH else 0)


# --- whether two are the same -----------------------------------------------------------------------------------------


def _same(actual: Any, wanted: Any) -> bool:
    """Whether two values that are neither numbers nor lists nor dicts are the same."""
    kind = type(wanted)
    if type(actual) is not kind:
        return False
    if issubclass(kind, (np.ndarray, np.generic)):
        return _same_array(np.asarray(actual), np.asarray(wanted))
    if _is_key(wanted):
        random = sys.modules["jax"].random
        return actual.dtype == wanted.dtype and _equal(random.key_data(actual), random.key_data(wanted))
    return _is_plain(actual) and _is_plain(wanted) and bool(actual == wanted)


def _same_array(actual: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Arrays of text or times; the width of a text and the unit of a time are no part of the value."""
    if actual.dtype.kind != wanted.dtype.kind or wanted.dtype.kind not in "SUmM":
        return False
    return bool(np.array_equal(actual, wanted, equal_nan=wanted.dtype.kind in "mM"))


def _as_float(value: Any) -> Any:
    exact = type(value) is Fraction or (type(value) is Decimal and value.is_finite())
    try:
        return float(value) if exact else value
    except OverflowError:
        return value


def _equal(actual: Any, wanted: Any) -> bool:
    return bool(np.array_equal(np.asarray(actual), np.asarray(wanted)))


def _numeric_difference(actual: Any, wanted: Any, allowed: Allowed) -> str | None:
    if not _is_numeric(actual):
        return f"wanted {show(wanted)}, got {show(actual)}"
    if type(actual) is type(wanted) is int and allowed.rtol is allowed.atol is None:
        return None if actual == wanted else f"wanted {show(wanted)}, got {show(actual)}"
    found, target = np.asarray(actual), np.asarray(wanted)
    if found.shape != target.shape:
        return f"wanted shape {list(target.shape)}, got shape {list(found.shape)}: {show(actual)}"
    if (found.dtype.kind == "b") != (target.dtype.kind == "b"):
        return f"wanted {show(wanted)}, got {show(actual)}: one is boolean, the other is not"
    default_r, default_a = tolerances.default(allowed.profile, actual, wanted)
    relative = default_r if allowed.rtol is None else allowed.rtol
    absolute = default_a if allowed.atol is None else allowed.atol
    if _close(found, target, relative, absolute):
        return None
    return f"wanted {show(wanted)}, got {show(actual)} (rtol {relative:g}, atol {absolute:g})"


def _close(found: np.ndarray[Any, Any], target: np.ndarray[Any, Any], rtol: float, atol: float) -> bool:
    if found.dtype.kind in "biu" and target.dtype.kind in "biu" and rtol == atol == 0.0:
        return _equal(found, target)
    wide = np.complex128 if "c" in (found.dtype.kind, target.dtype.kind) else np.float64
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf; a tolerance of the largest float
            return bool(np.allclose(found.astype(wide), target.astype(wide), rtol=rtol, atol=atol, equal_nan=True))
    except OverflowError:  # an integer beyond every float
        return False


def _sequence_difference(actual: Any, wanted: Any, allowed: Allowed) -> str | None:
    kind = list if issubclass(type(wanted), list) else tuple
    if not issubclass(type(actual), kind):
        return f"wanted a {kind.__name__}, got {show(actual)}"
    found, target = list(kind.__iter__(actual)), list(kind.__iter__(wanted))
    if len(found) != len(target):
        return f"wanted {len(target)} items, got {len(found)}: {show(actual)}"
    for index, (one, other) in enumerate(zip(found, target, strict=True)):
        problem = difference(one, other, allowed)
        if problem is not None:
            return f"item {index}: {problem}"
    return None


def _dict_difference(actual: Any, wanted: dict[Any, Any], allowed: Allowed) -> str | None:
    if not issubclass(type(actual), dict):
        return f"wanted a dict, got {show(actual)}"
    found = dict(dict.items(actual))
    own = set(map(id, wanted))
    if not all(_is_plain(key) or id(key) in own for key in found) or found.keys() != wanted.keys():
        return f"wanted the keys {show(list(wanted))}, got {show(list(found))}"
    for key, target in wanted.items():
        problem = difference(found[key], target, allowed)
        if problem is not None:
            return f"key {key!r}: {problem}"
    return None
