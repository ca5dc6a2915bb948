"""Programs that a candidate exported, as the examiner admits and runs them.

Comes in: bytes made by an adversary. Goes out: an `Artifact` that computes what the student's function computes for
arguments of fixed shapes, or `WireError`. Must not: run a program that could reach beyond its own arrays.

A host callback would put an address chosen by the candidate into this process, so a custom call is admitted by name only.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import msgspec
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from jax.interpreters import mlir

from graders.exam import values, wire
from graders.exam.wire import WireError

MAX_ARTIFACT_BYTES = 8 * 2**20
# Kernels inside jaxlib that look only at the buffers they are given: LAPACK by FFI, FFT, top-k, and sharding annotations.
_CUSTOM_CALLS = re.compile(
    r"lapack_[a-z0-9]+_ffi|dynamic_ducc_fft|ducc_fft|mhlo\.topk|Sharding|annotate_device_placement"
)

# What jax.numpy lowers to for a TPU; the compiler there knows these, and nothing of them is run.
_TPU_CALLS = re.compile(
    r"Qr|LuDecomposition|Eigh|ProductOfElementaryHouseholderReflectors|ApproxTopK|mhlo\.topk|TopK|PadToStatic|SliceToDynamic"
    r"|Sharding|annotate_device_placement"
)

_CONTEXT: Any = mlir.make_ir_context()  # 6 ms, which the zygote pays
_WAITING = {"infeed", "outfeed", "send", "recv"}  # operations that wait for somebody outside the program


class Artifact(msgspec.Struct, frozen=True):
    """One admitted program. `run` takes and returns flat sequences of arrays; `call` is the same, for use under a trace."""

    call: Callable[..., Any]
    run: Callable[..., Any]
    out_avals: tuple[Any, ...]
    operations: dict[str, int]


def spec_of(aval: wire.Aval) -> jax.ShapeDtypeStruct:
    """The shape and dtype that an aval stands for."""
    if aval.dtype.startswith("key:"):
        dtype: Any = values.key_dtype(aval.dtype[4:])
    else:
        dtype = values.dtype_named(aval.dtype)
    return jax.ShapeDtypeStruct(aval.shape, dtype, weak_type=aval.weak)


def aval_of(value: Any) -> wire.Aval:
    """The aval of an array, tracer or ShapeDtypeStruct."""
    kind = jax.typeof(value) if not isinstance(value, jax.ShapeDtypeStruct) else value
    return wire.Aval(tuple(kind.shape), values.dtype_name(kind.dtype), bool(getattr(kind, "weak_type", False)))


def admit(data: bytes, avals: Sequence[wire.Aval]) -> Artifact:
    """Check a serialised program and make it callable.

    Args:
        data: what `jax.export` serialised in the candidate.
        avals: the shapes and dtypes that were asked for.

    Raises:
        WireError: it is too large, malformed, made for other arguments, or calls what is not on the list.
    """
    exported, counts = read(data, avals, _CUSTOM_CALLS)
    return Artifact(exported.call, jax.jit(exported.call), tuple(exported.out_avals), counts)


def admit_for_tpu(data: bytes, avals: Sequence[wire.Aval]) -> tuple[jax.export.Exported, dict[str, int]]:
    """As `admit`, for a program that will be compiled for a TPU and not run. Returns it with its operation counts."""
    exported, counts = read(data, avals, _TPU_CALLS)
    if exported.platforms != ("tpu",):
        raise WireError("a program that is not made for a TPU")
    return exported, counts


def read(data: bytes, avals: Sequence[wire.Aval], calls: re.Pattern[str]) -> tuple[jax.export.Exported, dict[str, int]]:
    """A serialised program and its operation counts, checked as `admit` says; `calls` are the custom calls it may make."""
    if len(data) > MAX_ARTIFACT_BYTES:
        raise WireError(f"a program of {len(data):,} bytes (at most {MAX_ARTIFACT_BYTES:,})")
    try:
        exported = jax.export.deserialize(bytearray(data))
        _remember_module(exported)
        counts = _inspect(exported, calls)
    except WireError:
        raise
    except Exception as error:  # parsers of foreign bytes raise whatever they like
        raise WireError(f"a program that cannot be read: {type(error).__name__}: {str(error)[:300]}") from None
    wanted = [spec_of(aval) for aval in avals]
    if [(a.shape, a.dtype) for a in exported.in_avals] != [(s.shape, s.dtype) for s in wanted]:
        raise WireError("a program made for other arguments than those asked for")
    if exported.nr_devices != 1 or exported.ordered_effects or exported.unordered_effects:
        raise WireError("a program with side effects or for several devices")
    return exported, dict(counts)


def _remember_module(exported: jax.export.Exported) -> None:
    """Keep the text of its module, which is asked for here and by JAX wherever it is called, 2 ms each.

    JAX 0.12 asks for a module instead, with an argument, and uses it up.
    """
    asked, text = exported.mlir_module, functools.cache(exported.mlir_module)

    def mlir_module(*how: Any, **more: Any) -> Any:
        return asked(*how, **more) if how or more else text()

    object.__setattr__(exported, "mlir_module", mlir_module)  # its class is frozen


def export_elsewhere(
    function: Callable[..., Any], specs: Sequence[jax.ShapeDtypeStruct], platform: str
) -> wire.Lowered | None:
    """As `export`, for a platform that is not here, or None where none is named; the function is not traced again.

    What cannot be lowered there is told, not raised: it is right all the same.
    """
    try:
        return wire.Lowered(platform, export(function, specs, platform)) if platform else None
    except Exception as error:  # lowering rules of foreign code raise whatever they like
        return wire.Lowered(platform, problem=f"{type(error).__name__}: {error}"[:500])


def export(function: Callable[..., Any], specs: Sequence[jax.ShapeDtypeStruct], platform: str = "cpu") -> bytes:
    """Serialise `function`, which takes and returns flat sequences of arrays, for arguments of these shapes and dtypes, to run there.

    A `jax.debug.print` that was left in the function is not part of the program.
    """
    compiled = jax.jit(function)
    traced = compiled.trace(*specs).jaxpr
    if any(map(_is_debugging, traced.effects)):
        compiled = jax.jit(jaxpr_as_fun(_without_debugging(traced)))
    return bytes(jax.export.export(compiled, platforms=(platform,))(*specs).serialize())


def _is_debugging(effect: Any) -> bool:
    return "Debug" in type(effect).__name__


def _without_debugging(part: Any) -> Any:
    """A jaxpr, or a parameter of an equation that may hold some, without calls that only print."""
    if isinstance(part, ClosedJaxpr) and part.jaxpr is not part:  # one class from JAX 0.12 on
        return part.replace(jaxpr=_without_debugging(part.jaxpr))
    if isinstance(part, (tuple, list)):
        return type(part)(map(_without_debugging, part)) if type(part) in (tuple, list) else part
    if not isinstance(part, Jaxpr):
        return part
    equations = [
        one.replace(
            params={name: _without_debugging(value) for name, value in one.params.items()},
            effects=_quiet(one.effects),
        )
        for one in part.eqns
        if not one.primitive.name.startswith("debug_")
    ]
    return part.replace(eqns=equations, effects=_quiet(part.effects))


def _quiet(effects: Any) -> Any:
    return type(effects)(one for one in effects if not _is_debugging(one))


def count_operations(function: Any, args: Sequence[Any]) -> dict[str, int]:
    """Operation counts of the program that `function` becomes for `args`; for a view, of the candidate's own program."""
    program = getattr(type(function), "_program_operations", None)
    if program is not None:
        return dict(program(function, args))
    specs = [jax.ShapeDtypeStruct(np.shape(a), jnp.asarray(a).dtype) for a in args]
    return dict(_inspect(jax.export.export(jax.jit(function))(*specs), _CUSTOM_CALLS))


def _inspect(exported: jax.export.Exported, calls: re.Pattern[str]) -> Counter[str]:
    """Count operations by name, and refuse custom calls that are not on the list."""
    counts: Counter[str] = Counter()
    called: set[str] = set()
    with _CONTEXT:
        module = mlir.ir.Module.parse(exported.mlir_module())

        def visit(operation: Any) -> Any:
            dialect, _, name = operation.name.partition(".")
            if dialect == "stablehlo":
                counts[name] += 1
            if "call_target_name" in operation.attributes:
                called.add(mlir.ir.StringAttr(operation.attributes["call_target_name"]).value)
            elif name in _WAITING:
                called.add(name)
            return mlir.ir.WalkResult.ADVANCE

        module.operation.walk(visit)
    for target in called:
        if not calls.fullmatch(target):
            raise WireError(f"a program that calls {target[:100]!r}, which is not allowed in an examination")
        if target.startswith("lapack_"):
            _load_lapack()
    return counts


@functools.cache
def _load_lapack() -> None:
    """jaxlib finds LAPACK when jax.numpy first lowers a decomposition; a program that comes before that would crash."""
    jax.jit(jnp.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), jnp.float32))
