"""The heap of one wire message to objects of this process.

Comes in: a `wire.Message` that msgspec has checked. Goes out: built-in, NumPy and JAX values made here from bytes, and
views of what stayed on the other side; or `WireError`. Must not: call anything that the message names.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from graders.exam import nodes, values, views, wire
from graders.exam.tables import Hole, Tables, refill
from graders.exam.wire import WireError

_CONTAINERS: dict[str, type] = {
    "list": list, "deque": collections.deque, "set": set, "dict": dict, "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict, "defaultdict": collections.defaultdict,
}  # fmt: skip
_FROZEN: dict[str, type] = {"tuple": tuple, "frozenset": frozenset}


class Decoder:
    """Reads the heap of one message."""

    def __init__(self, tables: Tables, message: wire.Message) -> None:
        self._tables = tables
        self._heap = message.heap
        self._values: dict[int, Any] = {}
        self._open: set[int] = set()
        self._unfolded: dict[int, int] = {}
        for key in message.gone:
            tables.forget(key)
        for index in message.changes:
            self._guarded(self._change, index)

    def value(self, index: int) -> Any:
        """The object at a heap index. Raises `WireError` for whatever does not hold together."""
        if index in self._values:
            return self._values[index]
        if not 0 <= index < len(self._heap) or index in self._open:
            raise WireError("a value that points nowhere or contains itself")
        self._open.add(index)
        found = self._guarded(self._build, self._heap[index], index)
        self._open.discard(index)
        self._values[index] = found
        return found

    def _guarded(self, build: Callable[..., Any], *args: Any) -> Any:
        try:
            return build(*args)
        except (RecursionError, TypeError, ValueError, OverflowError, MemoryError) as error:
            raise WireError(f"a value that cannot be rebuilt: {type(error).__name__}: {str(error)[:200]}") from None

    def _build(self, node: nodes.Value, index: int) -> Any:
        if not isinstance(node, nodes.Node):
            return node
        return _BUILDERS[type(node)](self, node, index)

    def _items(self, indices: list[int]) -> list[Any]:
        return [self.value(index) for index in indices]

    def _hashed(self, indices: list[int], index: int) -> list[Any]:
        """The items of something that hashes them, unless that would take too long."""
        items = self._items(indices)
        self._unfolded[index] = 1 + sum(self._unfolded.get(one, 1) for one in indices)
        if self._unfolded[index] > nodes.MAX_UNFOLDED:
            raise WireError(f"a value that unfolds to more than {nodes.MAX_UNFOLDED:,} parts")
        return items

    def long(self, number: Any, digits: int, index: int) -> Any:
        """A number that takes the longer to hash the longer it is."""
        self._unfolded[index] = 1 + digits // nodes.DIGITS_A_PART
        return number

    def _keep(self, key: int, container: Any, index: int) -> Any:
        self._values[index] = container  # before its items, which may contain it
        if key in self._tables.shared:
            raise WireError("a container that is there already")
        return container

    def _sequence(self, node: nodes.Sequence, index: int) -> Any:
        if node.kind in _FROZEN:
            return _FROZEN[node.kind](self._hashed(node.items, index))
        container = self._keep(node.key, _CONTAINERS[node.kind](), index)
        _fill(container, self._contents(node, index))
        self._tables.share(node.key, container)
        return container

    def _contents(self, node: nodes.Sequence, index: int) -> list[Any]:
        return self._hashed(node.items, index) if node.kind == "set" else self._items(node.items)

    def _pairs(self, node: nodes.Mapping, index: int) -> list[tuple[Any, Any]]:
        return list(zip(self._hashed(node.keys, index), self._items(node.values), strict=True))

    def _mapping(self, node: nodes.Mapping, index: int) -> Any:
        container = self._keep(node.key, _CONTAINERS[node.kind](), index)
        refill(container, self._pairs(node, index))
        self._tables.share(node.key, container)
        return container

    def _array(self, node: nodes.Array, index: int) -> Any:
        found = values.array_value(node)
        if node.kind == "numpy":
            self._keep(node.key, found, index)
            self._tables.share(node.key, found)
        return found

    def _same(self, node: nodes.Same, _: int) -> Any:
        if node.key not in self._tables.shared:
            raise WireError("a container that never crossed")
        return self._tables.shared[node.key]

    def _ref(self, node: nodes.Ref, _: int) -> Any:
        if node.id not in self._tables.views:
            self._tables.views[node.id] = self._tables.make_view(node)
        return self._tables.views[node.id]

    def _back(self, node: nodes.Back, _: int) -> Any:
        if node.id not in self._tables.objects:
            raise WireError("an object that was never handed out")
        return self._tables.objects[node.id]

    def _named_tuple(self, node: nodes.NamedTuple, index: int) -> Any:
        if len(node.fields) != len(node.items):
            raise WireError("a named tuple whose fields and items differ in number")
        return _named_tuple_class(_identifier(node.name), tuple(node.fields))(*self._hashed(node.items, index))

    def _data_class(self, node: nodes.DataClass, index: int) -> Any:
        view = self._ref(nodes.Ref(node.ref, node.name, node.callable), 0)
        made = self._keep(node.key, views.with_fields(view, _identifier(node.name), node.fields), index)
        self._set_fields(made, node)
        self._tables.share(node.key, made)
        return made

    def _set_fields(self, container: Any, node: nodes.DataClass) -> None:
        known = {field.name for field in dataclasses.fields(container)}
        for name, value in zip(node.fields, self._items(node.items), strict=True):
            if name in known:
                object.__setattr__(container, name, value)

    def _change(self, index: int) -> None:
        node = self._heap[index] if index < len(self._heap) else None
        if not isinstance(node, _MUTABLE) or node.key not in self._tables.shared:
            raise WireError("a change of something that never crossed")
        container = self._values[index] = self._tables.shared[node.key]
        if isinstance(node, nodes.Array) and isinstance(container, np.ndarray):
            fresh = values.array_value(node)
            if (container.shape, container.dtype) != (np.shape(fresh), fresh.dtype):
                raise WireError("an array that changed its shape or dtype")
            container[...] = fresh
        elif isinstance(node, nodes.DataClass) and dataclasses.is_dataclass(container):
            self._set_fields(container, node)
        elif isinstance(node, nodes.Mapping) and isinstance(container, dict):
            refill(container, self._pairs(node, index))
        elif isinstance(node, nodes.Sequence) and isinstance(container, (list, set, collections.deque)):
            _fill(container, self._contents(node, index))
        else:
            raise WireError("a change from one kind of container to another")
        self._tables.settle(node.key)


_MUTABLE = (nodes.Sequence, nodes.Mapping, nodes.Array, nodes.DataClass)


def _fill(container: Any, items: list[Any]) -> None:
    container.clear()
    if isinstance(container, set):
        container.update(items)
    else:
        container.extend(items)


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "Record"


_classes: dict[tuple[str, tuple[str, ...]], Any] = {}


def _named_tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    if (name, fields) not in _classes:
        if len(_classes) > 1000 or len(fields) > 1000:
            raise WireError("too many kinds of named tuple")
        _classes[name, fields] = collections.namedtuple(name, fields, rename=True)
    return _classes[name, fields]


_BUILDERS: dict[type, Callable[[Decoder, Any, int], Any]] = {
    nodes.BigInt: lambda d, n, index: d.long(int(n.digits, 16), len(n.digits), index),
    nodes.Exact: lambda d, n, index: d.long(values.exact_value(n), len(n.text), index),
    nodes.Surrogates: lambda d, n, _: n.data.decode("utf-16-le", "surrogatepass"),
    nodes.Bytes: lambda d, n, _: n.data,
    nodes.Complex: lambda d, n, _: complex(n.real, n.imag),
    nodes.Sequence: Decoder._sequence,
    nodes.Mapping: Decoder._mapping,
    nodes.NamedTuple: Decoder._named_tuple,
    nodes.DataClass: Decoder._data_class,
    nodes.Array: Decoder._array,
    nodes.PRNGKey: lambda d, n, _: values.key_value(n, d.value(n.data)),
    nodes.Symbol: lambda d, n, _: values.symbol_value(n),
    nodes.Span: lambda d, n, _: (slice if n.kind == "slice" else range)(
        d.value(n.start), d.value(n.stop), d.value(n.step)
    ),
    nodes.Ref: Decoder._ref,
    nodes.Back: Decoder._back,
    nodes.Same: Decoder._same,
    nodes.Hole: lambda d, n, _: Hole(n.index),
}
