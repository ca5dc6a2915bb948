"""The wire: every kind of value that crosses is the same on the other side, and no bytes do more than be refused."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
import socket
import struct
from decimal import Decimal

import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graders.exam import nodes, wire
from graders.exam.decode import Decoder
from graders.exam.encode import Encoder
from graders.exam.peer import ChannelLost, Peer
from graders.exam.wire import WireError

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    left: object
    right: object


class Line:
    """Two ends in one process. What one end's encoder makes of a value, the other's decoder reads from the bytes."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        for end in (here, there):
            end.settimeout(5)  # reading a message must ask nothing of the other end
        self.ends = (Peer(here, 1), Peer(there, 2))

    def cross(self, value: object, reverse: bool = False) -> object:
        """The value as the other end sees it."""
        sender, receiver = reversed(self.ends) if reverse else self.ends
        encoder = Encoder(sender.tables)
        changes = encoder.changes()
        body = wire.Done(encoder.add(value))
        message = wire.decode(wire.encode(wire.Message(body, encoder.heap, changes)))
        return Decoder(receiver.tables, message).value(message.body.value)

    def close(self) -> None:
        """Close both ends."""
        for end in self.ends:
            end.channel.close()


@pytest.fixture
def line():
    """A fresh line."""
    made = Line()
    yield made
    made.close()


def crossed(value: object) -> object:
    """A value after crossing a fresh line."""
    line = Line()
    try:
        return line.cross(value)
    finally:
        line.close()


def print_of(value: object) -> object:
    """What makes a value that value, bit by bit, as something that Python compares without doubt."""
    if isinstance(value, (np.generic, np.ndarray)):
        plain = np.asarray(value)
        return (type(value).__name__, plain.dtype.str, str(plain.dtype), plain.shape, plain.tobytes())
    if isinstance(value, jax.Array):
        return ("jax", str(value.dtype), value.shape, value.weak_type, np.asarray(value).tobytes())
    if isinstance(value, float):
        return ("float", struct.pack("!d", value))
    if isinstance(value, complex):
        return ("complex", struct.pack("!dd", value.real, value.imag))
    if isinstance(value, tuple):
        return ("tuple", getattr(value, "_fields", None), *map(print_of, value))
    if isinstance(value, (list, collections.deque)):
        return (type(value).__name__, *map(print_of, value))
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, frozenset(map(print_of, value)))
    if isinstance(value, dict):
        return (type(value).__name__, *((print_of(k), print_of(v)) for k, v in value.items()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return (type(value).__name__, *((one.name, print_of(getattr(value, one.name))) for one in fields))
    if isinstance(value, Decimal):
        return ("Decimal", value.as_tuple())  # NaN differs from itself
    if isinstance(value, slice):
        return ("slice", *map(print_of, (value.start, value.stop, value.step)))
    return (type(value).__name__, value)


any_float = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("!d", struct.pack("!Q", bits))[0]) | st.floats()
any_text = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=20)
small = st.integers(-9, 9) | st.none()
classes = st.sampled_from(
    [int, bool, dict, type(None), ValueError, KeyError, np.float32, np.ndarray, jnp.float32, jax.Array]
)
plain_atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**300), 2**300)
    | any_float
    | any_text
    | st.binary(max_size=20)
)
atoms = (
    plain_atoms
    | st.complex_numbers()
    | st.decimals()
    | st.fractions()
    | st.sampled_from(
        [..., NotImplemented, np.dtype("int16"), np.dtype(">f4"), np.dtype(ml_dtypes.bfloat16), np, jnp, math]
    )
    | classes
    | st.builds(slice, small, small, small)
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9))
)
dtypes = (
    hnp.scalar_dtypes()
    | hnp.byte_string_dtypes(min_len=1)
    | hnp.unicode_string_dtypes(min_len=1)
    | st.sampled_from([np.dtype("longdouble"), np.dtype("M8"), np.dtype("m8[25s]")])
)


@st.composite
def numpy_arrays(draw):
    """An array of any dtype, shape and memory order, or a scalar of it."""
    dtype = draw(dtypes)
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    array = np.frombuffer(draw(st.binary(min_size=512, max_size=512)), np.uint8)
    if dtype.kind == "b":
        array = array % 2
    if dtype.kind == "U":  # any code point but no bit pattern beyond them
        array = (array.view("u4") % 0xD000).astype(dtype.str[0] + "u4").view(np.uint8)
    count = math.prod(shape) * dtype.itemsize
    array = np.resize(array, count).view(dtype).reshape(shape) if count else np.empty(shape, dtype)
    turn = draw(st.sampled_from(["as it is", "transposed", "every other", "scalar"]))
    if turn == "transposed":
        return array.T
    if turn == "every other" and array.ndim:
        return array[::-2]
    return array.flat[0] if turn == "scalar" and array.size else array


