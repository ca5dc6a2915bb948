"""What has crossed one channel, as one side remembers it: objects by id, and mutable containers kept in step by key.

Comes in: objects of this process. Goes out: their ids and keys, and which containers changed since the other side last
saw them. Must not: read the channel, or decide who may ask for what.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from graders.exam import nodes

_ATOMS = (type(None), bool, int, float, complex, str, bytes)


@dataclasses.dataclass(frozen=True)
class Hole:
    """The place of the traced array number `index` in a call or a result."""

    index: int


def fill(template: Any, arrays: Sequence[Any]) -> Any:
    """A structure with the array of that number in the place of every Hole."""
    return jax.tree.map(lambda leaf: arrays[leaf.index] if isinstance(leaf, Hole) else leaf, template)


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
        self._next_key = first_key

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
        if key is not None:
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
        self._snapshots[key] = _snapshot(self.shared[key])

    def changed(self) -> list[int]:
        """Keys of the shared containers whose contents are not what the other side last saw."""
        return [key for key, one in self.shared.items() if not _alike(self._snapshots[key], _snapshot(one))]


def _snapshot(container: Any) -> list[Any]:
    if isinstance(container, np.ndarray):
        return [container.shape, container.tobytes()]
    if isinstance(container, dict):
        return [item for pair in dict.items(container) for item in pair]
    return list(container)


def _alike(old: list[Any], new: list[Any]) -> bool:
    return len(old) == len(new) and all(
        a is b or (type(a) is type(b) and isinstance(a, _ATOMS) and repr(a) == repr(b))
        for a, b in zip(old, new, strict=True)
    )
