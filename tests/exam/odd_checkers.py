"""Checkers that do what a program of an adversary might make of one: entries for the zygote of these tests."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

from graders.compilations import CompileOutcome
from graders.exam import control
from graders.kernels import birth


def _after(asked: int, then: Callable[[socket.socket], None], fds: list[int]) -> None:
    channel = socket.socket(fileno=fds[0])
    birth.opened()
    control.send(channel, control.Ready())
    for _ in range(asked):
        control.receive(channel)
        control.send(channel, control.Compiled(CompileOutcome.refused, "as asked"))
    control.receive(channel)
    then(channel)


def dies(argument: dict[str, Any], fds: list[int]) -> None:
    """Answer once, then end at the second program."""
    _after(1, lambda channel: os._exit(3), fds)


def hangs(argument: dict[str, Any], fds: list[int]) -> None:
    """Never answer."""
    _after(0, lambda channel: time.sleep(600), fds)


def lies(argument: dict[str, Any], fds: list[int]) -> None:
    """Answer with a figure that no program has."""

    def lie(channel: socket.socket) -> None:
        body = b"\x83\xa4type\xa8compiled\xa7outcome\xa8compiled\xa7figures\x81\xa9compile_s\xcb\x7f\xf8" + b"\0" * 6
        channel.sendall(len(body).to_bytes(8, "big") + body)
        time.sleep(600)

    _after(0, lie, fds)


def idles(argument: dict[str, Any], fds: list[int]) -> None:
    """Neither answer nor read."""
    birth.opened()
    time.sleep(600)