hashable = st.recursive(
    plain_atoms | classes,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)


def containers(inner):
    """Every kind of container around values of `inner`."""
    lists, maps = st.lists(inner, max_size=4), st.dictionaries(hashable, inner, max_size=4)
    return (
        lists
        | lists.map(tuple)
        | lists.map(collections.deque)
        | st.sets(hashable, max_size=4)
        | st.frozensets(hashable, max_size=4)
        | maps
        | maps.map(collections.OrderedDict)
        | maps.map(lambda one: collections.defaultdict(None, one))
        | st.dictionaries(hashable, st.integers(), max_size=4).map(collections.Counter)
        | st.builds(Point, inner, inner)
        | st.builds(Pair, inner, inner)
    )


anything = st.recursive(atoms | numpy_arrays(), containers, max_leaves=12)


@given(anything)
@example(-0.0)
@example(2**63)
@example(-(2**63) - 1)
@example("\ud83d")
@example({1: "an int", "1": "a text", (1, (2,)): None, 1.5: b""})
@example({True: "a bool"})
@example([[], (), {}, set(), frozenset(), np.zeros((0, 3)), np.str_(""), np.array([], "U")])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_value_is_the_same_on_the_other_side(value):
    """Whatever crosses by value has the same type, structure, dtype and bits when it arrives."""
    assert print_of(crossed(value)) == print_of(value)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "float16", "float32", "bfloat16", "float8_e5m2", "complex64"]
)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_a_jax_array_keeps_its_dtype_and_shape(dtype, shape):
    """A JAX array of every dtype that the lessons use arrives as a JAX array of that dtype, with the same bits."""
    value = jnp.arange(6).astype(dtype)[: math.prod(shape)].reshape(shape)
    assert print_of(crossed(value)) == print_of(value)


def test_a_float64_jax_array_arrives_where_float64_is_off():
    """A student who switched 64-bit numbers on hands over what is seen as 64-bit numbers, not cut to 32."""
    with jax.enable_x64(True):
        value = jnp.array([1 / 3, 2.0**200])
    found = crossed(value)
    assert str(found.dtype) == "float64"
    assert np.asarray(found).tolist() == [1 / 3, 2.0**200]


def test_weak_types_are_kept():
    """What JAX derived from a Python number promotes on the other side as it does here."""
    for value in (jnp.asarray(1.5), jnp.asarray(3), jnp.asarray(2j), jnp.asarray(1.5) * jnp.ones(3, jnp.bfloat16)):
        found = crossed(value)
        assert found.weak_type == value.weak_type
        assert (found * jnp.ones((), jnp.bfloat16)).dtype == (value * jnp.ones((), jnp.bfloat16)).dtype


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("count", [None, 3])
def test_a_random_key_draws_the_same_numbers(impl, count):
    """A typed PRNG key, or an array of them, arrives with its implementation: both sides draw the same numbers."""
    key = jax.random.key(7, impl=impl)
    key = key if count is None else jax.random.split(key, count)
    found = crossed(key)
    assert found.dtype == key.dtype
    assert found.shape == key.shape
    assert jax.random.key_data(found).tolist() == jax.random.key_data(key).tolist()


def test_a_device_is_found_again():
    """A device is the device of the same platform and number."""
    assert crossed(jax.devices()[0]) is jax.devices()[0]


def test_shared_and_cyclic_structure_survives(line):
    """Two places that hold one list hold one list afterwards; a list, dict or dataclass may contain itself."""
    inner = [1]
    one, two = line.cross([inner, (inner,)])
    assert one is two[0]
    loop = []
    loop.append({"back": loop})
    assert (found := line.cross(loop))[0]["back"] is found
    parent = Pair(None, [])
    parent.right.append(Pair(parent, None))
    assert (found := line.cross(parent)).right[0].left is found


