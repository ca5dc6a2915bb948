"""The hub of deploy/jupyterhub/ on a machine of its own, started as its systemd unit starts it.

Comes in: a machine, a course. Goes out: nothing; the hub answers at ADDRESS. Must not: set what the unit and the configuration set.
"""

from __future__ import annotations

import configparser
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from machine import ROOT, Machine

DEPLOY = ROOT / "deploy" / "jupyterhub"
ADDRESS = "http://127.0.0.1:8000"
_UP = "is now running at"
_LONGEST_S = 300  # where others work too


def unit(name: str) -> str:
    """A setting of the unit, for where this clone and its environment lie."""
    read = configparser.ConfigParser(interpolation=None)
    read.optionxform = str
    read.read(DEPLOY / "jupyterhub.service")
    return read["Service"][name].replace("/opt/graders/.venv", sys.prefix).replace("/opt/graders", str(ROOT))


@contextmanager
def hub(where: Machine, course: str) -> Iterator[None]:
    """A running hub, and the end of its machine. What it said is printed."""
    words = [f"GRADERS_COURSE={course}", *unit("ExecStart").split()]
    command = where.command("root", *words, folder=unit("WorkingDirectory"))
    up, log = threading.Event(), []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        reader = threading.Thread(target=_read, args=(process.stdout, log, up))
        reader.start()
        try:
            up.wait(_LONGEST_S)
            assert _UP in "".join(log), "".join(log)
            yield
        finally:
            where.end()
            reader.join()
            print("".join(log))


def _read(stream: IO[str], log: list[str], up: threading.Event) -> None:
    for line in stream:
        log.append(line)
        if _UP in line:
            up.set()
    up.set()
