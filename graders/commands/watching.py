"""The command that stays: watch.

Comes in: parsed options. Goes out: a line for each submission. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from graders import config
from graders.commands.terminal import err, out, total

if TYPE_CHECKING:
    from graders.run.watch import Done


def watch(options: argparse.Namespace) -> int:
    """Collect, grade and return, until interrupted."""
    from graders.run.watch import Watch

    def tell(text: str) -> None:
        err.print(f"{_now()} {text}", markup=False)

    tell(f"Watching {options.assignment}. End it with Ctrl-C; it may be killed at any moment and started again.")
    try:
        Watch(config.load(options.course), options.assignment, options.jobs, tell, _print).run()
    except KeyboardInterrupt:
        tell("Ended. What was stored is whole, and the next start goes on from there.")
    return 0


def _print(done: Done) -> None:
    page = done.why or "The feedback is in the exchange."
    out.print(f"{_now()} {done.report.student}: {total(done.report)}. {page}", markup=False)
    out.file.flush()


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
