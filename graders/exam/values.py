"""Which values cross by value, and how each is rebuilt. Plain data on both sides; nothing here knows a socket.

Comes in: an object, or a wire node. Goes out: a wire node, or a built-in, NumPy or JAX value made by us from bytes.
Must not: call a method that a student's class may have defined in the process that judges.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import re
import sys
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from graders.exam import nodes, wire
from graders.exam.wire import WireError

_DTYPE = re.compile(r"^[<>|=]?[a-zA-Z]\w{0,30}(\[\w{1,4}\])?$")
_EXTENDED = {
    name for name in dir(ml_dtypes) if name.startswith(("bfloat16", "float8", "int4", "uint4", "int2", "uint2"))
}
_SINGLETONS: dict[str, Any] = {"Ellipsis": ..., "NotImplemented": NotImplemented}
# Classes that both processes have and that mean the same in both.
_CLASSES: dict[str, Any] = {
    **{c.__name__: c for c in (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, object, type(None))},
    **{name: c for name, c in vars(builtins).items() if isinstance(c, type) and issubclass(c, Exception)},
    **{f"numpy.{c.__name__}": c for c in {*np.sctypeDict.values(), np.ndarray, np.generic} if isinstance(c, type)},
    **{f"jax.numpy.{n}": getattr(jnp, n) for n in ("float16", "float32", "float64", "bfloat16", "bool_", "complex64",
       "complex128", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)))},
    **{f"jax.errors.{n}": getattr(jax.errors, n) for n in dir(jax.errors) if isinstance(getattr(jax.errors, n), type)},
    "jax.Array": jax.Array,
}  # fmt: skip
_CLASS_NAMES = {id(c): name for name, c in _CLASSES.items()}
# A module goes by name: the other side's own, since attributes of ours lead out of the examination.
_MODULES = {m.__name__: m for m in (math, np, np.linalg, np.random, jax, jnp, jnp.linalg, jax.lax, jax.nn, jax.random)}


# by the name that JAX gives the dtype: to ask for it would make an array, which has no place while JAX traces
_KEY_IMPLS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


@functools.cache
def key_dtype(impl: str) -> Any:
    """The dtype of typed PRNG keys of an implementation."""
    return jax.eval_shape(lambda: jax.random.key(0, impl=impl)).dtype


def dtype_name(dtype: Any) -> str:
    """The name under which a dtype crosses, or raise `WireError` when it cannot."""
    if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        if str(dtype) not in _KEY_IMPLS:
            raise WireError(f"a PRNG key of dtype {dtype} cannot cross")
        return f"key:{_KEY_IMPLS[str(dtype)]}"
    plain: np.dtype[Any] = np.dtype(dtype)
    if plain.name in _EXTENDED:
        return str(plain.name)
    if plain.kind not in "biufcmMSU" or plain.hasobject:
        raise WireError(f"an array of dtype {plain} cannot cross")
    return str(plain.str)


def dtype_named(name: str) -> np.dtype[Any]:
    """The dtype of that name; `WireError` for anything but plain numbers, strings and times."""
    if name in _EXTENDED:
        return np.dtype(str(name))
    dtype: np.dtype[Any] | None
    try:
        dtype = np.dtype(name) if _DTYPE.match(name) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.kind not in "biufcmMSU" or dtype.itemsize > 2**16:
        raise WireError(f"an array of dtype {name!r} cannot cross")
    return dtype


def array_node(value: Any, key: int = 0) -> nodes.Array:
    """The node of a NumPy array, NumPy scalar or JAX array that is not a key array."""
    if isinstance(value, jax.Array):
        data = np.asarray(value)
        return nodes.Array("jax", dtype_name(data.dtype), list(data.shape), data.tobytes(), bool(value.weak_type), 0)
    plain = np.asarray(value)
    return nodes.Array(
        "scalar" if isinstance(value, np.generic) else "numpy",
        dtype_name(plain.dtype),
        list(plain.shape),
        plain.tobytes(),
        False,
        key,
    )


def array_value(node: nodes.Array) -> Any:
    """Rebuild an array of the shape and dtype that the node names, with memory of its own."""
    dtype = dtype_named(node.dtype)
    size = dtype.itemsize
    for extent in node.shape:
        size *= extent
    if size != len(node.data):
        raise WireError(f"an array of shape {node.shape} and dtype {dtype} has {size} bytes, not {len(node.data)}")
    if dtype.kind == "U" and (np.frombuffer(node.data, dtype.str[0] + "u4") > sys.maxunicode).any():
        raise WireError("an array of text with a character that does not exist")
    plain = np.frombuffer(node.data, dtype=dtype).reshape(node.shape).copy()
    if node.kind == "numpy":
        return plain
    if node.kind == "scalar":
        if plain.ndim:
            raise WireError("a NumPy scalar has no axes")
        return plain[()]
    return _jax_array(plain, node.weak)


def _jax_array(plain: np.ndarray[Any, Any], weak: bool) -> jax.Array:
    if plain.dtype.kind in "mMSU":
        raise WireError(f"JAX has no dtype {plain.dtype}")
    with jax.enable_x64(np.zeros((), plain.dtype).real.dtype.itemsize > 4):
        if weak and plain.dtype.kind in "ifc":
            # jnp.full with a Python number is weakly typed, and .at[].set keeps that: the public way to a weak array.
            weakly: jax.Array = jnp.full(plain.shape, {"i": 0, "f": 0.0, "c": 0j}[plain.dtype.kind]).at[...].set(plain)
            return weakly
        return jnp.asarray(plain)


def exact_text(value: Decimal | Fraction) -> str:
    """A decimal or fraction as text, or raise `WireError` when it is too long to cross."""
    long = isinstance(value, Fraction) and max(abs(value.numerator), value.denominator).bit_length() > 6000
    text = "" if long else str(value)
    if long or len(text) > 4000:
        raise WireError("a decimal or fraction of thousands of digits cannot cross")
    return text


def exact_value(node: nodes.Exact) -> Decimal | Fraction:
    """The decimal or fraction that a text stands for."""
    try:
        return Decimal(node.text) if node.kind == "Decimal" else Fraction(*map(int, node.text.split("/")))
    except (ArithmeticError, TypeError) as error:
        raise WireError(f"not a {node.kind}: {type(error).__name__}") from None


def key_node(value: jax.Array, data: int) -> nodes.PRNGKey:
    """The node of a typed PRNG key array; `data` is the heap index of its key data."""
    return nodes.PRNGKey(str(jax.random.key_impl(value)), data)


def key_value(node: nodes.PRNGKey, data: Any) -> jax.Array:
    """Rebuild a typed PRNG key array from its implementation's name and its key data."""
    if not isinstance(data, jax.Array):
        raise WireError("the data of a PRNG key are a JAX array")
    try:
        key: jax.Array = jax.random.wrap_key_data(data, impl=node.impl)
    except Exception as error:
        raise WireError(f"not a PRNG key: {error}") from None
    return key


