"""What JAX does once in a process, done once in the zygote for all that are born of it. `warm` does it.

Comes in: nothing. Goes out: a stock of MLIR contexts, and JAX's own caches filled by tracing. Must not: start a backend or
a thread, because forks after that hang; so nothing here is lowered or run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_STOCK = 24  # an examination of the first lesson lowers 16 programs in its candidate and 6 in its examiner


def warm() -> None:
    """Prepare for forks that use JAX; without JAX loaded there is nothing to do."""
    if "jax" in sys.modules:
        _trace()
        _stock_contexts()


def _stock_contexts() -> None:
    """JAX makes an MLIR context for each lowering, 5 ms of registering dialects. Each of these, too, is used once."""
    mlir: Any = sys.modules.get("jax._src.interpreters.mlir")
    make: Callable[[], Any] | None = getattr(mlir, "make_ir_context", None)
    if make is None or hasattr(mlir, "_create_ir_context"):  # JAX 0.12 keeps one context for each thread
        return
    ready = [make() for _ in range(_STOCK)]

    def make_ir_context() -> Any:
        """A context that was made before the fork, while there are some."""
        try:
            return ready.pop()
        except IndexError:
            return make()

    mlir.make_ir_context = make_ir_context


def _trace() -> None:
    """Trace what most lessons use, so that Python has specialised JAX's code: 8 ms for the first trace in each process."""
    import jax
    import jax.numpy as jnp

    def example(values: Any, mask: Any) -> Any:
        kept = jnp.where(mask, values * values + 1.0, 0.0).sum()
        return jax.lax.cond(kept > 1.0, lambda v: v.sum(), lambda v: jnp.square(v).mean(), values)

    values = jax.ShapeDtypeStruct((8,), jnp.float32)
    rows = jax.ShapeDtypeStruct((2, 8), jnp.float32)
    mask = jax.ShapeDtypeStruct((8,), jnp.bool_)
    jax.make_jaxpr(jax.jit(example))(values, mask)
    jax.make_jaxpr(jax.vmap(jax.value_and_grad(jax.jit(example)), (0, None)))(rows, mask)
