"""The door for jupyter_client: a kernel provisioner whose kernels are born behind walls.

Comes in: jupyter_client's calls; `spawn_options` among the launch arguments. Goes out: a running kernel on ipc sockets.
Must not: run the kernelspec's command, or bind a port. One zygote serves all kernels of this process, unless
`spawn_options` names another.
"""

from __future__ import annotations

import asyncio
import atexit
import secrets
import shutil
import signal
import socket
import stat
import tempfile
import threading
from pathlib import Path
from typing import Any

from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase

from graders.config import Graders
from graders.kernels.births import CHANNELS
from graders.kernels.nursery import Child, Exit, Limits, Nursery, Spawn, Zygote, best_level

_BACKLOG = 16
_POLL_S = 0.02
_LONGEST_FOLDER = 80
_shared: Zygote | None = None
_shared_lock = threading.Lock()


def shared_zygote() -> Zygote:
    """The zygote of this process, started on first use and again when it was lost."""
    global _shared
    with _shared_lock:
        if _shared is None or not _shared.alive:
            if _shared is not None:
                _shared.close()
            _shared = Zygote()
            atexit.register(_shared.close)
        return _shared


def default_limits() -> Limits:
    """The limits of a course that sets none."""
    settings = Graders()
    return Limits(memory_bytes=settings.memory_bytes, disk_bytes=settings.disk_bytes, processes=settings.processes)


def files_of(folder: Path, most_bytes: int) -> dict[str, bytes]:
    """The regular files directly in `folder`, symlinks not followed, until `most_bytes` are reached."""
    found: dict[str, bytes] = {}
    left = most_bytes
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= left:
            found[path.name] = path.read_bytes()
            left -= status.st_size
    return found


def _short_folder() -> str:
    """Where this user may make folders; a socket path has room for 107 bytes, which a long TMPDIR would use up."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= _LONGEST_FOLDER else "/tmp"


class SandboxProvisioner(KernelProvisionerBase):
    """Starts, signals and ends one kernel. `child` is its process, for callers that need more than jupyter_client."""

    child: Child | None = None
    exit: Exit | None = None
    _folder: str | None = None

    @property
    def has_process(self) -> bool:
        """Whether a kernel is held."""
        return self.child is not None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose ipc in a short private folder (a socket path may have 107 bytes) and leave the command unused."""
        manager = self.parent
        if manager is not None:
            # A restarted kernel listens where the first did, since its clients reconnect there.
            self._folder = self._folder or tempfile.mkdtemp(prefix="gk-", dir=_short_folder())
            manager.transport = "ipc"
            manager.ip = f"{self._folder}/k"
            manager.session.key = manager.session.key or secrets.token_hex(32).encode()
            for number, channel in enumerate(CHANNELS, 1):
                setattr(manager, f"{channel}_port", number)
            self.connection_info = manager.get_connection_info()
        kwargs.setdefault("env", {})
        return {"cmd": ["graders-sandbox"]} | await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Bear the kernel. `spawn_options`: files, limits, isolation, seed, cache, cache_writable, environment, devices, readable, hook, fds."""
        options = dict(kwargs.get("spawn_options") or {})
        extra: list[int] = list(options.pop("fds", ()))
        zygote: Nursery | None = options.pop("zygote", None)
        spawn = self._spawn(options, Path(kwargs.get("cwd") or Path.cwd()))
        listeners = [self._listen(channel) for channel in CHANNELS]
        try:
            descriptors = [listener.fileno() for listener in listeners] + extra
            self.child = await asyncio.to_thread((zygote or shared_zygote()).spawn, spawn, descriptors)
        finally:
            for listener in listeners:
                listener.close()
        self.exit = None
        return self.connection_info

    def _spawn(self, options: dict[str, Any], cwd: Path) -> Spawn:
        limits = options.pop("limits", None) or default_limits()
        files = options.pop("files", None)
        info = dict(self.connection_info)
        info["key"] = info["key"].decode() if isinstance(info["key"], bytes) else info["key"]
        return Spawn(
            entry="graders.kernels.kernel:main",
            argument={"connection": info}
            | {name: options.pop(name, None) for name in ("hook", "options", "outstream")},
            files=files_of(cwd, limits.disk_bytes) if files is None else files,
            limits=limits,
            isolation=options.pop("isolation", None) or best_level(),
            **options,
        )

    def _listen(self, channel: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        address = Path(f"{self.connection_info['ip']}-{CHANNELS.index(channel) + 1}")
        address.unlink(missing_ok=True)
        listener.bind(str(address))
        listener.listen(_BACKLOG)
        return listener

    async def poll(self) -> int | None:
        """None while the kernel runs, else its exit code (negative: a signal)."""
        return self._code(0)

    async def wait(self) -> int | None:
        """The exit code, once there is one."""
        while (code := self._code(0)) is None:
            await asyncio.sleep(_POLL_S)
        if self.child is not None:
            self.child.close()
            self.child = None
        return code

    def _code(self, timeout_s: float) -> int | None:
        if self.child is not None:
            self.exit = self.child.wait(timeout_s)
            if self.exit is None:
                return None
        if self.exit is None:
            return 0
        return self.exit.code if self.exit.kind == "exit" else -abs(self.exit.code or signal.SIGKILL)

    async def send_signal(self, signum: int) -> None:
        """SIGINT interrupts, SIGKILL and SIGTERM end the kernel, 0 asks nothing; others have no meaning here."""
        if self.child is None:
            return
        if signum == signal.SIGINT:
            self.child.interrupt()
        elif signum in (signal.SIGKILL, signal.SIGTERM):
            self.child.kill()

    async def kill(self, restart: bool = False) -> None:
        """End the kernel and all inside it."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """The same as `kill`: a candidate has nothing to put in order."""
        await self.send_signal(signal.SIGKILL)

    async def cleanup(self, restart: bool = False) -> None:
        """Let go of the process and the socket folder."""
        if self.child is not None:
            self.child.close()
            self.child = None
        if not restart:
            self._remove_folder()

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
