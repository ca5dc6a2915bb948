"""What may cross between candidate and examiner: typed messages, size-capped, data only.

Comes in: bytes from a socket. Goes out: records of this module, or `WireError`. Must not: unpickle, evaluate or import
anything that a message names.

Everything is decoded by msgspec against these types before any code looks at it.
"""

from __future__ import annotations

import socket
import struct
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from graders.exam.nodes import MAX_NODES, Identity, Index, Items, Name, Value

MAX_MESSAGE_BYTES = 128 * 2**20
_HEADER = struct.Struct("!Q")


class WireError(Exception):
    """The other side sent something that is not of the protocol."""


class Aval(msgspec.Struct, frozen=True, array_like=True):
    """Shape and dtype of a traced array; a PRNG key's dtype is `key:` and its implementation."""

    shape: Annotated[tuple[Annotated[int, Meta(ge=0, lt=2**40)], ...], Meta(max_length=64)]
    dtype: Name
    weak: bool = False


class Vmap(msgspec.Struct, frozen=True, array_like=True, tag="vmap"):
    """Map over the given axis of each argument (None: not mapped); results are stacked along axis 0."""

    in_axes: tuple[int | None, ...]


class Jvp(msgspec.Struct, frozen=True, array_like=True, tag="jvp"):
    """The tangents of the results, from the arguments followed by a tangent for each `active` one."""

    active: tuple[bool, ...]


class Transpose(msgspec.Struct, frozen=True, array_like=True, tag="transpose"):
    """The cotangents of the `linear` arguments, from the other arguments followed by the results' cotangents."""

    linear: tuple[bool, ...]
    avals: tuple[Aval, ...]


Transform = Vmap | Jvp | Transpose


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """Do `op` with the object `target` of the receiver. `args` and `kwargs` are heap indices."""

    op: Literal[
        "names", "call", "attr", "setattr", "getitem", "setitem", "delitem", "len", "iter", "next", "contains", "bool",
        "isinstance", "apply", "export", "place", "compiled",
    ]  # fmt: skip
    target: Identity = 0
    args: Items = []
    kwargs: dict[Name, Index] = {}
    avals: tuple[Aval, ...] = ()
    transforms: tuple[Transform, ...] = ()


class Lowered(msgspec.Struct, frozen=True):
    """A serialised jax.export program for a platform that is not here, or the `problem` that kept it from being made."""

    platform: Name
    program: bytes = b""
    problem: Annotated[str, Meta(max_length=2_000)] = ""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The answer; `value` is a heap index. `artifact` is a serialised jax.export program where one was asked for.

    `elsewhere` is the same function's program for another platform, where one was asked for too.
    """

    value: Index
    artifact: bytes = b""
    elsewhere: Lowered | None = None


class Raised(msgspec.Struct, frozen=True, tag="raised"):
    """An exception, as the qualified names of its class and bases, nearest first."""

    classes: Annotated[list[Name], Meta(max_length=50)]
    message: Annotated[str, Meta(max_length=20_000)]
    traceback: Annotated[str, Meta(max_length=50_000)] = ""


class Message(msgspec.Struct, frozen=True):
    """One frame: the heap, what changed since the last frame, and what is asked or answered.

    `changes` are containers (heap indices of nodes with a key), `rebound` watched names with their new values, `gone`
    keys of containers that the sender no longer holds.
    """

    body: Ask | Done | Raised
    heap: Annotated[list[Value], Meta(max_length=MAX_NODES)] = []
    changes: Items = []
    rebound: dict[Name, Index] = {}
    gone: Annotated[list[Identity], Meta(max_length=MAX_NODES)] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)


def decode(frame: bytes) -> Message:
    """Decode one frame. Raises `WireError` when it is not a message of this protocol."""
    try:
        return _decoder.decode(frame)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"a malformed message: {error}") from None


def encode(message: Message) -> bytes:
    """Encode one frame. Raises `WireError` when it is larger than the protocol allows."""
    frame = _encoder.encode(message)
    if len(frame) > MAX_MESSAGE_BYTES:
        raise WireError(f"a value of {len(frame):,} bytes is too large to cross (at most {MAX_MESSAGE_BYTES:,})")
    return frame


def send(channel: socket.socket, frame: bytes) -> None:
    """Write one frame. Raises `OSError` when nobody listens."""
    channel.sendall(_HEADER.pack(len(frame)) + frame)


def receive(channel: socket.socket) -> Message:
    """Read one frame. Raises `EOFError` when the other side is gone, `WireError` when it does not keep to the protocol."""
    (size,) = _HEADER.unpack(_read(channel, _HEADER.size))
    if size > MAX_MESSAGE_BYTES:
        raise WireError(f"a message of {size:,} bytes (at most {MAX_MESSAGE_BYTES:,})")
    return decode(_read(channel, size))


def _read(channel: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = channel.recv(min(size - len(parts), 2**20))
        except ConnectionError:
            part = b""
        if not part:
            raise EOFError("the other side has gone")
        parts += part
    return bytes(parts)
