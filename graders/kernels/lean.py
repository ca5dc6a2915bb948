"""What ipykernel and IPython do for a person at a browser, and what costs time where nobody sits: left out, or done once.

Comes in: a kernel application that is about to start, its shell. Goes out: the same, lighter. Must not: change what a cell
computes or shows.

Each figure is a part of the CPU time of a candidate that runs the lesson performance-02.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ClassVar
from unittest.mock import patch

from ipykernel import ipkernel


class _NoModules:
    """`sys`, where no module is loaded."""

    modules: ClassVar[dict[str, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


def unaware_of_modules() -> AbstractContextManager[Any]:
    """While it lasts ipykernel sees no modules: it lists their files for its debugger, and so copies the memory of each, 2 %."""
    return patch.object(ipkernel, "sys", _NoModules())


class NoShellThread:
    """What stands where ipykernel has a thread that carries messages to the main one: two hops less for each cell, 1 %."""

    parent_thread = threading.main_thread()

    def __bool__(self) -> bool:
        return False


def silence(kernel: Any) -> None:
    """Tell a client that waits for "idle" neither that a cell has begun nor what it says, since it sent that cell: 1 %."""
    tell = kernel._publish_status
    kernel._publish_status = lambda status, *about, **more: tell(status, *about, **more) if status != "busy" else None
    kernel._publish_execute_input = lambda *_: None


def tune(shell: Any) -> None:
    """Ask once what is asked twice, and not for what follows already."""
    shell.transform_cell = _remembered_once(shell.transform_cell)
    shell.should_run_async = _if_it_may(shell.should_run_async)
    # each traceback is formatted once more for a history that nobody reads, 2 %
    shell._format_exception_for_storage = lambda *_, **__: {}


def _remembered_once(question: Callable[[str], str]) -> Callable[[str], str]:
    """A question about the text of a cell, which ipykernel asks and then IPython, 2 %."""
    answers: dict[str, str] = {}

    def ask(cell: str) -> str:
        if cell in answers:
            return answers.pop(cell)
        answers.clear()
        answers[cell] = question(cell)
        return answers[cell]

    return ask


def _if_it_may(question: Callable[..., bool]) -> Callable[..., bool]:
    """Whether a cell is to run as a coroutine, which IPython finds out by compiling it, and twice, 3 %."""
    return lambda cell, **options: ("await" in cell or "async" in cell) and question(cell, **options)
