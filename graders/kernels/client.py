"""Drive one kernel: start it behind walls, run a cell, collect what it shows.

Comes in: `Start` options and cells. Goes out: `CellEnd`s. Must not: keep more of a cell's output than allowed, believe a
kernel about anything but its own cell, or wait without a limit.

A candidate knows its own key and can forge every reply. What it forges here is only what its own notebook shows.
"""

from __future__ import annotations

import re
import time
from typing import Any

import zmq
from jupyter_client.manager import KernelManager

from graders.errors import InfrastructureError
from graders.kernels.births import Exit, Limits
from graders.records import Ended, Problem, Record

_START_S = 60.0
_GRACE_S = 1.5  # how long an interrupted cell has to stop before its kernel is killed
_MAX_MESSAGE_BYTES = 16 * 2**20
# Nothing of a candidate is ever rendered as HTML, so HTML, SVG, LaTeX, Markdown and scripts are not kept at all.
_KEPT_TYPES = ("text/plain", "image/png", "image/jpeg")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Start(Record):
    """How to start a kernel. `hook` is "module:function", called with `options` and `fds` before the first cell."""

    limits: Limits
    isolation: str
    files: dict[str, bytes]
    hook: str
    options: dict[str, object]
    fds: tuple[int, ...]
    outstream: str | None = None
    seed: int = 0
    cache: str | None = None
    cache_writable: bool = False


class CellEnd(Record):
    """How one cell ended. `alive` says whether the kernel can run another."""

    ended: Ended
    outputs: tuple[dict[str, object], ...]
    problem: Problem | None
    seconds: float
    alive: bool


