"""The values that may cross between candidate and examiner, as nodes of a heap.

Comes in: nothing. Goes out: the node types, told apart by their tags. Must not: import, evaluate or call what a node names.

A node points at others by index, so shared and cyclic structure survives and nesting is never deeper than the heap itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MAX_NODES = 500_000
MAX_DEPTH = 100  # of one value in another; rebuilding takes six Python frames for each
MAX_DIGITS = 100_000
# Parts of what is hashed, each counted as often as it is held: a tuple that holds one tuple twice, which holds one twice and so
# on, is small on the wire, and hashing it goes through 2**depth parts. A long number counts as many parts as it has words.
MAX_UNFOLDED, DIGITS_A_PART = 10_000_000, 16

Name = Annotated[str, Meta(max_length=200)]
Index = Annotated[int, Meta(ge=0, lt=MAX_NODES)]
Identity = Annotated[int, Meta(ge=0, lt=2**62)]
Items = Annotated[list[Index], Meta(max_length=MAX_NODES)]


class Node(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One value of a heap; subclasses are told apart by their tag."""


class BigInt(Node, tag="I"):
    """An integer beyond 64 bits, in hexadecimal."""

    digits: Annotated[str, Meta(pattern="^-?0x[0-9a-f]+$", max_length=MAX_DIGITS)]


class Exact(Node, tag="E"):
    """A decimal or a fraction, as Python writes it."""

    kind: Literal["Decimal", "Fraction"]
    text: Annotated[str, Meta(max_length=4000)]


class Surrogates(Node, tag="S"):
    """A string that UTF-8 cannot hold, as UTF-16 with lone surrogates."""

    data: bytes


class Bytes(Node, tag="Z"):
    """A bytes object."""

    data: bytes


class Complex(Node, tag="C"):
    """A complex number."""

    real: float
    imag: float


class Sequence(Node, tag="L"):
    """`key` names a mutable container that is kept in step on both sides; 0 for the immutable ones."""

    kind: Literal["list", "tuple", "set", "frozenset", "deque"]
    items: Items
    key: Identity


class Mapping(Node, tag="M"):
    """A dict or one of its standard kinds, always kept in step."""

    kind: Literal["dict", "OrderedDict", "defaultdict", "Counter"]
    keys: Items
    values: Items
    key: Identity


class NamedTuple(Node, tag="N"):
    """A named tuple, rebuilt from the names of its fields."""

    name: Name
    fields: list[Name]
    items: Items


class DataClass(Node, tag="D"):
    """Fields by value, kept in step like a container; `ref` is the object itself, for its methods."""

    name: Name
    fields: list[Name]
    items: Items
    ref: Identity
    callable: bool
    key: Identity


class Array(Node, tag="A"):
    """C-order bytes. `kind` says what to rebuild; `weak` is JAX's weak type."""

    kind: Literal["numpy", "scalar", "jax"]
    dtype: Name
    shape: Annotated[list[Annotated[int, Meta(ge=0, lt=2**40)]], Meta(max_length=64)]
    data: bytes
    weak: bool
    key: Identity


class PRNGKey(Node, tag="K"):
    """A typed key array: its implementation and, as an array node, its key data."""

    impl: Name
    data: Index


class Symbol(Node, tag="Y"):
    """A dtype, a well-known class or module, a device or a singleton, by name."""

    kind: Literal["dtype", "class", "module", "device", "singleton"]
    name: Name


class Span(Node, tag="P"):
    """A slice or a range."""

    kind: Literal["slice", "range"]
    start: Index
    stop: Index
    step: Index


class Ref(Node, tag="R"):
    """An object that stays with the sender."""

    id: Identity
    kind: Name
    callable: bool


class Back(Node, tag="B"):
    """An object of the receiver, named by the id that the receiver once sent."""

    id: Identity


class Same(Node, tag="="):
    """A mutable container that the receiver knows already."""

    key: Identity


class Hole(Node, tag="H"):
    """The place of a traced array in a call."""

    index: Identity


Struct = (
    BigInt | Exact | Surrogates | Bytes | Complex | Sequence | Mapping | NamedTuple | DataClass | Array | PRNGKey | Symbol | Span | Ref | Back
    | Same | Hole
)  # fmt: skip
Value = None | bool | int | float | str | Struct