def test_what_crossed_before_is_the_same_object(line):
    """A container that crosses twice is one container, whichever way it goes, and the owner gets its own back."""
    mine = [1, {"k": np.zeros(2)}, Pair(1, 2)]
    theirs = line.cross(mine)
    assert line.cross(mine) is theirs
    assert line.cross(theirs, reverse=True) is mine
    assert line.cross(theirs[2], reverse=True) is mine[2]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["list", "dict", "set", "deque", "array", "pair"]), st.booleans(), st.integers(-99, 99)
        ),
        max_size=12,
    )
)
@settings(max_examples=50, deadline=None)
def test_containers_stay_in_step(steps):
    """After any changes on either side both sides hold the same, as soon as a message has crossed."""
    line = Line()
    mine = {
        "list": [0],
        "dict": {0: 0},
        "set": {0},
        "deque": collections.deque([0]),
        "array": np.zeros(3, int),
        "pair": Pair(0, 0),
    }
    theirs = line.cross(mine)
    for kind, ours, number in steps:
        one = (mine if ours else theirs)[kind]
        if kind in ("list", "deque"):
            one.append(number)
        elif kind == "dict":
            one[number] = [number]
        elif kind == "set":
            one.symmetric_difference_update({number})
        elif kind == "array":
            one[number % 3] += number
        else:
            one.left = number
        line.cross(None, reverse=not ours)
        assert print_of(theirs) == print_of(mine)
    line.close()


def test_an_array_reshaped_in_place_crosses_anew(line):
    """An array that was resized or reinterpreted in place is seen as it is now."""
    mine = np.arange(4, dtype=np.int32)
    line.cross(mine)
    mine.resize(6, refcheck=False)
    assert line.cross(mine).tolist() == [0, 1, 2, 3, 0, 0]


class Silent:
    """An object that stays where it is."""


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(2, "V3"),
        np.zeros(2, [("a", int)]),
        np.array([Silent()]),
        np.dtype([("a", int)]),
        np.array(["a"], np.dtypes.StringDType()),
        Silent(),
        len,
        jax.jit(len),
    ],
    ids=["void", "structured", "objects", "structured dtype", "texts", "object", "function", "jitted"],
)
def test_what_cannot_cross_by_value_is_seen_as_a_view(line, value):
    """An object, or an array of a dtype that has no plain bytes, stays where it is; its owner gets the very same back."""
    seen = line.cross([1, value])
    assert seen[0] == 1
    assert type(seen[1]).__module__ == "graders.exam.views"
    assert line.cross(seen[1], reverse=True) is value


def test_a_donated_array_is_seen_as_a_view(line):
    """An array whose memory was given away has no value, and that is no reason to lose what stands beside it."""
    gone = jnp.ones(3)
    gone.delete()
    seen = line.cross({"gone": gone, "here": 1})
    assert seen["here"] == 1
    assert not isinstance(seen["gone"], jax.Array)


def deep(levels: int) -> list:
    """A list in a list in a list."""
    made: list = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    "value",
    [list(range(600_000)), deep(400), 2**500_000, np.zeros(150 * 2**20, np.uint8)],
    ids=["parts", "depth", "digits", "bytes"],
)
def test_what_is_too_large_is_refused_by_its_sender(line, value):
    """A value beyond the protocol's limits is an error where it is, and the next one crosses as if nothing had happened."""
    shared = [value]
    with pytest.raises(WireError, match="cross"):
        line.cross(shared)
    for end in line.ends:
        end.tables.undo()
    shared[0] = 1
    assert line.cross(shared) == [1]


# --- hostile frames ----------------------------------------------------------------------------------------------------


def read_all(message: wire.Message) -> None:
    """Read a whole message as an end of a line does that knows a list, a dict, a set, an array and an object."""
    line = Line()
    receiver = line.ends[1]
    known: list[object] = [[1], {"k": 1}, {1}, np.zeros(3), Pair(1, 2), Silent()]
    line.cross(known, reverse=True)
    try:
        decoder = Decoder(receiver.tables, message)
        for index in range(len(message.heap)):
            decoder.value(index)
        for index in (*message.rebound.values(), *getattr(message.body, "args", ())):
            decoder.value(index)
    finally:
        line.close()


