"""Traced values that a cell leaves behind, noticed when it ends, so that what fails on one later is told at the right cell.

Comes in: the candidate's shell. Goes out: a note on the error, since of values from jax.vmap and jax.grad JAX does not say
where they were made. Must not: call a method of a student's object, or be more than advice.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from itertools import islice
from types import CodeType, TracebackType
from typing import Any

import jax

LEFT_BEHIND = "The value was left behind by <{}>."
_DEPTH = 2  # a list of an object that stands in the notebook's namespace
_MOST = 1000


class Leaks:
    """Names of a notebook that hold traced values, and after which cell they were first seen to."""

    def __init__(self, shell: Any) -> None:
        self._since: dict[str, str] = {}
        shell.set_custom_exc((jax.errors.UnexpectedTracerError,), self.tell)

    def look(self, namespace: dict[str, Any], cell: str) -> None:
        """A cell has ended."""
        holding = {name for name, value in namespace.items() if _holds(value, _DEPTH)}
        self._since = {name: self._since.get(name, cell) for name in holding}

    def tell(
        self,
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        """Show the error with a note that names the cell, if that is known."""
        used = {name for frame, _ in traceback.walk_tb(trace) for name in _names(frame.f_code)}
        cells = {cell for name, cell in self._since.items() if name in used} or set(self._since.values())
        if len(cells) == 1:
            error.add_note(LEFT_BEHIND.format(*cells))
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _names(code: CodeType) -> Iterator[str]:
    """The names that a piece of code reads, its functions included: JAX may find out after they have returned."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)


def _holds(value: Any, depth: int) -> bool:
    kind = type(value)
    if issubclass(kind, jax.core.Tracer):
        return True
    return depth > 0 and any(_holds(one, depth - 1) for one in islice(_parts(value, kind), _MOST))


def _parts(value: Any, kind: type) -> Iterable[Any]:
    if kind in (list, tuple, set):
        return list(value)
    if kind is dict:
        return list(value.values())
    try:
        return list(object.__getattribute__(value, "__dict__").values()) if kind.__module__ == "__main__" else ()
    except Exception:  # a metaclass of the student's can make even this raise
        return ()
