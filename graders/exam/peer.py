"""One side of the channel between candidate and examiner: asks, answers, and keeps both sides in step.

Comes in: a connected socket and what this side lets the other do. Goes out: values, views, and answers. The protocol is
strictly nested: while a side waits for an answer it serves what it is asked, so callbacks need no thread.
Must not: trust anything it receives beyond its type; what an asker may do is decided by `allows`.
"""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import jax

from graders.exam import compiletime, compose, transforms, values, views, wire
from graders.exam.decode import Decoder
from graders.exam.encode import Encoder
from graders.exam.tables import Tables

_MISSING = object()
Chain = tuple[wire.Transform, ...]
Avals = tuple[wire.Aval, ...]


class ChannelLost(BaseException):
    """The other side died, was stopped, or broke the protocol. Not an Exception: no check may swallow it."""


class Peer:
    """One end of the channel.

    Args:
        channel: a connected stream socket.
        first_key: 1 for one side and 2 for the other.
        namespace: names that the other side may read; None when it may read none.
        allows: says whether the other side may do an operation, given its name, the attribute's name if it has one, and
            the object.
        tell: whether messages and tracebacks of exceptions are told to the other side.
    """

    def __init__(
        self,
        channel: socket.socket,
        first_key: int,
        namespace: dict[str, Any] | None = None,
        allows: Callable[[str, str, Any], bool] = lambda op, name, target: True,
        tell: bool = True,
    ) -> None:
        self.channel = channel
        self.namespace = namespace
        self.asked = 0
        self.on_rebound: Callable[[str, Any], None] = lambda name, value: None
        self.elsewhere = ""  # another platform for which programs are wanted too
        self.on_program: Callable[[int, Chain, Avals, wire.Lowered], None] = lambda target, chain, avals, program: None
        self._allows = allows
        self._tell = tell
        self._watched: dict[str, Any] = {}
        self._plain_names: dict[tuple[int, str], Any] = {}
        self.programs: dict[Any, transforms.Program] = {}
        self.tables = Tables(first_key, lambda ref: views.make(self, ref), lambda one: views.id_at(self, one))

    def ask(self, op: str, target: int = 0, /, *args: Any, **kwargs: Any) -> Any:
        """Ask the other side for `op` with its object `target` and return the value of the answer."""
        return self.request(op, target, args, kwargs)[0]

    def plain_name(self, target: int, name: str) -> Any:
        """`__name__` and its like, which JAX reads of every function again and again, asked for once."""
        if (target, name) not in self._plain_names:
            try:
                self._plain_names[target, name] = self.ask("attr", target, name)
            except AttributeError:
                self._plain_names[target, name] = _MISSING
        if self._plain_names[target, name] is _MISSING:
            raise AttributeError(name)
        return self._plain_names[target, name]

    def request(
        self,
        op: str,
        target: int,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        avals: Sequence[wire.Aval] = (),
        chain: Sequence[wire.Transform] = (),
    ) -> tuple[Any, wire.Done]:
        """Ask, serving what the other side asks meanwhile. Returns the value of the answer and the answer.

        Raises:
            Exception: of the nearest class that exists here, when the other side raised one.
            WireError: an argument cannot cross; nothing was asked.
            ChannelLost: the other side is gone or does not keep to the protocol.
        """

        def ask(encoder: Encoder) -> wire.Ask:
            named = {name: encoder.add(one) for name, one in (kwargs or {}).items()}
            positional = [encoder.add(one) for one in args]
            return wire.Ask(op, target, positional, named, tuple(avals), tuple(chain))  # type: ignore[arg-type]

        frame = self._frame(ask)
        self.asked += 1
        self._send(frame)
        while True:
            message, decoder = self._receive()
            if isinstance(message.body, wire.Ask):
                self._answer(message.body, decoder)
            elif isinstance(message.body, wire.Raised):
                raise values.exception_value(message.body)
            else:
                return self._value(decoder, message.body.value), message.body

    def serve_one(self) -> None:
        """Read one question and answer it. Raises `ChannelLost` when nobody asks any more."""
        message, decoder = self._receive()
        if not isinstance(message.body, wire.Ask):
            raise ChannelLost("an answer that nobody asked for")
        self._answer(message.body, decoder)

    def _frame(self, body: Callable[[Encoder], wire.Ask | wire.Done | wire.Raised], news: bool = True) -> bytes:
        """A message with all that changed here, if `news`. When it cannot be made, nothing counts as told."""
        self.tables.prune()
        encoder, watched, gone = Encoder(self.tables), dict(self._watched), self.tables.gone
        try:
            changes = encoder.changes() if news else []
            made = body(encoder)
            rebound = self._rebound(encoder) if news else {}
            frame = wire.encode(wire.Message(made, encoder.heap, changes, rebound, gone))
        except BaseException:
            self.tables.undo()
            self._watched = watched
            raise
        self.tables.gone = []
        return frame

    def _send(self, frame: bytes) -> None:
        try:
            wire.send(self.channel, frame)
        except OSError as error:
            raise ChannelLost(f"the other side has gone ({error.strerror})") from None

    def _receive(self) -> tuple[wire.Message, Decoder]:
        try:
            message = wire.receive(self.channel)
            decoder = Decoder(self.tables, message)
            for name, index in message.rebound.items():
                self.on_rebound(name, decoder.value(index))
        except (EOFError, OSError, wire.WireError) as error:
            raise ChannelLost(str(error)) from None
        return message, decoder

    def _value(self, decoder: Decoder, index: int) -> Any:
        try:
            return decoder.value(index)
        except wire.WireError as error:
            raise ChannelLost(str(error)) from None

    def _rebound(self, encoder: Encoder) -> dict[str, int]:
        if not self._watched or self.namespace is None:
            return {}
        found = {name: self.namespace.get(name, _MISSING) for name in self._watched}
        fresh = {name: one for name, one in found.items() if one is not self._watched[name] and one is not _MISSING}
        self._watched.update(found)
        return {name: encoder.add(one) for name, one in fresh.items()}

    def _answer(self, ask: wire.Ask, decoder: Decoder) -> None:
        try:
            value, artifact, elsewhere = self._perform(ask, decoder)
            frame = self._frame(lambda encoder: wire.Done(encoder.add(value), artifact, elsewhere))
        except ChannelLost:
            raise
        except BaseException as error:  # whatever it is, the asker wants to know its class
            frame = self._refusal(self._raised(error))
        self._send(frame)

    def _refusal(self, raised: wire.Raised) -> bytes:
        try:
            return self._frame(lambda _: raised)
        except Exception:  # what changed cannot cross either; it is told as soon as it can
            return self._frame(lambda _: raised, news=False)

    def _raised(self, error: BaseException) -> wire.Raised:
        names = values.exception_names(error)
        if not self._tell:
            return wire.Raised(names, "")
        try:
            text = str(error)
        except Exception as own:
            text = f"(its text raised {type(own).__name__})"
        told = "".join(traceback.format_exception(error, limit=-8))[-20_000:]
        return wire.Raised(names, _utf8(text)[:20_000], _utf8(told))

    def _perform(self, ask: wire.Ask, decoder: Decoder) -> compose.Answer:
        args = [self._value(decoder, index) for index in ask.args]
        kwargs = {name: self._value(decoder, index) for name, index in ask.kwargs.items()}
        questions = {"names": lambda: self._names(args), "place": place, "compiled": compiletime.seconds}
        about_process = questions.get(ask.op)
        if about_process is None and ask.target not in self.tables.objects:
            raise LookupError("an object that was never handed out")
        target: Any = None if about_process else self.tables.objects[ask.target]
        attribute = str(args[0]) if ask.op in ("attr", "setattr") and args else ""
        if not self._allows(ask.op, attribute, target):
            refused = AttributeError if ask.op == "attr" else PermissionError
            raise refused(f"{ask.op} {attribute} is not possible from here")
        if about_process is not None:
            return about_process(), b"", None
        if ask.op in ("apply", "export"):
            return compose.answer(ask, target, args)
        return views.OPERATIONS[ask.op](target, *args, **kwargs), b"", None

    def _names(self, names: Sequence[str]) -> dict[str, Any]:
        if self.namespace is None:
            raise PermissionError("there are no names to read here")
        found = {name: self.namespace[name] for name in names if name in self.namespace}
        self._watched = {name: found.get(name, _MISSING) for name in names}
        return found


def place() -> dict[str, Any]:
    """What this process says of itself: platform, devices and versions; instead of the first two, why it has none."""
    import platform

    try:
        devices = jax.devices()
        where = {
            "platform": jax.default_backend(),
            "devices": [f"{device.device_kind} {device.id}" for device in devices],
        }
    except (RuntimeError, AssertionError) as error:  # JAX's words for a backend that does not start
        where = {"problem": _utf8(str(error) or type(error).__name__)[:2000]}
    return where | {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": jax.lib.__version__,
    }


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