class Outputs:
    """Output of one cell, head and tail kept within a limit of bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._used = 0
        self._items: list[dict[str, Any]] = []
        self.cut_bytes = 0

    def add(self, kind: str, content: dict[str, Any]) -> Problem | None:
        """Take one message in; an error message also comes back as a `Problem`."""
        if kind == "stream":
            self._stream("stderr" if content.get("name") == "stderr" else "stdout", str(content.get("text", "")))
        elif kind in ("display_data", "execute_result"):
            self._display(kind, content)
        elif kind == "error":
            lines = [str(line) for line in content.get("traceback", [])][:200]
            name, message = str(content.get("ename", ""))[:200], str(content.get("evalue", ""))[:20_000]
            item = {"output_type": "error", "ename": name, "evalue": message, "traceback": lines}
            self._keep(item, len(message) + sum(map(len, lines)))
            return Problem(_utf8(name), _utf8(message), _utf8(_ANSI.sub("", "\n".join(lines)))[-20_000:])
        return None

    def items(self) -> tuple[dict[str, object], ...]:
        """nbformat 4 output dictionaries."""
        if self.cut_bytes:
            note = f"\n… {self.cut_bytes:,} bytes of output were cut …\n"
            return (*self._items, {"output_type": "stream", "name": "stderr", "text": note})
        return tuple(self._items)

    def _stream(self, name: str, text: str) -> None:
        room = max(0, self._limit - self._used)
        kept = _utf8(text[:room])
        self.cut_bytes += len(text) - len(text[:room])
        if not kept:
            return
        self._used += len(kept)
        if self._items and self._items[-1].get("name") == name:
            self._items[-1]["text"] += kept
        else:
            self._items.append({"output_type": "stream", "name": name, "text": kept})

    def _display(self, kind: str, content: dict[str, Any]) -> None:
        data = content.get("data")
        if not isinstance(data, dict):
            return
        kept = {t: _utf8(data[t]) for t in _KEPT_TYPES if isinstance(data.get(t), str)}
        item: dict[str, Any] = {"output_type": kind, "data": kept, "metadata": {}}
        if kind == "execute_result":
            item["execution_count"] = None
        if kept:
            self._keep(item, sum(map(len, kept.values())))

    def _keep(self, item: dict[str, Any], size: int) -> None:
        if self._used + size > self._limit * 4:  # a picture may be larger than text
            self.cut_bytes += size
            return
        self._used += size
        self._items.append(item)


class Kernel:
    """One running kernel. Close it, or use it as a context manager."""

    def __init__(self, start: Start, output_bytes: int) -> None:
        self._output_bytes = output_bytes
        self._manager = KernelManager(kernel_name="graders-sandbox")
        self._shell = self._iopub = None
        options = {
            f: getattr(start, f) for f in ("limits", "isolation", "files", "hook", "seed", "cache", "cache_writable")
        }
        options |= {"fds": list(start.fds), "options": start.options, "outstream": start.outstream}
        try:
            self._manager.start_kernel(spawn_options=options)
            self._child = self._manager.provisioner.child
            self.walls = self._child.walls
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        self._session = self._manager.session
        context = zmq.Context.instance()
        self._shell, self._iopub = context.socket(zmq.DEALER), context.socket(zmq.SUB)
        for socket, channel in ((self._shell, "shell"), (self._iopub, "iopub")):
            socket.linger = 0
            socket.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
            if channel == "iopub":
                socket.setsockopt(zmq.SUBSCRIBE, b"")
            socket.connect(self._manager._make_url(channel))
        self._poller = zmq.Poller()
        for watched in (self._shell, self._iopub, self._child.fileno()):
            self._poller.register(watched, zmq.POLLIN)
        # The welcome proves that the subscription stands; without it the first outputs could be lost.
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            for socket, message in self._messages(deadline):
                if socket is self._iopub and message["msg_type"] == "iopub_welcome":
                    return
            if self.exit() is not None:
                break
        raise InfrastructureError(
            f"A kernel did not come up within {_START_S:.0f} s: {self.exit()}. It is tried again."
        )

    def exit(self) -> Exit | None:
        """How the process ended, or None while it runs."""
        found: Exit | None = self._child.wait(0)
        return found

    def run(self, source: str, timeout_s: float) -> CellEnd:
        """Run one cell. After `timeout_s` it is interrupted, and its kernel killed when that does not help."""
        start = time.monotonic()
        outputs = Outputs(self._output_bytes)
        sent = self._session.send(self._shell, "execute_request", _request(source))
        identity = sent["header"]["msg_id"]
        done, problem = self._collect(identity, outputs, start + timeout_s)
        ended = Ended.error if problem else Ended.ok
        if not done and self.exit() is None:
            ended = Ended.timeout
            self._child.interrupt()
            done, _ = self._collect(identity, outputs, time.monotonic() + _GRACE_S)
            if not done:
                self._child.kill()
                self._child.wait(10)
        elif not done:
            ended = died(self.exit())
        return CellEnd(ended, outputs.items(), problem, time.monotonic() - start, self.exit() is None)

    def drain(self) -> str:
        """What the kernel printed outside a cell, as text."""
        outputs = Outputs(self._output_bytes)
        for _, message in self._messages(time.monotonic()):
            outputs.add(message["msg_type"], message["content"])
        return "".join(str(item.get("text", "")) for item in outputs.items())

    def kill(self) -> None:
        """End it and all inside it."""
        self._child.kill()
        self._child.wait(10)

    def _collect(self, identity: str, outputs: Outputs, deadline: float) -> tuple[bool, Problem | None]:
        """Take messages until the cell is answered and idle; (whether it is, the error it showed)."""
        problem, answered, idle = None, False, False
        while not (answered and idle):
            if time.monotonic() >= deadline or self.exit() is not None:
                return False, problem
            # An idle message that does not follow its answer was dropped with an oversized output before it.
            limit = min(deadline, time.monotonic() + 1.0) if answered else deadline
            received = self._messages(limit)
            if answered and not received:
                break
            for socket, message in received:
                if message["parent_header"].get("msg_id") != identity:
                    continue
                if socket is self._shell:
                    answered = answered or message["msg_type"] == "execute_reply"
                elif message["msg_type"] == "status":
                    idle = idle or message["content"].get("execution_state") == "idle"
                else:
                    problem = outputs.add(message["msg_type"], message["content"]) or problem
        return True, problem

    def _messages(self, deadline: float) -> list[tuple[Any, dict[str, Any]]]:
        """What has arrived, waiting for a first message until `deadline`. Malformed messages are dropped."""
        found = []
        wait_ms = max(0.0, deadline - time.monotonic()) * 1000
        for socket, _ in self._poller.poll(wait_ms):
            while isinstance(socket, zmq.Socket) and len(found) < 1000:
                try:
                    frames = socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                message = self._parse(frames)
                if message is not None:
                    found.append((socket, message))
        return found

    def _parse(self, frames: list[bytes]) -> dict[str, Any] | None:
        try:
            _, parts = self._session.feed_identities(frames)
            message = self._session.deserialize(parts)
            well_formed = isinstance(message["content"], dict) and isinstance(message["parent_header"], dict)
            return message if well_formed and isinstance(message["msg_type"], str) else None
        except (ValueError, TypeError, KeyError, IndexError, RecursionError, AttributeError):
            return None

    def close(self) -> Exit | None:
        """End the kernel, let go of everything, and say how it ended."""
        for socket in (self._shell, self._iopub):
            if socket is not None:
                socket.close(0)
        self._shell = self._iopub = None
        if not self._manager.has_kernel:
            return None
        child = self._manager.provisioner.child
        if child is not None:
            child.kill()
            found: Exit | None = child.wait(10)
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        return found if child is not None else None

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def died(exit: Exit | None) -> Ended:
    """The way in which a kernel ended that ended by itself."""
    return Ended.memory if exit is not None and exit.kind == "memory" else Ended.died


def _request(source: str) -> dict[str, object]:
    return {
        "code": source,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
