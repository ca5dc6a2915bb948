"""Comparison by value: what is the same passes, what is not is told, and no object is asked about itself."""

from __future__ import annotations

import collections
import math
from decimal import Decimal
from fractions import Fraction

import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders import compare, tolerances
from graders.compare import Allowed, difference

atoms = (
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.complex_numbers() | st.text() | st.binary()
    | st.sampled_from([..., int, np.dtype("f4"), range(3), slice(1, 2), frozenset({1}), {1, 2}])
)  # fmt: skip
arrays = hnp.arrays(
    hnp.scalar_dtypes() | hnp.unicode_string_dtypes(min_len=1),
    hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3),
)
values = st.recursive(
    atoms | arrays,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
)


@given(values)
@settings(deadline=None)
def test_a_value_does_not_differ_from_itself(value):
    """Every value of ours, NaN and empty ones too, is the same as itself."""
    assert difference(value, value) is None


@given(values, values)
@settings(deadline=None)
def test_a_difference_is_a_sentence(one, other):
    """Comparing any two values ends in None or in a text, and never raises."""
    found = difference(one, other)
    assert found is None or (isinstance(found, str) and found)
    assert isinstance(compare.show(one), str)
    assert len(compare.show(one)) <= 600


@given(st.integers(), st.integers(1, 9))
def test_integers_are_compared_exactly(number, more):
    """Two Python integers of any size are equal or not; no digit is lost on the way through a float."""
    wide = number * 10**30
    assert difference(wide, wide) is None
    assert difference(wide + more, wide) is not None
    assert difference(np.int64(2**62 + more), np.int64(2**62)) is not None


def test_an_integer_beyond_every_float_differs_from_a_number():
    """A number that no float can hold is another number, not an error of the comparison."""
    assert difference(10**400, 1.0) is not None
    assert difference(1.0, 10**400) is not None
    assert difference(10**5000, 7) is not None
    assert "integer" in compare.show(10**5000)


# Unit round-off of each format is 2**-significant bits; each default tolerance allows some of it and less than a percent or two.
FORMATS = {"bfloat16": 8, "float8_e5m2": 3, "float16": 11, "float32": 24, "float64": 53}