def honest_frames() -> list[bytes]:
    """A frame for every kind of node and body."""
    line = Line()
    values = [
        [1, (2.5, None), {"a": {1}, (1,): frozenset({2})}, "\ud83d", b"z", 2**99, 1j],
        [np.arange(6).reshape(2, 3), np.float32(1), jnp.ones(3), jnp.asarray(1.0), jax.random.key(0)],
        [Point(1, [2]), Pair(1, len), collections.Counter("aab"), slice(1, 2), range(3), ..., int, np.dtype("f4"), jnp],
    ]
    frames = []
    for value in values:
        encoder = Encoder(line.ends[0].tables)
        index = encoder.add(value)
        aval = wire.Aval((2, 3), "<f4")
        steps = (wire.Vmap((0, None)), wire.Jvp((True, False)), wire.Transpose((True,), (aval,)))
        bodies = [wire.Done(index, b"x"), wire.Ask("export", 1, [index], {"k": index}, (aval,), steps)]
        frames += [wire.encode(wire.Message(body, encoder.heap, [], {"n": index})) for body in bodies]
    frames.append(wire.encode(wire.Message(wire.Raised(["builtins.ValueError"], "no", "told"))))
    line.close()
    return frames


FRAMES = honest_frames()


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_arbitrary_bytes_are_refused(data):
    """Bytes that nobody made as a message raise WireError and nothing else."""
    try:
        message = wire.decode(data)
    except WireError:
        return
    with_error_at_most(message)


@given(st.sampled_from(FRAMES), st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_frame_is_read_or_refused(frame, data):
    """A frame with bytes changed, cut out, cut off or doubled is a value or a WireError, and quickly."""
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(changed)))
        end = data.draw(st.integers(start, min(len(changed), start + 8)))
        changed[start:end] = data.draw(st.binary(max_size=8))
    try:
        message = wire.decode(bytes(changed))
    except WireError:
        return
    with_error_at_most(message)


@given(st.sampled_from(FRAMES), st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_a_truncated_frame_is_refused(frame, length):
    """No beginning of a frame is a frame."""
    with pytest.raises(WireError):
        wire.decode(frame[: length % len(frame)])


index = st.integers(0, 6)
key = st.integers(0, 14)
name = st.sampled_from(
    [
        "list",
        "class",
        "",
        "_graders_peer",
        "x",
        "with_fields",
        "<f4",
        "<U2",
        "int4",
        "V8",
        "O",
        "<f4,<i2",
        "key:rbg",
        "numpy",
        "threefry2x32",
        "cpu:0",
    ]
) | st.text(max_size=5)
indices = st.lists(index, max_size=4)
names = st.lists(name, max_size=4)
any_node = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=3),
    st.builds(nodes.BigInt, st.sampled_from(["0x1", "-0xff", "0x" + "f" * 90_000])),
    st.builds(nodes.Exact, st.sampled_from(["Decimal", "Fraction"]), st.text("0123456789/.eEnaN-", max_size=9)),
    st.builds(nodes.Surrogates, st.binary(max_size=5)),
    st.builds(nodes.Sequence, st.sampled_from(["list", "tuple", "set", "frozenset", "deque"]), indices, key),
    st.builds(nodes.Mapping, st.sampled_from(["dict", "OrderedDict", "defaultdict", "Counter"]), indices, indices, key),
    st.builds(nodes.NamedTuple, name, names, indices),
    st.builds(nodes.DataClass, name, names, indices, st.integers(0, 4), st.booleans(), key),
    st.builds(
        nodes.Array, st.sampled_from(["numpy", "scalar", "jax"]), name, st.lists(st.sampled_from([0, 1, 2, 2**39]), max_size=4),
        st.binary(max_size=24), st.booleans(), key,
    ),
    st.builds(nodes.PRNGKey, name, index),
    st.builds(nodes.Symbol, st.sampled_from(["dtype", "class", "module", "device", "singleton"]), name),
    st.builds(nodes.Span, st.sampled_from(["slice", "range"]), index, index, index),
    st.builds(nodes.Ref, st.integers(0, 4), name, st.booleans()),
    st.builds(nodes.Back, st.integers(0, 4)),
    st.builds(nodes.Same, key),
    st.builds(nodes.Hole, st.integers(0, 2**61)),
)  # fmt: skip
messages = st.builds(
    wire.Message,
    st.builds(wire.Done, index),
    st.lists(any_node, max_size=6),
    indices,
    st.dictionaries(name, index, max_size=2),
    st.lists(key, max_size=3),
)


@given(messages)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_well_formed_lies_are_read_or_refused(message):
    """A message of the right types that points nowhere, in circles, at wrong kinds or lies of sizes is at most a WireError."""
    with_error_at_most(wire.decode(msgspec.msgpack.encode(message)))