def symbol_node(value: Any) -> nodes.Symbol | None:
    """The node of a dtype, device, singleton or well-known class; None for anything else."""
    if issubclass(type(value), np.dtype):
        return nodes.Symbol("dtype", dtype_name(value))
    if issubclass(type(value), jax.Device):
        return nodes.Symbol("device", f"{value.platform}:{value.id}")
    if id(value) in _CLASS_NAMES:
        return nodes.Symbol("class", _CLASS_NAMES[id(value)])
    if type(value) is ModuleType and _MODULES.get(value.__name__) is value:
        return nodes.Symbol("module", value.__name__)
    name = next((n for n, one in _SINGLETONS.items() if one is value), None)
    return nodes.Symbol("singleton", name) if name else None


def symbol_value(node: nodes.Symbol) -> Any:
    """What a symbol stands for in this process. Raises `WireError` for a name that is not on our lists."""
    if node.kind == "dtype":
        return dtype_named(node.name)
    if node.kind == "device":
        return _device(node.name)
    table = {"class": _CLASSES, "module": _MODULES, "singleton": _SINGLETONS}[node.kind]
    if node.name not in table:
        raise WireError(f"no {node.kind} is called {node.name!r} here")
    return table[node.name]


def _device(name: str) -> jax.Device:
    found = next((d for d in jax.devices() if f"{d.platform}:{d.id}" == name), None)
    if found is None:
        raise WireError(f"there is no device {name!r} here")
    return found


def exception_names(error: BaseException) -> list[str]:
    """The qualified names of an exception's class and bases, nearest first."""
    return [f"{c.__module__}.{c.__qualname__}"[:200] for c in type(error).__mro__ if issubclass(c, BaseException)][:50]


_EXCEPTIONS: dict[str, type[Exception]] = {
    **{f"builtins.{n}": c for n, c in vars(builtins).items() if isinstance(c, type) and issubclass(c, Exception)},
    **{f"{c.__module__}.{c.__qualname__}": c for c in (getattr(jax.errors, n) for n in dir(jax.errors))
       if isinstance(c, type) and issubclass(c, Exception)},
    **{f"{c.__module__}.{c.__qualname__}": c for c in (*vars(np.exceptions).values(), np.linalg.LinAlgError)
       if isinstance(c, type) and issubclass(c, Exception)},
}  # fmt: skip
# Raised by a function under `map`, these would end the loop of the test without a word (PEP 479 has the same reason).
for _ending in ("StopIteration", "StopAsyncIteration"):
    del _EXCEPTIONS[f"builtins.{_ending}"]


class CandidateError(Exception):
    """Student code raised something that is not an ordinary exception, such as SystemExit."""


def exception_value(node: wire.Raised) -> Exception:
    """An exception of the nearest class that this process knows, with the message that came along."""
    found = next((_EXCEPTIONS[name] for name in node.classes if name in _EXCEPTIONS), CandidateError)
    own = node.classes[0].rpartition(".")[2] if node.classes else "an exception"
    message = node.message if found.__name__ == own else f"{own}: {node.message}"
    if found is KeyError:
        return KeyError(_key(message))
    if not found.__module__.startswith("jax"):
        try:
            return found(message)
        except TypeError:  # UnicodeDecodeError and the like are built from parts that did not cross
            return ValueError(f"{own}: {node.message}")
    error = found.__new__(found)  # the constructors of JAX's errors want a tracer
    Exception.__init__(error, message)
    return error


def _key(message: str) -> Any:
    """The key of a KeyError, whose text is the repr of it."""
    try:
        return ast.literal_eval(message)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return message
