"""A PostgreSQL server of its own, in a temporary folder, that nobody reaches but over a socket there.

Comes in: nothing. Goes out: addresses of databases. Must not: use or change a server of the machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import create_engine, text

PATIENCE_S = 60


class Server:
    """Where databases are."""

    def __init__(self, sockets: Path) -> None:
        self._sockets = sockets

    def url(self, name: str) -> str:
        """The address of one of its databases."""
        return f"postgresql+psycopg://graders@/{name}?host={self._sockets}"

    def create(self, name: str, like: str = "template1") -> str:
        """A new database, a copy of another that nobody uses just now. Returns its address."""
        self._run(f'CREATE DATABASE "{name}" TEMPLATE "{like}"')
        return self.url(name)

    def drop(self, name: str) -> None:
        """Delete a database. Whoever still uses it is an error."""
        self._run(f'DROP DATABASE "{name}"')

    def _run(self, statement: str) -> None:
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()


@contextmanager
def server() -> Iterator[Server]:
    """A server that runs meanwhile. PostgreSQL refuses to run as root, so there it runs as Debian's account for it."""
    home = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the path of a socket has at most 107 bytes
    who = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
    try:
        if who:
            shutil.chown(home, "postgres", "postgres")
        make = [_program("initdb"), "--pgdata", home / "data", "--username", "graders", "--encoding", "UTF8"]
        make += ["--locale", "C.UTF-8", "--auth", "trust", "--no-sync"]
        subprocess.run(make, cwd=home, check=True, stdout=subprocess.DEVNULL, **who)
        run = [_program("postgres"), "-D", home / "data", "-k", home, "-c", "listen_addresses=", "-c", "fsync=off"]
        with (home / "log").open("wb") as log, subprocess.Popen(run, cwd=home, stderr=log, **who) as process:
            try:
                _await(process, home)
                yield Server(home)
            finally:
                process.terminate()
    finally:
        shutil.rmtree(home)


def _await(process: subprocess.Popen[bytes], home: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while subprocess.run([_program("pg_isready"), "-q", "-h", home], check=False).returncode != 0:
        assert process.poll() is None, (home / "log").read_text()
        assert time.monotonic() < until, (home / "log").read_text()
        time.sleep(0.05)


def _program(name: str) -> str:
    """One of PostgreSQL's programs; Debian keeps them beside the PATH, by version."""
    places = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    found = shutil.which(name, path=os.pathsep.join([*places, os.environ["PATH"]]))
    assert found, "There is no PostgreSQL here. On Debian: apt install postgresql"
    return found
