"""What one side sees of an object that lives on the other side.

Comes in: a reference from the wire. Goes out: a `View`, which passes call, attribute, item, length, iteration and `in` on.
Must not: pass on a comparison or any conversion that Python, NumPy or JAX would ask an object for; a view is equal to
itself and to nothing else.
"""

from __future__ import annotations

import dataclasses
import keyword
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax

from graders.exam import nodes, transforms, wire
from graders.exam.tables import flatten

if TYPE_CHECKING:
    from graders.exam.peer import Peer

_PLAIN_NAMES = {"__name__", "__doc__", "__qualname__", "__module__"}

OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda target, /, *args, **kwargs: target(*args, **kwargs),
    "attr": getattr,
    "setattr": setattr,
    "getitem": lambda target, item: target[item],
    "setitem": lambda target, item, value: target.__setitem__(item, value),
    "delitem": lambda target, item: target.__delitem__(item),
    "len": len,
    "iter": iter,
    "next": lambda target: _next(target),
    "contains": lambda target, item: item in target,
    "bool": bool,
    "isinstance": lambda target, value: isinstance(value, target),
}


def _next(iterator: Iterator[Any]) -> tuple[Any, ...]:
    """The next item in a tuple of one, or an empty tuple at the end: StopIteration must not cross a generator."""
    try:
        return (next(iterator),)
    except StopIteration:
        return ()


class View:
    """An object of the other side."""

    __slots__ = ("__weakref__", "_graders_id", "_graders_kind", "_graders_peer")

    def __init__(self, peer: Peer, identity: int, kind: str) -> None:
        object.__setattr__(self, "_graders_peer", peer)
        object.__setattr__(self, "_graders_id", identity)
        object.__setattr__(self, "_graders_kind", kind)

    def __repr__(self) -> str:
        return f"<view of an object of type {self._graders_kind}>"

    def _ask(self, op: str, /, *args: Any, **kwargs: Any) -> Any:
        return self._graders_peer.ask(op, self._graders_id, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_graders_") or (name.startswith("__") and name not in _PLAIN_NAMES):
            raise AttributeError(name)
        if name in _PLAIN_NAMES:
            return self._graders_peer.plain_name(self._graders_id, name)
        return self._ask("attr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("setattr", name, value)

    def __getitem__(self, item: Any) -> Any:
        return self._ask("getitem", item)

    def __setitem__(self, item: Any, value: Any) -> None:
        self._ask("setitem", item, value)

    def __delitem__(self, item: Any) -> None:
        self._ask("delitem", item)

    def __len__(self) -> int:
        return int(self._ask("len"))

    def __iter__(self) -> Iterator[Any]:
        iterator = self._ask("iter")
        if not isinstance(iterator, View):
            raise TypeError(f"{self!r} cannot be iterated over")
        while True:
            item = iterator._ask("next")
            if not item:
                return
            yield item[0]

    def __next__(self) -> Any:
        item = self._ask("next")
        if not item:
            raise StopIteration
        return item[0]

    def __contains__(self, item: Any) -> bool:
        return self._ask("contains", item) is True

    def __bool__(self) -> bool:
        return self._ask("bool") is True

    def __instancecheck__(self, value: Any) -> bool:
        return self._ask("isinstance", value) is True


class FunctionView(View):
    """A callable of the other side. With traced arguments it becomes a program that the other side exports."""

    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(leaf, jax.core.Tracer) for leaf in flatten((args, kwargs))[0]):
            return transforms.call(self._graders_peer, self._graders_id, args, kwargs)
        return self._ask("call", *args, **kwargs)

    def __bool__(self) -> bool:
        return True

    def _program_operations(self, args: tuple[Any, ...]) -> dict[str, int]:
        return transforms.operations(self._graders_peer, self._graders_id, args)


def make(peer: Peer, ref: nodes.Ref) -> View:
    """The view for a reference."""
    return (FunctionView if ref.callable else View)(peer, ref.id, ref.kind)


def id_at(peer: Peer, value: Any) -> int | None:
    """The id of a view of this very peer's other side; None for everything else."""
    if isinstance(value, View) and value._graders_peer is peer:
        return int(value._graders_id)
    return None


_data_classes: dict[tuple[type, str, tuple[str, ...]], type] = {}


def with_fields(view: View, name: str, fields: Sequence[str]) -> View:
    """A view that is a dataclass of this process; its fields are by value, and all else is asked of the object itself.

    Fields that no dataclass here may have, such as private ones, are asked for as well.
    """
    allowed = tuple(one for one in fields if one.isidentifier() and not keyword.iskeyword(one) and one[0] != "_")
    shape = (type(view), name, allowed)
    if shape not in _data_classes:
        if len(_data_classes) > 1000:
            raise wire.WireError("too many kinds of dataclass")
        namespace = {"__setattr__": object.__setattr__, "__bool__": lambda self: True} | dict.fromkeys(allowed)
        _data_classes[shape] = dataclasses.make_dataclass(
            name, allowed, bases=(type(view),), init=False, unsafe_hash=True, namespace=namespace
        )
    made = _data_classes[shape]
    return made(view._graders_peer, view._graders_id, view._graders_kind)  # type: ignore[no-any-return]
