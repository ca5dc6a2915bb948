"""Objects of this process to the heap of one wire message.

Comes in: any object. Goes out: nodes of `graders.exam.wire`. Must not: read the channel, or decide who may ask for what.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from graders.exam import nodes, values
from graders.exam.tables import Hole, Tables, items_of
from graders.exam.wire import WireError

_DICTS = {
    "Counter": collections.Counter, "OrderedDict": collections.OrderedDict, "defaultdict": collections.defaultdict, "dict": dict
}  # fmt: skip


class Encoder:
    """Builds the heap of one message."""

    def __init__(self, tables: Tables) -> None:
        self.heap: list[nodes.Value] = []
        self._tables = tables
        self._seen: dict[int, int] = {}
        self._depth = 0
        self._unfolded: dict[int, int] = {}
        self._alive: list[Any] = []  # an id() is only unique while its object lives
        tables.begin()

    def add(self, value: Any) -> int:
        """Put a value on the heap and return its index. Raises `WireError` when it is too much."""
        found = self._seen.get(id(value))
        if found is not None:
            return found
        if len(self.heap) >= nodes.MAX_NODES:
            raise WireError(f"a value of more than {nodes.MAX_NODES:,} parts is too large to cross")
        if self._depth >= nodes.MAX_DEPTH:
            raise WireError(f"a value nested more than {nodes.MAX_DEPTH} deep cannot cross")
        index = len(self.heap)
        self.heap.append(None)
        self._seen[id(value)] = index
        self._alive.append(value)
        self._depth += 1
        try:
            self.heap[index] = self._node(value)
        finally:
            self._depth -= 1
        return index

    def changes(self) -> list[int]:
        """Put every shared container that has changed on the heap, with its present contents."""
        indices = []
        for key in self._tables.changed():
            container = self._tables.shared[key]
            index = len(self.heap)
            self.heap.append(None)
            self._tables.settle(key)
            self.heap[index] = self._contents(container, key)
            indices.append(index)
        return indices

    def _node(self, value: Any) -> nodes.Value:
        view = self._tables.view_id(value)
        if view is not None:
            return nodes.Back(view)
        if isinstance(value, Hole):
            return nodes.Hole(value.index)
        if isinstance(value, jax.core.Tracer):
            return nodes.Ref(self._tables.id_of(value), "leaked JAX tracer", False)
        kind = type(value)  # isinstance would believe a `__class__` that lies
        if issubclass(kind, (np.generic, np.ndarray, jax.Array)):
            return self._array(value)
        if issubclass(kind, (bool, int, float, complex, str, bytes, type(None))):
            return _atom(value)
        if kind in (Decimal, Fraction):
            return nodes.Exact("Decimal" if kind is Decimal else "Fraction", values.exact_text(value))
        if issubclass(kind, (list, tuple, dict, set, frozenset, collections.deque)):
            return self._container(value)
        if issubclass(kind, (slice, range)):
            return nodes.Span(
                "slice" if kind is slice else "range", self.add(value.start), self.add(value.stop), self.add(value.step)
            )
        try:
            found: nodes.Value = values.symbol_node(value)
            if found is None and dataclasses.is_dataclass(kind):
                found = self._container(value)
        except Exception:  # a structured dtype, or a field whose reading raises
            found = None
        return found or self._ref(value)

    def _ref(self, value: Any) -> nodes.Ref:
        return nodes.Ref(self._tables.id_of(value), type(value).__name__[:200], callable(value))

    def _array(self, value: Any) -> nodes.Value:
        try:
            return self._array_by_value(value)
        except (WireError, RuntimeError):  # a dtype that cannot cross, or a donated array whose data is gone
            return self._ref(value)

    def _array_by_value(self, value: Any) -> nodes.Value:
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            return values.key_node(value, self.add(jax.random.key_data(value)))
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject or (value.dtype.kind == "V" and value.dtype.fields is not None):
                return self._ref(value)
            values.dtype_name(value.dtype)
            key, known = self._tables.key_of(value)
            return nodes.Same(key) if known else values.array_node(value, key)
        return values.array_node(value)

    def _container(self, value: Any) -> nodes.Value:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = [str(name) for name in value._fields]
            return nodes.NamedTuple(type(value).__name__[:200], fields, self._hashed(tuple.__iter__(value), value))
        if isinstance(value, (tuple, frozenset)):
            return nodes.Sequence("tuple" if isinstance(value, tuple) else "frozenset", self._hashed(value, value), 0)
        key, known = self._tables.key_of(value)
        return nodes.Same(key) if known else self._contents(value, key)

    def _hashed(self, items: Iterable[Any], holder: Any) -> list[int]:
        """Items that the receiver will hash, unless that would take it too long."""
        indices = [self.add(item) for item in items]
        unfolded = 1 + sum(self._unfolded.get(one) or _words(self.heap[one]) for one in indices)
        if unfolded > nodes.MAX_UNFOLDED:
            raise WireError(f"a value that unfolds to more than {nodes.MAX_UNFOLDED:,} parts is too large to cross")
        if id(holder) in self._seen:
            self._unfolded[self._seen[id(holder)]] = unfolded
        return indices

    def _contents(self, value: Any, key: int) -> nodes.Value:
        if isinstance(value, np.ndarray):
            return values.array_node(value, key)
        if dataclasses.is_dataclass(type(value)):
            return self._dataclass(value, key)
        if isinstance(value, dict):
            kind = next(name for name, one in _DICTS.items() if isinstance(value, one))
            pairs = items_of(value)
            keys = self._hashed([k for k, _ in pairs], value)
            return nodes.Mapping(kind, keys, [self.add(v) for _, v in pairs], key)  # type: ignore[arg-type]
        if isinstance(value, set):
            return nodes.Sequence("set", self._hashed(value, value), key)
        kind = "list" if isinstance(value, list) else "deque"
        return nodes.Sequence(kind, [self.add(item) for item in value], key)  # type: ignore[arg-type]

    def _dataclass(self, value: Any, key: int) -> nodes.Value:
        fields = self._tables.fields_of(value)
        items = [self.add(one) for one in fields.values()]
        name, identity = type(value).__name__[:200], self._tables.id_of(value)
        return nodes.DataClass(name, list(fields), items, identity, callable(value), key)


def _words(node: nodes.Value) -> int:
    """Parts that a value counts as which holds no others."""
    digits = node.digits if isinstance(node, nodes.BigInt) else node.text if isinstance(node, nodes.Exact) else ""
    return 1 + len(digits) // nodes.DIGITS_A_PART


def _atom(value: Any) -> nodes.Value:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        plain = int.__index__(value)
        if -(2**63) <= plain < 2**63:
            return plain
        if plain.bit_length() > 4 * (nodes.MAX_DIGITS - 3):
            raise WireError(f"an integer of more than {nodes.MAX_DIGITS:,} hexadecimal digits is too large to cross")
        return nodes.BigInt(hex(plain))
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return nodes.Complex(value.real, value.imag)
    if isinstance(value, bytes):
        return nodes.Bytes(bytes(value))
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return nodes.Surrogates(text.encode("utf-16-le", "surrogatepass"))
    return text
