"""The floor: a bare IPython, forked from a warm process, runs the cells of a notebook, and nothing else happens.

Comes in: on the command line a folder for compiled programs, how many run at once, and notebooks with their tests in them. Goes out: on
standard output one JSON line, how many cells were run. Must not: have a kernel, walls, limits, an examiner or a report.

The process is as warm as our zygote, and every program is in its cache, also those that answers define: less than this cannot be had.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import jax
import numpy.testing  # noqa: F401  (loaded before the fork, as all that follows)
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from graders import checks  # noqa: F401
from graders.kernels.warm import warm

_NO_HISTORY = Config({"HistoryManager": {"enabled": False}})


def main(arguments: list[str]) -> None:
    """Run every notebook in a fork of its own."""
    cache, at_once, *notebooks = arguments
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    warm()
    cells = [_code(Path(one)) for one in notebooks]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, code in enumerate(cells):
            if number >= int(at_once):
                os.wait()
            if os.fork() == 0:
                _run(code)
        for _ in cells[: int(at_once)]:
            os.wait()
    sys.stdout.write(json.dumps({"cells": sum(map(len, cells))}) + "\n")


def _code(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def _run(cells: list[str]) -> None:
    try:
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        shell = InteractiveShell.instance(config=_NO_HISTORY)
        for cell in cells:
            shell.run_cell(cell)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
