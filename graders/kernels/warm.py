"""What JAX does once in a process, done once in the zygote for all that are born of it. `warm` does it.

Comes in: nothing. Goes out: a stock of MLIR contexts, and JAX's own code and caches used once. Must not: start a backend or a
thread, because forks after that hang; so nothing here is compiled or run.

Lowering without a backend, and where a context comes from, are internals of JAX, as is what else is set here: where they are others, that
part is left out.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

_STOCK = 6
_USES = 10  # of one context, as in JAX 0.12: what it interns is kept as long as it lives


def warm() -> None:
    """Prepare for forks that use JAX; without JAX loaded there is nothing to do."""
    if "jax" not in sys.modules:
        return
    _skip_plugins()
    programs = _trace()
    _fail()
    mlir: Any = sys.modules.get("jax._src.interpreters.mlir")
    make: Callable[[], Any] | None = getattr(mlir, "make_ir_context", None)
    if make is None or hasattr(mlir, "_create_ir_context"):  # JAX 0.12 keeps one context for each thread
        return
    _lower(mlir, make, programs)
    _stock_contexts(mlir, make)


def _trace() -> list[Any]:
    """Trace what most lessons use: 8 ms for the first trace in a process, 2 ms once Python has specialised JAX's code."""
    import jax
    import jax.numpy as jnp

    def example(values: Any, mask: Any) -> Any:
        kept = jnp.where(mask, values * values + 1.0, 0.0).sum()
        return jax.lax.cond(kept > 1.0, lambda v: v.sum(), lambda v: jnp.square(v).mean(), values)

    values = jax.ShapeDtypeStruct((8,), jnp.float32)
    rows = jax.ShapeDtypeStruct((2, 8), jnp.float32)
    mask = jax.ShapeDtypeStruct((8,), jnp.bool_)
    each = jax.vmap(jax.value_and_grad(jax.jit(example)), (0, None))
    return [jax.make_jaxpr(jax.jit(example))(values, mask), jax.make_jaxpr(each)(rows, mask)]


def _skip_plugins() -> None:
    """JAX looks through every installed package for accelerators when a backend starts, 6 ms, also where only the CPU may be used."""
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    if sys.modules["jax"].config.jax_platforms == "cpu" and hasattr(bridge, "_plugins_registered"):
        bridge._plugins_registered = True


def _fail() -> None:
    """Raise under JAX once: for each frame of an error it asks the disk whether the file is its own, 7 % of an examiner's time."""
    import jax

    tracebacks: Any = sys.modules.get("jax._src.traceback_util")
    if hasattr(tracebacks, "include_filename"):
        tracebacks.include_filename = functools.cache(tracebacks.include_filename)

    def fail(value: Any) -> Any:
        return 1.0 if value > 0 else -1.0

    for transformed in (jax.jit(jax.vmap(fail)), jax.jit(jax.vmap(jax.grad(fail))), jax.vmap(jax.jit(fail))):
        with contextlib.suppress(jax.errors.TracerBoolConversionError):
            jax.make_jaxpr(transformed)(jax.ShapeDtypeStruct((2,), "float32"))


def _lower(mlir: Any, make: Callable[[], Any], programs: list[Any]) -> None:
    """Lower what was traced: 23 ms for the first in a process, 3 ms later. A context of one thread starts none."""

    def single_threaded() -> Any:
        context = make()
        context.enable_multithreading(False)
        return context

    mlir.make_ir_context = single_threaded
    try:
        for program in programs:
            mlir.lower_jaxpr_to_module(
                "warm",
                program,
                num_const_args=0,
                in_avals=program.in_avals,
                ordered_effects=[],
                platforms=["cpu"],
                backend=None,
                axis_context=sys.modules["jax._src.sharding_impls"].ShardingContext(1),
                donated_args=[False] * len(program.in_avals),
                lowering_parameters=mlir.LoweringParameters(),
            )
    except (AttributeError, KeyError, TypeError):
        return
    finally:
        mlir.make_ir_context = make


def _stock_contexts(mlir: Any, make: Callable[[], Any]) -> None:
    """JAX makes an MLIR context for each lowering, 5 ms of registering dialects; from 0.12 on it uses one several times."""
    ready, mine = [make() for _ in range(_STOCK)], threading.local()

    def make_ir_context() -> Any:
        """This thread's context, which was made before the fork while there are such."""
        if getattr(mine, "left", 0) == 0:
            mine.context, mine.left = ready.pop() if ready else make(), _USES
        mine.left -= 1
        return mine.context

    mlir.make_ir_context = make_ir_context
