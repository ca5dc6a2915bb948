"""Drive one kernel: start it behind walls, run a cell, collect what it shows.

Comes in: `Start` options and cells. Goes out: `CellEnd`s. Must not: keep more of a cell's output than allowed, believe a
kernel about anything but its own cell, or wait without a limit.

A candidate knows its own key and can forge every reply. What it forges here is only what its own notebook shows.
"""

from __future__ import annotations

import json
import time
from typing import Any

import zmq
from jupyter_client.manager import KernelManager

from graders.errors import InfrastructureError
from graders.kernels.births import Exit, Limits
from graders.kernels.nursery import Child, Nursery
from graders.kernels.outputs import Outputs
from graders.kernels.stacks import StackPipe
from graders.records import Record
from graders.runs import Ended, Problem

_START_S = 60.0
_GRACE_S = 1.5  # how long an interrupted cell has to stop before its kernel is killed
_MAX_MESSAGE_BYTES = 16 * 2**20
_TO_SPAWN = ("limits", "isolation", "files", "hook", "options", "outstream", "seed", "cache", "cache_writable", "environment",
             "devices", "readable")  # fmt: skip


class Start(Record):
    """How to start a kernel. `hook` is "module:function", called with `options` and `fds` before the first cell.

    Behind `fds` it gets one more descriptor, for `stacks.write_on_signal`.
    """

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
    environment: dict[str, str] = {}  # noqa: RUF012  (msgspec copies defaults)
    devices: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()


class CellEnd(Record):
    """How one cell ended. `alive` says whether the kernel can run another, `stack` what it was doing when time ran out."""

    ended: Ended
    outputs: tuple[dict[str, object], ...]
    problem: Problem | None
    seconds: float
    alive: bool
    stack: str = ""


class Kernel:
    """One running kernel. Close it."""

    def __init__(self, start: Start, output_bytes: int, nursery: Nursery) -> None:
        self._output_bytes = output_bytes
        self._manager = KernelManager(kernel_name="graders-sandbox")
        self._sockets: list[zmq.Socket[bytes]] = []
        self._stacks = StackPipe()
        options = {name: getattr(start, name) for name in _TO_SPAWN}
        options |= {"fds": [*start.fds, self._stacks.theirs], "zygote": nursery}
        try:
            self._manager.start_kernel(spawn_options=options)
            self._stacks.born()
            self._child = self._born()
            self.walls = self._child.walls
            self._connect()
        except BaseException:
            self.close()
            raise

    def _born(self) -> Child:
        child = getattr(self._manager.provisioner, "child", None)
        if not isinstance(child, Child):
            raise InfrastructureError("The kernel was not started by the sandbox provisioner. Run make setup again.")
        return child

    def _connect(self) -> None:
        self._session = self._manager.session
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._poller = zmq.Poller()
        for kind, channel in ((zmq.DEALER, "shell"), (zmq.SUB, "iopub")):
            socket = context.socket(kind)
            self._sockets.append(socket)
            socket.linger = 0
            socket.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
            if kind == zmq.SUB:
                socket.setsockopt(zmq.SUBSCRIBE, b"")
            socket.connect(self._manager._make_url(channel))
            self._poller.register(socket, zmq.POLLIN)
        self._shell, self._iopub = self._sockets
        self._poller.register(self._child.fileno(), zmq.POLLIN)
        self._await_welcome()

    def _await_welcome(self) -> None:
        """The welcome proves that the subscription stands; without it the first outputs could be lost."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self.exit() is None:
            for socket, message in self._messages(deadline):
                if socket is self._iopub and message["msg_type"] == "iopub_welcome":
                    return
        raise InfrastructureError(
            f"A kernel did not come up within {_START_S:.0f} s: {self.exit()}. It is tried again."
        )

    def exit(self, wait_s: float = 0.0) -> Exit | None:
        """How the process ended, or None when it still runs after `wait_s`."""
        return self._child.wait(wait_s)

    def run(self, source: str, timeout_s: float, name: str = "") -> CellEnd:
        """Run one cell, named or not. After `timeout_s` it is interrupted, and killed when that does not help."""
        start = time.monotonic()
        outputs = Outputs(self._output_bytes)
        sent = self._session.send(self._shell, "execute_request", _request(source), metadata={"cell": name})
        identity = sent["header"]["msg_id"]
        done, problem = self._collect(identity, outputs, start + timeout_s)
        ended, stack = Ended.error if problem else Ended.ok, ""
        exit = self.exit()
        if exit is not None:  # also when it answered before: it was seen dead, and somebody did that
            ended = died(exit)
        elif not done:
            ended, stack = Ended.timeout, self.stack()
            self._child.interrupt()
            done, _ = self._collect(identity, outputs, time.monotonic() + _GRACE_S)
            if not done:
                self._child.kill()
                self._child.wait(10)
            exit = self.exit()
        return CellEnd(ended, outputs.items(), problem, time.monotonic() - start, exit is None, stack)

    def stack(self) -> str:
        """What the kernel is doing now, as it says itself; empty when it does not."""
        return self._stacks.ask(self._child)

    def drain(self) -> str:
        """What the kernel printed outside a cell, as text; all of it, if it still answers."""
        outputs, marker, over = Outputs(self._output_bytes), "", self.exit() is not None
        deadline = time.monotonic() + (0.0 if over else _GRACE_S)
        if not over:
            # what comes before the idle message of a question asked now was printed before it
            marker = self._session.send(self._shell, "comm_info_request", {})["header"]["msg_id"]
        while received := self._messages(deadline):
            for socket, message in received:
                if socket is self._iopub and message["msg_type"] != "status":
                    outputs.add(message["msg_type"], message["content"])
                over = over or (message["parent_header"].get("msg_id") == marker and _is_idle(message))
            if over or time.monotonic() > deadline:
                break
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
                    idle = idle or _is_idle(message)
                else:
                    problem = outputs.add(message["msg_type"], message["content"]) or problem
        return True, problem

    def _messages(self, deadline: float) -> list[tuple[Any, dict[str, Any]]]:
        """What has arrived, waiting for a first message until `deadline`. Malformed messages are dropped."""
        found: list[tuple[Any, dict[str, Any]]] = []
        ready = dict(self._poller.poll(int(max(0.0, deadline - time.monotonic()) * 1000)))
        for socket in self._sockets:
            while socket in ready and len(found) < 1000:
                try:
                    message = self._parse(socket.recv_multipart(zmq.NOBLOCK))
                except zmq.Again:
                    break
                if message is not None:
                    found.append((socket, message))
        return found

    def _parse(self, frames: list[bytes]) -> dict[str, Any] | None:
        """What is read of a message. Its signature is not looked at: who sends knows the key."""
        try:
            _, (_, *parts) = self._session.feed_identities(frames)
            header, parent, _, content = (json.loads(part.decode("utf-8", "replace")) for part in parts[:4])
            message = {"msg_type": header["msg_type"], "parent_header": parent, "content": content}
            kinds = (content, dict), (parent, dict), (message["msg_type"], str)
            return message if all(isinstance(one, kind) for one, kind in kinds) else None
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def close(self) -> Exit | None:
        """End the kernel, let go of everything, and say how it ended."""
        self._stacks.close()
        while self._sockets:
            self._sockets.pop().close(0)
        if not self._manager.has_kernel:
            return None
        child = self._born()
        child.kill()
        found = child.wait(10)
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        return found


def _is_idle(message: dict[str, Any]) -> bool:
    return bool(message["content"].get("execution_state") == "idle")


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
