"""`make fuzz`: coverage-guided fuzzing of what reads a candidate's bytes, the decoder of messages and the check of programs.

Comes in: bytes of atheris (libFuzzer). Goes out: nothing; anything but a value or a `WireError` is a crash, which libFuzzer reports with
the input. Must not: run an admitted program, or speak to another process.

Seeds are honest frames and programs. After the first argument, `messages` or `programs`, come libFuzzer's own options. In `programs`
all around the compiled module is damaged (calling convention, shapes, names, effects, versions) and the module is one of the honest ones:
jaxlib's own parser of modules crashes or hangs on some damaged bytes, which costs the examiner that reads them and earns nothing.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["graders", "msgspec"]):
    import jax
    import jax.numpy as jnp
    import numpy as np

    from graders.exam import artifacts, wire
    from graders.exam.decode import Decoder
    from graders.exam.encode import Encoder
    from graders.exam.peer import Peer
    from graders.exam.wire import WireError

SPECS = [jax.ShapeDtypeStruct((3,), jnp.float32)]
AVALS = [artifacts.aval_of(one) for one in SPECS]
VALUES = [
    [1, (2.5, None), {"a": {1}, (1,): frozenset({2})}, "\ud83d", b"z", 2**99, 1j],
    [np.arange(6).reshape(2, 3), np.float32(1), jnp.ones(3), jax.random.key(0), np.array(["a"])],
    [slice(1, 2), range(3), ..., int, np.dtype("f4"), jnp, len],
]
PROGRAMS = [
    lambda x: (jnp.sin(x) + 1.0,),
    lambda x: (jax.lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), jnp.sort(x)),
    lambda x: (jnp.linalg.cholesky(jnp.outer(x, x) + jnp.eye(3)), jnp.fft.fft(x).real),
]


def peer() -> Peer:
    """An end of a line whose other end is gone."""
    here, there = socket.socketpair()
    there.close()
    return Peer(here, 1)


def read_message(data: bytes) -> None:
    """Decode a frame and everything in it."""
    receiver = peer()
    with receiver.channel, contextlib.suppress(WireError):
        message = wire.decode(data)
        decoder = Decoder(receiver.tables, message)
        for index in range(len(message.heap)):
            decoder.value(index)


def admit_program(data: bytes) -> None:
    """Check a program, its module replaced by an honest one, as if it had been asked for."""
    with contextlib.suppress(WireError):
        artifacts.admit(data, AVALS)


def messages() -> list[bytes]:
    """Honest frames."""
    made = []
    for value in VALUES:
        sender = peer()
        with sender.channel:
            encoder = Encoder(sender.tables)
            index = encoder.add(value)
            made.append(wire.encode(wire.Message(wire.Done(index), encoder.heap, [], {"n": index})))
    return made


def programs() -> list[bytes]:
    """Honest programs; from here on a module that is none of theirs is read as one of theirs."""
    made = [artifacts.export(one, SPECS) for one in PROGRAMS]
    known = [jax.export.deserialize(bytearray(one)) for one in made]
    modules = {one.mlir_module_serialized: one.mlir_module() for one in known}
    honest = next(iter(modules.values()))
    jax.export.Exported.mlir_module = lambda self: modules.get(self.mlir_module_serialized, honest)
    return made


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "messages": (read_message, messages),
    "programs": (admit_program, programs),
}


def main(which: str, options: list[str]) -> None:
    """Fuzz one target until libFuzzer's options say stop."""
    target, seeds = TARGETS[which]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for number, seed in enumerate(seeds()):
            Path(folder, str(number)).write_bytes(seed)
        atheris.Setup([sys.argv[0], folder, "-max_len=20000", "-rss_limit_mb=4096", "-timeout=20", *options], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