def with_error_at_most(message: wire.Message) -> None:
    """Read a message; anything but a value or a WireError is a failure of the test."""
    try:
        read_all(message)
    except WireError:
        return


@pytest.mark.parametrize(
    "heap",
    [
        [nodes.Sequence("tuple", [0], 0)],
        [nodes.Sequence("frozenset", [1], 0), nodes.Sequence("tuple", [0], 0)],
        [nodes.Sequence("list", [9], 1)],
        [nodes.Array("numpy", "<f4", [2**39, 2**39, 2**39], b"", False, 1)],
        [nodes.Array("numpy", "<f4", [1000], b"\0" * 8, False, 1)],
        [nodes.Array("jax", "<U1", [1], b"\0" * 4, False, 0)],
        [nodes.Array("scalar", "|u1", [1], b"\0", False, 0)],
        [nodes.Array("scalar", "<U1", [], b"\xff" * 4, False, 0)],
        [nodes.Array("numpy", ">U1", [1], b"\x7f\0\0\0", False, 1)],
        [nodes.Array("numpy", "|O", [1], b"\0" * 8, False, 1)],
        [nodes.Exact("Decimal", "one")],
        [nodes.Exact("Fraction", "1/0")],
        [nodes.Exact("Fraction", "1/2/3")],
        [nodes.Back(77)],
        [nodes.Same(77)],
        [nodes.Symbol("class", "os.system")],
        [nodes.Symbol("module", "os")],
        [nodes.NamedTuple("P", ["a"], [])],
        [nodes.Mapping("dict", [1], [1], 1), nodes.Sequence("list", [], 3)],
        [nodes.PRNGKey("pickle", 1), nodes.Array("jax", "<u4", [2], b"\0" * 8, False, 0)],
    ],
    ids=["cyclic tuple", "cyclic set", "no such node", "huge", "short", "jax text", "scalar with axes", "no such character", "nor this", "objects", "no decimal", "no fraction", "nor this one", "no such object",
         "no such container", "no such class", "no such module", "fields", "unhashable key", "no such key"],
)  # fmt: skip
def test_what_does_not_hold_together_is_refused(line, heap):
    """Each kind of lie that a typed message can still tell is a WireError."""
    message = wire.decode(wire.encode(wire.Message(wire.Done(0), heap)))
    with pytest.raises(WireError):
        Decoder(line.ends[0].tables, message).value(0)


@pytest.mark.parametrize(
    "change",
    [
        nodes.Sequence("list", [], 2),
        nodes.Mapping("dict", [], [], 4),
        nodes.Array("numpy", "<f8", [2], b"\0" * 16, False, 6),
        nodes.Array("numpy", "|u1", [24], b"\0" * 24, False, 6),
        nodes.Sequence("list", [], 99),
        7,
    ],
    ids=["list to dict", "dict to list", "other shape", "other dtype", "never crossed", "no container"],
)
def test_a_change_must_fit_what_it_changes(line, change):
    """A claim that a container changed into another kind is refused, and the container is as it was."""
    known = [{"a": 1}, [1], np.ones(3)]
    sender = line.ends[1]
    for one in known:
        line.cross(one, reverse=True)
    with pytest.raises(WireError):
        Decoder(sender.tables, wire.decode(wire.encode(wire.Message(wire.Done(0), [change], [0]))))
    assert print_of(known) == print_of([{"a": 1}, [1], np.ones(3)])


@pytest.mark.parametrize(
    "said",
    [b"", b"\0", struct.pack("!Q", 2**63), struct.pack("!Q", 5) + b"hello", struct.pack("!Q", 3) + b"hi",
     *(struct.pack("!Q", len(frame)) + frame for frame in FRAMES[1:4])],
    ids=range(8),
)  # fmt: skip
def test_an_asker_that_hears_nonsense_loses_the_channel(said):
    """Whatever bytes answer a question, the asker gets an answer, an exception of its own, or ChannelLost."""
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    theirs.sendall(said)
    theirs.shutdown(socket.SHUT_WR)
    peer = Peer(ours, 2, allows=lambda op, name, target: False, tell=False)
    # the last frame is an honest exception, the others are nonsense or answers
    with ours, theirs, contextlib.suppress(ChannelLost, ValueError):
        peer.ask("names", 0, "x")
