"""Functions of this side, transformed and evaluated for the other side.

Comes in: a question about a function with its chain of transformations. Goes out: arrays, or a serialised program. Must
not: know who asks; what may be asked for is decided before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from graders.exam import artifacts, wire
from graders.exam.tables import Hole, fill


def answer(ask: wire.Ask, function: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, bytes]:
    """Answer `apply` with (structure of the result, arrays), and `export` with (structure, serialised program)."""
    template, told = args[1], {}

    def flat(*arrays: Any) -> tuple[Any, ...]:
        positional, named = fill(template, arrays)
        leaves, tree = jax.tree.flatten(function(*positional, **named))
        told["result"] = jax.tree.unflatten(tree, [Hole(index) for index in range(len(leaves))])
        return tuple(leaves)

    composed: Callable[..., Any] = flat
    steps = list(ask.transforms)
    while steps:
        step = steps.pop(0)
        if isinstance(step, wire.Jvp) and steps and _reverses(step, steps[0]):
            steps.pop(0)
            composed = _reverse(composed, step)
        else:
            composed = _COMPOSE[type(step)](composed, step)
    if ask.op == "export":
        data = artifacts.export(composed, [artifacts.spec_of(aval) for aval in ask.avals], str(args[2]))
        return told["result"], data
    arrays = composed(*args[2])
    return (told["result"], tuple(arrays)), b""


def _vmap(function: Callable[..., Any], step: wire.Vmap) -> Callable[..., Any]:
    return jax.vmap(function, in_axes=step.in_axes)


def _push(function: Callable[..., Any], step: wire.Jvp) -> Callable[..., Any]:
    count = len(step.active)

    def pushed(*arrays: Any) -> tuple[Any, ...]:
        primals, tangents = arrays[:count], iter(arrays[count:])

        def moving(*some: Any) -> tuple[Any, ...]:
            given = iter(some)
            return tuple(function(*[next(given) if on else p for on, p in zip(step.active, primals, strict=True)]))

        active = tuple(p for on, p in zip(step.active, primals, strict=True) if on)
        _, out = jax.jvp(moving, active, tuple(tangents))
        return tuple(t for t in out if t.dtype != jax.dtypes.float0)

    return pushed


def _pull(function: Callable[..., Any], step: wire.Transpose) -> Callable[..., Any]:
    known_count = step.linear.count(False)

    def pulled(*arrays: Any) -> tuple[Any, ...]:
        known, cotangents = arrays[:known_count], arrays[known_count:]

        def linear(*some: Any) -> tuple[Any, ...]:
            given, fixed = iter(some), iter(known)
            return tuple(function(*[next(given) if on else next(fixed) for on in step.linear]))

        # A linear function has the same transpose at every point; zero is one.
        zeros = [jnp.zeros(spec.shape, spec.dtype) for spec in map(artifacts.spec_of, step.avals)]
        return tuple(jax.vjp(linear, *zeros)[1](tuple(cotangents)))

    return pulled


def _reverses(step: wire.Jvp, after: wire.Transform) -> bool:
    """Whether the two together are reverse mode: all tangents, and nothing else, are transposed."""
    pattern = (False,) * len(step.active) + (True,) * sum(step.active)
    return isinstance(after, wire.Transpose) and after.linear == pattern


def _reverse(function: Callable[..., Any], step: wire.Jvp) -> Callable[..., Any]:
    """Reverse mode at once: a function with a rule of its own for it (custom_vjp) has no forward mode to transpose."""
    count = len(step.active)

    def pulled(*arrays: Any) -> tuple[Any, ...]:
        primals, cotangents = arrays[:count], iter(arrays[count:])

        def moving(*some: Any) -> tuple[Any, ...]:
            given = iter(some)
            return tuple(function(*[next(given) if on else p for on, p in zip(step.active, primals, strict=True)]))

        out, pull = jax.vjp(moving, *[p for on, p in zip(step.active, primals, strict=True) if on])
        return tuple(pull(tuple(next(cotangents) if _inexact(one) else _no_cotangent(one) for one in out)))

    return pulled


def _inexact(value: Any) -> bool:
    return bool(jax.dtypes.issubdtype(jax.typeof(value).dtype, np.inexact))


def _no_cotangent(value: Any) -> Any:
    return np.zeros(np.shape(value), jax.dtypes.float0)


_COMPOSE: dict[type, Callable[..., Any]] = {wire.Vmap: _vmap, wire.Jvp: _push, wire.Transpose: _pull}
