"""System users for one test, each with a HOME of their own, and the Jupyter servers that they start.

Comes in: names such as `student`. Goes out: users of this machine, processes that run as them. Must not: leave a user or a process behind, or touch
a user that was there before.

What they run is this environment. Where it, or the Python that it was made from, lies below a folder that only root may enter, each of their
processes sees that folder opened as far as the environment: in a mount namespace of its own.
"""

from __future__ import annotations

import itertools
import os
import pwd
import secrets
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (ROOT, Path(sys.prefix), Path(sys.base_prefix))
PATIENCE_S = 90.0
_POLL_S = 0.1
_QUIET = ("--no-browser", "--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=50")
# Two servers that look for a free port at the same time find the same one; so each begins elsewhere, below what the system gives to clients
_PORTS = itertools.count(20_000 + secrets.randbelow(10_000), 51)
# No toast that asks about news, and every cell of a notebook in the page, also those below its lower edge
_SETTINGS = {
    "labconfig/page_config.json": '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}',
    "lab/user-settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings": '{"windowingMode": "none"}',
}


class Server:
    """One person's JupyterLab on a free port of localhost, in a folder below HOME. It starts while others go on."""

    def __init__(self, person: Person, folder: str) -> None:
        """Its token stands in no command line, which others could read."""
        self.person = person
        self.token = secrets.token_hex(16)
        command = [sys.executable, "-m", "jupyterlab", *_QUIET, f"--ServerApp.port={next(_PORTS)}"]
        own = _own(person)
        own["env"] |= {"JUPYTER_TOKEN": self.token}
        self._log = (person.base / f"{person.name}.log").open("w+")
        self._process = subprocess.Popen(
            _as(person, command, folder), stdout=self._log, stderr=self._log, start_new_session=True, **own
        )

    def address(self, path: str = "lab") -> str:
        """Of a page, for a browser that was not there before, once the server answers."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self._process.poll() is None:
            for file in (self.person.home / ".local/share/jupyter/runtime").glob("jpserver-*.json"):
                try:
                    url = msgspec.json.decode(file.read_bytes())["url"]
                    asked = urllib.request.Request(f"{url}api/status", headers={"Authorization": f"token {self.token}"})
                    with urllib.request.urlopen(asked, timeout=5):
                        return f"{url}{path}?reset&token={self.token}"
                except (OSError, msgspec.DecodeError):
                    continue  # it is being written, or nobody listens yet
            time.sleep(_POLL_S)
        raise AssertionError(f"The Jupyter server of {self.person.name} does not answer. It said:\n{self.said()}")

    def said(self) -> str:
        """The end of its log."""
        return Path(self._log.name).read_text()[-4000:]

    def close(self) -> None:
        """End it, and with it its kernels."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


class Person(NamedTuple):
    """A user of this machine."""

    name: str
    home: Path
    base: Path

    def run(self, *command: str, status: int = 0) -> str:
        """What a command says that this person runs at home. It has to end with `status`."""
        done = subprocess.run(
            _as(self, command), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **_own(self)
        )
        assert done.returncode == status, (
            f"{self.name}: {shlex.join(command)} ended with {done.returncode}:\n{done.stdout}"
        )
        return done.stdout

    def write(self, name: str, text: str | bytes) -> None:
        """Put a file below this person's HOME, as theirs."""
        path = self.home / name
        for folder in reversed([one for one in path.parents if self.home in (one, *one.parents)]):
            folder.mkdir(exist_ok=True)
            shutil.chown(folder, self.name, self.name)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        shutil.chown(path, self.name, self.name)

    @contextmanager
    def serving(self, folder: str = ".") -> Iterator[Server]:
        """This person's JupyterLab, started and, at the end, closed."""
        for name, text in _SETTINGS.items():
            self.write(f".jupyter/{name}", text)
        server = Server(self, folder)
        try:
            yield server
        finally:
            server.close()


def _own(person: Person) -> dict[str, Any]:
    path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
    return {"cwd": "/", "stdin": subprocess.DEVNULL, "env": {"PATH": path, "HOME": str(person.home), "LANG": "C.UTF-8"}}


def _as(person: Person, command: Sequence[str], folder: str = ".") -> list[str]:
    """The command line that root runs so that `command` runs as this person, in a folder below HOME."""
    lines = ["set -e", *_openings(person.base), f"cd {shlex.quote(str(person.home / folder))}", "umask 022"]
    become = ["setpriv", f"--reuid={person.name}", f"--regid={person.name}", "--clear-groups", "--inh-caps=-all", "--"]
    lines.append(f"exec {shlex.join([*become, *command])}")
    return ["unshare", "--mount", "--propagation=private", "sh", "-c", "\n".join(lines)]


def _openings(base: Path) -> list[str]:
    """Lines of a shell that open what only root may enter, as far as what everybody needs."""
    closed: dict[Path, list[Path]] = {}
    for path in {one.resolve() for one in NEEDED}:
        shut = next((one for one in reversed(path.parents) if not one.stat().st_mode & stat.S_IXOTH), None)
        if shut is not None:
            closed.setdefault(shut, []).append(path)
    lines = []
    for shut, paths in closed.items():
        held = {path: base / "held" / str(abs(hash(path))) for path in paths}
        for path, hold in held.items():
            hold.mkdir(parents=True, exist_ok=True)
            lines.append(shlex.join(["mount", "--bind", str(path), str(hold)]))
        lines.append(shlex.join(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(shut)]))
        for path, hold in held.items():
            lines += [shlex.join(["mkdir", "-p", str(path)]), shlex.join(["mount", "--bind", str(hold), str(path)])]
    return lines


@contextmanager
def people(*names: str) -> Iterator[list[Person]]:
    """New users of this machine and, beside their HOMEs, the folder of an exchange; all are removed afterwards."""
    assert os.geteuid() == 0, (
        "This test makes system users, so it has to run as root: `sudo make test-system`, or .ci/run in a container."
    )
    missing = [one for one in ("useradd", "userdel", "unshare", "setpriv", "mount") if not shutil.which(one)]
    assert not missing, f"This test needs {', '.join(missing)}. On Debian: apt install passwd util-linux mount"
    there = [one.pw_name for one in pwd.getpwall() if one.pw_name in names]
    assert not there, (
        f"This machine has users {', '.join(there)} already, and this test makes and removes users of that name."
    )
    base = Path(tempfile.mkdtemp(prefix="graders-people-"))
    base.chmod(0o755)
    (base / "exchange").mkdir()
    (base / "exchange").chmod(0o777)  # as nbgrader wants it
    made: list[str] = []
    try:
        for name in names:
            home = ["--create-home", "--home-dir", str(base / name), "--skel", "/var/empty-skeleton"]
            subprocess.run(
                ["useradd", "--user-group", "--shell", "/bin/sh", *home, name], check=True, capture_output=True
            )
            made.append(name)
            (base / name).chmod(0o700)
        yield [Person(name, base / name, base) for name in names]
    finally:
        for name in made:
            subprocess.run(["userdel", "--force", name], check=True, capture_output=True)
        shutil.rmtree(base, ignore_errors=True)