@pytest.mark.parametrize("name", FORMATS)
def test_the_tolerance_follows_the_dtype(name):
    """Rounding to a format passes where the wanted value is exact; an error of a hundred times more does not."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    exact = np.linspace(1.0, 1.9, 7)
    assert difference(exact.astype(dtype), exact) is None or name.startswith("float8")
    relative, _ = tolerances.default("cpu", np.zeros(1, dtype))
    assert relative >= 2.0 ** -FORMATS[name] or name.startswith("float8")
    assert (
        difference(
            (exact * (1 + 0.4 * relative)).astype(np.float64), exact.astype(dtype).astype(np.float64), Allowed(relative)
        )
        is None
    )
    assert (
        difference(np.asarray(1 + 5 * relative), np.asarray(1.0, dtype).astype(np.float64), Allowed(relative))
        is not None
    )


WINDOW = object()


@pytest.mark.parametrize(
    ("actual", "wanted", "same"),
    [
        (np.float32(1 / 3), 1 / 3, True),  # a literal brings no dtype: float32's own rounding is allowed
        (np.float32(0.333), 1 / 3, False),
        (1 / 3 + 1e-5, 1 / 3, False),  # two Python floats are float64
        (np.float32([1, 2]), np.float64([1 + 1e-6, 2]), True),  # the coarser of two decides
        (jnp.float32(55.001), 55.0, True),  # 2e-5 of 55 and 2e-5 more
        (jnp.float32(55.002), 55.0, False),
        (jnp.bfloat16(1.01), 1.0, True),
        (np.float16(1.01), 1.0, False),
        (58.0, 55.0, False),
        (Fraction(1, 3), Fraction(2, 6), True),
        (Fraction(1, 3), Fraction(1, 4), False),
        (Fraction(1, 3), 1 / 3, True),
        (1 / 3, Fraction(1, 3), True),
        (Decimal("0.1"), 0.1, True),
        (Decimal("0.10"), Decimal("0.1"), True),
        (Decimal("NaN"), 0.1, False),
        (np.float32(1 / 3), Fraction(1, 3), True),
        (Fraction(10**400), 1.0, False),
        (55, 55.0, True),
        (np.int32(55), 55, True),
        (np.int32(56), 55, False),
        (True, 1, False),
        (np.True_, True, True),
        (np.array([True]), np.array([1]), False),
        (1, True, False),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (1e300, math.inf, False),
        (-0.0, 0.0, True),
        (1 + 1j, 1 + 1j, True),
        (1 + 1j, 1.0, False),
        (np.complex64(1 + 1e-6j), 1.0, True),
        (np.zeros((2, 1)), np.zeros(2), False),  # nothing is broadcast
        (np.zeros(()), 0.0, True),
        (np.zeros((1,)), 0.0, False),
        (np.zeros((0, 3)), np.zeros((3, 0)), False),
        ([0.0], np.zeros(1), False),  # a list is no array
        (np.zeros(1), [0.0], False),
        ([1.0, 2.0], [1.0, 2.0 + 1e-12], True),
        ([1.0], (1.0,), False),
        ((1.0,), [1.0], False),
        ([1.0, 2.0], [1.0], False),
        ([1], [1, 2], False),
        ({"a": [1.0]}, {"a": [1.0]}, True),
        ({"a": 1.0, "b": 2}, {"b": 2, "a": 1.0}, True),
        ({"a": 1.0}, {"a": 1.0, "b": 2}, False),
        ({"a": 1.0}, [("a", 1.0)], False),
        (collections.OrderedDict(a=1), {"a": 1}, True),
        ({np.int64(1): "a", (1, None): 2}, {1: "a", (1, None): 2}, True),
        ({WINDOW: 1}, {WINDOW: 1}, True),
        ({WINDOW: 1}, {object(): 1}, False),
        (WINDOW, WINDOW, True),
        (WINDOW, object(), False),
        (collections.Counter("aab"), {"a": 2, "b": 1}, True),
        ("abc", "abc", True),
        ("abc", b"abc", False),
        ("", None, False),
        (None, None, True),
        (0, None, False),
        ({1, 2}, {2, 1}, True),
        ({1}, frozenset({1}), False),
        (float, float, True),
        (float, int, False),
        (np.array(["a", "b"]), np.array(["a", "b"]), True),
        (np.array(["a", "b"]), np.array(["a", "c"]), False),
        (np.array("2020", "M8[Y]"), np.array("2020", "M8[Y]"), True),
        (np.array("2020", "M8[Y]"), np.array("2021", "M8[Y]"), False),
        (np.array(["a"]), np.array([1.0]), False),
    ],
)  # fmt: skip
def test_known_pairs(actual, wanted, same):
    """Pairs whose sameness follows from the rules of the documentation."""
    assert (difference(actual, wanted) is None) is same


def test_random_keys_are_compared_by_what_they_draw():
    """A typed key is the same as one of the same implementation and data."""
    assert difference(jax.random.key(1), jax.random.key(1)) is None
    assert difference(jax.random.key(2), jax.random.key(1)) is not None
    assert difference(jax.random.key(1, impl="rbg"), jax.random.key(1)) is not None
    assert difference(jax.random.key_data(jax.random.key(1)), jax.random.key(1)) is not None


def test_a_tolerance_that_is_given_is_used():
    """`rtol` and `atol` replace the defaults, each by itself."""
    assert difference(1.05, 1.0, Allowed(rtol=0.1)) is None
    assert difference(1.05, 1.0, Allowed(atol=0.1)) is None
    assert difference(np.float32(1.00001), 1.0, Allowed(0.0, 0.0)) is not None
    assert difference(3, 2, Allowed(atol=1)) is None
    assert difference([3], [2], Allowed(atol=1)) is None


def test_the_place_of_the_first_difference_is_told():
    """Of nested values the text names the item or key that differs."""
    assert difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}).startswith("key 'a': item 1: key 'b': ")
    assert "shape [3]" in difference(np.zeros(3), np.zeros(2))


@pytest.mark.parametrize(
    ("actual", "dtype", "same"),
    [
        (np.float32(1), np.float32, True),
        (jnp.ones(3), "float32", True),
        (np.ones(3), np.float32, False),
        (jnp.ones(3, jnp.bfloat16), jnp.bfloat16, True),
        (jnp.ones(3, int), np.int32, True),
        ([1.0], np.float32, False),
        (1.0, np.float32, False),
        ("text", np.float32, False),
    ],
)
def test_a_wanted_dtype_is_exactly_that_dtype(actual, dtype, same):
    """float64 where float32 was asked for is a difference."""
    assert (compare.dtype_difference(actual, dtype) is None) is same


class Loud:
    """An object that must not be asked anything."""

    def _asked(self, *args: object, **kwargs: object):
        raise AssertionError("the object was asked")

    __eq__ = __ne__ = __lt__ = __array__ = __float__ = __int__ = __index__ = __len__ = __iter__ = __repr__ = __str__ = (
        _asked
    )
    __jax_array__ = __array_ufunc__ = __bool__ = __getitem__ = __format__ = _asked
    __hash__ = object.__hash__


class Lying(Loud):
    """One that also claims to be a number."""

    @property
    def __class__(self):
        return float


class Quiet(np.ndarray):
    """An array that would equal everything."""

    def __eq__(self, other):
        raise AssertionError("the object was asked")

    def __array_ufunc__(self, *args, **kwargs):
        raise AssertionError("the object was asked")


@pytest.mark.parametrize("make", [Loud, Lying, lambda: np.zeros(2).view(Quiet)], ids=["loud", "lying", "array"])
@pytest.mark.parametrize(
    "wanted", [1.0, 1, "x", None, [1.0], (1.0,), {"a": 1}, np.zeros(2), jnp.zeros(2), {1}, ...], ids=repr
)
def test_no_object_is_asked_whether_it_is_equal(make, wanted):
    """An object that is no plain value differs from every wanted value, and none of its methods is called."""
    value = make()
    for actual, other in (
        (value, wanted),
        ([value], [wanted]),
        ({"k": value}, {"k": wanted}),
        ((1, value), (1, wanted)),
    ):
        assert isinstance(difference(actual, other), str)
    held = np.empty(1, object)
    held[0] = value
    assert isinstance(compare.show([{"k": (value,)}, value, {1: value}, held]), str)
    assert isinstance(compare.show(held), str)


def test_long_values_are_shown_short():
    """A text for staff stays readable, and a value that contains itself has one."""
    loop = [1]
    loop.append(loop)
    assert len(compare.show(["x" * 10_000] * 100)) <= 600
    assert compare.show(loop)
    assert len(compare.show(np.zeros((1000, 1000)))) <= 600
    assert compare.show(jnp.float32(1.5)) == "1.5 (float32, shape [])"
