"""The heap of one wire message to objects of this process.

Comes in: a `wire.Message` that msgspec has checked. Goes out: built-in, NumPy and JAX values made here from bytes, and
views of what stayed on the other side; or `WireError`. Must not: call anything that the message names.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

from graders.exam import nodes, values, wire
from graders.exam.tables import Hole, Tables
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
        for index in message.changes:
            self._change(index)

    def value(self, index: int) -> Any:
        """The object at a heap index. Raises `WireError` for whatever does not hold together."""
        if index in self._values:
            return self._values[index]
        if not 0 <= index < len(self._heap) or index in self._open:
            raise WireError("a value that points nowhere or contains itself")
        self._open.add(index)
        try:
            found = self._build(self._heap[index], index)
        except (RecursionError, TypeError, ValueError, OverflowError, MemoryError) as error:
            raise WireError(f"a value that cannot be rebuilt: {type(error).__name__}: {str(error)[:200]}") from None
        self._open.discard(index)
        self._values[index] = found
        return found

    def _build(self, node: nodes.Value, index: int) -> Any:
        if not isinstance(node, nodes.Node):
            return node
        return _BUILDERS[type(node)](self, node, index)

    def _items(self, indices: list[int]) -> list[Any]:
        return [self.value(index) for index in indices]

    def _keep(self, key: int, container: Any, index: int) -> Any:
        self._values[index] = container  # before its items, which may contain it
        if key in self._tables.shared:
            raise WireError("a container that is there already")
        return container

    def _sequence(self, node: nodes.Sequence, index: int) -> Any:
        if node.kind in _FROZEN:
            return _FROZEN[node.kind](self._items(node.items))
        container = self._keep(node.key, _CONTAINERS[node.kind](), index)
        _fill(container, self._items(node.items))
        self._tables.share(node.key, container)
        return container

    def _mapping(self, node: nodes.Mapping, index: int) -> Any:
        container = self._keep(node.key, _CONTAINERS[node.kind](), index)
        dict.update(container, zip(self._items(node.keys), self._items(node.values), strict=True))
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

    def _named_tuple(self, node: nodes.NamedTuple, _: int) -> Any:
        if len(node.fields) != len(node.items):
            raise WireError("a named tuple whose fields and items differ in number")
        return _named_tuple_class(_identifier(node.name), tuple(node.fields))(*self._items(node.items))

    def _data_class(self, node: nodes.DataClass, _: int) -> Any:
        view = self._ref(nodes.Ref(node.ref, node.name, False), 0)
        return type(view).with_fields(
            view, _identifier(node.name), dict(zip(node.fields, self._items(node.items), strict=True))
        )

    def _change(self, index: int) -> None:
        node = self._heap[index] if index < len(self._heap) else None
        if not isinstance(node, (nodes.Sequence, nodes.Mapping, nodes.Array)) or node.key not in self._tables.shared:
            raise WireError("a change of something that never crossed")
        container = self._tables.shared[node.key]
        self._values[index] = container
        if isinstance(node, nodes.Array):
            fresh = values.array_value(node)
            if not isinstance(container, np.ndarray) or container.shape != np.shape(fresh):
                raise WireError("an array that changed its shape")
            container[...] = fresh
        elif isinstance(node, nodes.Mapping):
            pairs = list(zip(self._items(node.keys), self._items(node.values), strict=True))
            _fill(container, pairs)
        else:
            _fill(container, self._items(node.items))
        self._tables.settle(node.key)


def _fill(container: Any, items: list[Any]) -> None:
    container.clear()
    if isinstance(container, dict):
        dict.update(container, items)
    elif isinstance(container, set):
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
    nodes.BigInt: lambda d, n, _: int(n.digits, 16),
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
