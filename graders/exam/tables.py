"""What has crossed one channel, as one side remembers it: objects by id, and mutable containers kept in step by key.

Comes in: objects of this process. Goes out: their ids and keys, and which containers changed since the other side last
saw them. Must not: read the channel, or decide who may ask for what.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from graders.exam import nodes

_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_PIECE = 2**19  # bytes that stay in a processor's cache
_PROBE: dict[int, list[None]] = {0: []}
_HELD_BY_US = sys.getrefcount(_PROBE[0])  # what Python counts for a value that only a dictionary holds


@dataclasses.dataclass(frozen=True)
class Hole:
    """The place of the traced array number `index` in a call or a result."""

    index: int


def fill(template: Any, arrays: Sequence[Any]) -> Any:
    """A structure with the array of that number in the place of every Hole."""
    leaves, tree = flatten(template)
    return jax.tree.unflatten(tree, [arrays[leaf.index] if isinstance(leaf, Hole) else leaf for leaf in leaves])


def flatten(value: Any) -> tuple[list[Any], Any]:
    """Leaves and structure; a dictionary whose keys JAX cannot sort, which no transformation may go into, is a leaf."""
    return jax.tree.flatten(value, is_leaf=_is_leaf)


def _is_leaf(value: Any) -> bool:
    if isinstance(value, Iterator):  # newer JAX wants this said
        return True
    if type(value) not in (dict, defaultdict):
        return False
    try:
        sorted(value)
    except TypeError:
        return True
    return False


class Tables:
    """What has crossed one channel, as one side remembers it.

    `first_key` keeps the two sides from giving one key to two containers: one side counts even, the other odd.
    """

    def __init__(self, first_key: int, view: Callable[[nodes.Ref], Any], is_view: Callable[[Any], int | None]) -> None:
        self.make_view = view
        self.view_id = is_view
        self.objects: dict[int, Any] = {}
        self.views: dict[int, Any] = {}
        self.shared: dict[int, Any] = {}
        self._object_ids: dict[int, int] = {}
        self._keys: dict[int, int] = {}
        self._snapshots: dict[int, Any] = {}
        self._before: dict[int, Any] = {}
        self.gone: list[int] = []
        self._next_key = first_key

    def begin(self) -> None:
        """A message is being made; until it is on its way, `undo` takes back what it would have told."""
        self._before = {}

    def undo(self) -> None:
        """The message was not sent: the other side knows what it knew before."""
        for key, snapshot in self._before.items():
            if snapshot is None:
                self.forget(key)
            else:
                self._snapshots[key] = snapshot
        self._before = {}

    def prune(self) -> None:
        """Forget containers that nobody here holds any more; `gone` collects their keys until the other side is told.

        What the other side still has of one is from then on a container of its own. Without this a test that passes a
        fresh list in each of 2000 calls spends half a minute looking for changes in all of them.
        """
        for key in [key for key in self.shared if sys.getrefcount(self.shared[key]) <= _HELD_BY_US]:
            self.forget(key)
            self.gone.append(key)

    def forget(self, key: int) -> None:
        """From now on this container is not shared."""
        if key in self.shared:
            self._keys.pop(id(self.shared.pop(key)), None)
            self._snapshots.pop(key, None)

    def id_of(self, value: Any) -> int:
        """The id under which `value` is known to the other side; it is kept alive from now on."""
        found = self._object_ids.get(id(value))
        if found is None:
            found = self._object_ids[id(value)] = len(self.objects) + 1
            self.objects[found] = value
        return found

    def key_of(self, container: Any) -> tuple[int, bool]:
        """The key of a mutable container, and whether the other side knows it already."""
        key = self._keys.get(id(container))
        if key is not None and not self._reshaped(key):
            return key, True
        key, self._next_key = self._next_key, self._next_key + 2
        self.share(key, container)
        return key, False

    def share(self, key: int, container: Any) -> None:
        """Remember a container; its present contents count as known to both sides."""
        self.shared[key] = container
        self._keys[id(container)] = key
        self.settle(key)

    def settle(self, key: int) -> None:
        """Take the present contents of a shared container as known to both sides."""
        self._before.setdefault(key, self._snapshots.get(key))
        self._snapshots[key] = self._snapshot(self.shared[key])

    def changed(self) -> list[int]:
        """Keys of the shared containers whose contents are not what the other side last saw."""
        return [key for key in self.shared if not self._reshaped(key) and not self._as_known(key)]

    def _as_known(self, key: int) -> bool:
        one, known = self.shared[key], self._snapshots[key]
        if isinstance(one, np.ndarray):
            return _same_bytes(one, known[1])
        return _alike(known, self._snapshot(one))

    def fields_of(self, value: Any) -> dict[str, Any]:
        """The fields of a dataclass that are set; of a view of one, those that crossed."""
        names = [field.name for field in dataclasses.fields(value)]
        if self.view_id(value) is not None:
            return {name: vars(value)[name] for name in names if name in vars(value)}
        return {name: getattr(value, name) for name in names if hasattr(value, name)}

    def _snapshot(self, container: Any) -> list[Any]:
        if isinstance(container, np.ndarray):
            return [_form(container), container.tobytes()]
        if dataclasses.is_dataclass(type(container)):
            container = self.fields_of(container)
        if isinstance(container, dict):
            return [item for pair in items_of(container) for item in pair]
        return list(container)

    def _reshaped(self, key: int) -> bool:
        """An array that got another shape or dtype in place; to the other side it is another array from now on."""
        one = self.shared[key]
        return isinstance(one, np.ndarray) and _form(one) != self._snapshots[key][0]


def items_of(container: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """The items of a dict or one of its kinds; an OrderedDict has an order of its own, which dict does not see."""
    kind = OrderedDict if isinstance(container, OrderedDict) else dict
    return list(kind.items(container))


def refill(container: dict[Any, Any], items: list[tuple[Any, Any]]) -> None:
    """Replace the items, without what a subclass makes of it."""
    kind = OrderedDict if isinstance(container, OrderedDict) else dict
    kind.clear(container)
    for key, value in items:
        kind.__setitem__(container, key, value)


def _form(array: np.ndarray[Any, Any]) -> str:
    return f"{array.shape} {array.dtype.str}"


def _same_bytes(array: np.ndarray[Any, Any], known: bytes) -> bool:
    """Whether the bytes of an array are these; piece by piece, which takes a quarter of the time of one copy."""
    if not array.flags.c_contiguous:
        return array.tobytes() == known
    now, before = array.reshape(-1).view(np.uint8), np.frombuffer(known, np.uint8)
    pieces = range(0, len(before), _PIECE)
    return all(np.array_equal(now[start : start + _PIECE], before[start : start + _PIECE]) for start in pieces)


def _alike(old: list[Any], new: list[Any]) -> bool:
    return len(old) == len(new) and all(a is b or _same_atom(a, b) for a, b in zip(old, new, strict=True))


def _same_atom(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or type(one) not in _ATOMS:
        return False
    return bool(one == other) if isinstance(one, (str, bytes, int)) else repr(one) == repr(other)  # NaN and -0.0
