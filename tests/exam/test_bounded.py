"""Laws of hostile messages and programs: whatever their structure, they are read or refused in bounded time and memory."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graders import compare
from graders.exam import nodes, values, wire
from graders.exam.decode import Decoder
from graders.exam.encode import Encoder
from graders.exam.peer import Peer
from graders.exam.wire import WireError

SECONDS, MEBIBYTES = 5, 600
KINDS = ("tuple", "frozenset", "list", "set", "deque")


def read(heap: list[nodes.Value]) -> object:
    """The first value of a heap, as a receiver reads it from bytes."""
    here, there = socket.socketpair()
    with here, there:
        message = wire.decode(wire.encode(wire.Message(wire.Done(0), heap)))
        return Decoder(Peer(here, 1).tables, message).value(0)


def within_bounds(heap: list[nodes.Value]) -> None:
    """Read a heap or see it refused, quickly and without taking much memory."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.suppress(WireError):
        read(heap)
    assert time.monotonic() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEBIBYTES * 1024


@st.composite
def webs(draw) -> list[nodes.Value]:
    """A heap of containers that hold each other often: deep, shared and cyclic."""
    size = draw(st.integers(1, 60))
    near, copies = draw(st.integers(0, 3)), draw(st.integers(1, 4))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    heap: list[nodes.Value] = []
    for index in range(size):
        items = [draw(st.integers(max(0, index - near), min(size, index + 3))) for _ in range(copies)]
        kind = kinds[index % len(kinds)]
        if draw(st.integers(0, 9)) == 0:
            heap.append(nodes.Mapping("dict", items, items, 10**6 + index))
        elif draw(st.integers(0, 9)) == 0:
            heap.append(nodes.NamedTuple("T", [f"f{n}" for n in range(copies)], items))
        else:
            heap.append(nodes.Sequence(kind, items, 10**6 + index))  # type: ignore[arg-type]
    return [*heap, 0]


@given(webs())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_web_of_containers_is_read_or_refused(heap):
    """Containers that hold each other in any depth, circle or number of copies cost no more than a few seconds."""
    within_bounds(heap)


@pytest.mark.parametrize("outer", ["set", "frozenset", "tuple"])
@pytest.mark.parametrize("depth", [10, 30, 90])
def test_a_tuple_that_unfolds_without_end_is_refused(outer, depth):
    """A tuple that holds one tuple twice, and so on, would be hashed in 2**depth steps: refused, unless that is little."""
    held = [nodes.Sequence("tuple", [index + 2, index + 2], 0) for index in range(depth)]
    heap = [nodes.Sequence(outer, [1], 10**6), *held, nodes.Sequence("tuple", [], 0)]
    if 2**depth < nodes.MAX_UNFOLDED:
        assert len(read(heap)) == 1
    else:
        with pytest.raises(WireError, match="unfolds"):
            read(heap)
    within_bounds(heap)


@pytest.mark.parametrize("kind", ["tuple", "set"])
def test_depth_and_number_are_refused(kind):
    """A chain of containers without end, and one that holds as many copies of a long number as there may be, are refused."""
    chain = [nodes.Sequence(kind, [index + 1], 10**6 + index) for index in range(10_000)]
    copies = nodes.Sequence(kind, [1] * (nodes.MAX_NODES - 1), 10**6)
    for heap in (
        [*chain, 0],
        [copies, nodes.BigInt("0x" + "f" * 90_000)],
        [copies, nodes.Exact("Fraction", "1/" + "7" * 3000)],
    ):
        within_bounds(heap)
        with pytest.raises(WireError):
            read(heap)


def test_what_would_be_refused_is_not_sent():
    """A sender says of such a value that it cannot cross, so that nobody is taken for a forger."""
    here, there = socket.socketpair()
    held: tuple[object, ...] = ()
    for _ in range(40):
        held = (held, held)
    with here, there:
        for value in (held, [held, held], {1: held}, [(7**9999,) * 99_999]):
            with pytest.raises(WireError, match="unfolds"):
                Encoder(Peer(here, 1).tables).add(value)


# Bits that make a number of so many bytes none
NONE = {
    "<f8": 0x7FF0_0000_0000_0001,
    "<c16": 0x7FF0_0000_0000_0001,
    "<f4": 0x7F80_0001,
    "<f2": 0x7C01,
    "bfloat16": 0x7F81,
}


@given(st.integers(0, 2**128 - 1), st.sampled_from(sorted(NONE)))
@settings(max_examples=50, deadline=None)
def test_a_nan_of_any_payload_is_a_nan(payload, dtype):
    """Bits that are not a number arrive as those bits, and are equal to no number, whatever else stands in them."""
    size = 8 if dtype == "<c16" else values.dtype_named(dtype).itemsize
    data = bytes(
        a | b for a, b in zip(payload.to_bytes(16, "little"), NONE[dtype].to_bytes(size, "little") * 8, strict=False)
    )
    found = read([nodes.Array("numpy", dtype, [16 // values.dtype_named(dtype).itemsize], data, False, 10**6)])
    assert found.tobytes() == data
    for one in found:
        assert compare.difference(one, np.zeros((), found.dtype)[()]) is not None


@pytest.mark.parametrize("dtype", ["<f4", "|u1", "<U500000000", "|S2000000000", "|V1000000000", "bfloat16", "M8[as]"])
def test_an_array_is_as_large_as_its_bytes(dtype):
    """A shape or dtype that promises a gigabyte takes none: what counts are the bytes that came."""
    for shape in ([2**30], [2**39, 2**39], [2**20, 2**20, 2**20], [0, 2**39], [2**39] * 8 + [0]):
        for data in (b"", b"\0" * 64):
            within_bounds([nodes.Array("numpy", dtype, shape, data, False, 10**6)])


DAMAGED = """
import random, sys
import jax, jax.numpy as jnp
from graders.exam import artifacts
from graders.exam.wire import WireError

spec, chance = jax.ShapeDtypeStruct((3,), jnp.float32), random.Random(int(sys.argv[1]))
programs = [artifacts.export(one, [spec]) for one in (
    lambda x: (jnp.sin(x) + 1.0,),
    lambda x: (jax.lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), jnp.sort(x)),
)]
for _ in range(60):
    changed = bytearray(chance.choice(programs))
    for _ in range(chance.randint(1, 4)):
        place, how = chance.randrange(len(changed)), chance.random()
        if how < 0.6:
            changed[place] ^= 1 << chance.randrange(8)
        elif how < 0.8:
            del changed[place : place + 8]
        elif how < 0.9:
            del changed[max(place, 1) :]
        else:
            changed[place:place] = chance.randbytes(8)
    try:
        artifacts.admit(bytes(changed), [artifacts.aval_of(spec)])
    except WireError:
        pass
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_damaged_program_is_admitted_or_refused(seed):
    """A program with bits flipped, cut off or put in is one that computes the shapes asked for, or a WireError; at worst
    jaxlib's parser ends the process that read it, which is an examiner that is lost, and no points.
    """
    done = subprocess.run([sys.executable, "-c", DAMAGED, str(seed)], capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, -signal.SIGSEGV, -signal.SIGABRT), done.stderr[-2000:].decode(errors="replace")
