"""People who follow the guides: each has a shell, a home and hands for what is done in a browser."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from guide_pages import ROOT, Block, blocks

BIN = Path(sys.executable).parent
LONGEST_S = 120
# nbgrader and JupyterLab load jsonschema, which takes 2 s to build a grammar of web addresses from this; nothing here checks one.
QUICK = 'import sys\nsys.modules["rfc3987_syntax"] = None\n'


class Step(NamedTuple):
    """One line of a guide, how it should end, how it ended, and what it said."""

    guide: str
    line: int
    command: str
    wanted: int
    status: int
    said: str


class Shell:
    """One POSIX shell that runs line after line. What asks on its standard input finds it closed."""

    def __init__(self, folder: Path, home: Path) -> None:
        (home / "quick").mkdir(parents=True, exist_ok=True)
        (home / "quick" / "sitecustomize.py").write_text(QUICK)
        environment = {
            "PATH": os.pathsep.join((str(BIN), "/usr/local/bin", "/usr/bin", "/bin")),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            # nothing is downloaded: to pip, what these tests run with is what was asked for
            "PYTHONPATH": os.pathsep.join((str(home / "quick"), sysconfig.get_path("purelib"))),
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        ends = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(["sh"], cwd=folder, env=environment, text=True, **ends)

    def run(self, command: str) -> tuple[int, str]:
        """Run one line: its exit status, and all that it said."""
        end = "-- the line has ended:"
        said: list[str] = []
        watch = threading.Timer(LONGEST_S, self.process.kill)
        watch.start()
        try:
            print(
                f"{{ {command}\n}} </dev/null; ended=$?; echo; echo '{end}' $ended", file=self.process.stdin, flush=True
            )
            for line in self.process.stdout:
                if line.startswith(end):
                    return int(line.split()[-1]), "".join(said).strip()
                said.append(line)
        finally:
            watch.cancel()
        return -1, "".join(said) + f"\nThe shell ended, by itself or after {LONGEST_S} s."

    def where(self) -> Path:
        """The folder that it stands in."""
        return Path(self.run("pwd")[1])

    def close(self) -> None:
        """End it."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=10)


class Follower:
    """Somebody with a guide in hand. `hands` does what the guide does in a browser, in the folder where the shell stands."""

    def __init__(self, guide: str, shell: Shell, hands: Callable[[Path], None]) -> None:
        self.guide = guide
        self.shell = shell
        self.hands = hands
        self.left = [one for one in blocks(guide) if one.language == "sh" or {"file", "append"} & set(one.words)]
        self.done: list[Step] = []

    def follow(self, until: str | None = None) -> None:
        """Go on with the guide, to the end or up to the block that has this text."""
        while self.left and not (until and until in self.left[0].text):
            block = self.left.pop(0)
            if "file" in block.words:
                path = self.shell.where() / block.words["file"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
            elif "append" in block.words:
                with (self.shell.where() / block.words["append"]).open("a") as file:
                    file.write(block.text)
            else:
                self.done += self._steps(block)

    def _steps(self, block: Block) -> Iterator[Step]:
        last = int(block.words.get("status", 0))
        for number, command in enumerate(block.commands, 1):
            wanted = last if number == len(block.commands) else 0
            yield Step(self.guide, block.line + number, command, wanted, *self._run(command, block.words))
        if "browser" in block.words:
            self.hands(self.shell.where())

    def _run(self, command: str, words: dict[str, str]) -> tuple[int, str]:
        if "browser" in words:
            return _starts(" ".join(command.split()[:2]), self.shell)
        if "setup" in words:
            return _set_up(command)
        if "tpu" in words or ("install" in words and find_spec("ensurepip") is None):
            return _installs(command)
        return self.shell.run(command)


_started: dict[str, tuple[int, str]] = {}


def _starts(program: str, shell: Shell) -> tuple[int, str]:
    """A program whose page nobody opens here is there and says its version. Asked once, it takes seconds."""
    if program not in _started:
        _started[program] = shell.run(f"{program} --version")
    return _started[program]


def _set_up(command: str) -> tuple[int, str]:
    """What makes the environment that these tests run in: make knows how, and the file that is read lies in what it makes."""
    if command.startswith("make "):
        told = subprocess.run([*shlex.split(command), "-n"], cwd=ROOT, capture_output=True, text=True, check=False)
        return told.returncode, told.stdout + told.stderr
    made = command == ". .venv/bin/activate" and "\nsetup: .venv/.ready\n" in (ROOT / "Makefile").read_text()
    return (0, "") if made else (1, "nothing makes it")


def _installs(command: str) -> tuple[int, str]:
    """A line that needs another machine: the same as one that is run elsewhere, or pip with what is known to exist."""
    from importlib.metadata import metadata

    elsewhere = [line for one in blocks("students") if "install" in one.words for line in one.commands]
    if command in elsewhere and "pip" not in command:
        return 0, ""
    wanted = shlex.split(command)
    if wanted[:4] != ["python", "-m", "pip", "install"]:
        return 1, "it is run nowhere"
    for name, _, extra in (one.rstrip("]").partition("[") for one in wanted[4:]):
        if extra and extra not in (metadata(name).get_all("Provides-Extra") or ()):
            return 1, f"{name} has no extra {extra}"
    return 0, ""


def fill(notebook: Path, answers: dict[str, str]) -> None:
    """Write answers into the cells of these ids, as a person does in Jupyter."""
    made = json.loads(notebook.read_text())
    for cell in made["cells"]:
        cell["source"] = answers.get(cell["metadata"].get("nbgrader", {}).get("grade_id"), cell["source"])
    notebook.write_text(json.dumps(made))
