"""Views under `jit`, `vmap`, `grad`, `jvp` and any composition of them.

Comes in: a call of a view in which some arrays are traced. Goes out: one JAX primitive whose rules note the transformation
and ask the other side to do it: with concrete arrays the other side computes, under `jit` it exports a program.
Must not: guess a derivative, or run an artifact that `artifacts.admit` has not let in.

Asking for the composed function keeps the meaning of plain JAX: outside `jit`, `grad` sees concrete values, so a Python
`if` is fine there, as it would be in one process; under `jit` it raises TracerBoolConversionError here, as it should.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from graders.exam import artifacts, wire
from graders.exam.tables import Hole, fill, flatten

if TYPE_CHECKING:
    from graders.exam.peer import Peer

Chain = tuple[wire.Transform, ...]
Avals = tuple[wire.Aval, ...]

view_call = Primitive("view_call")
view_call.multiple_results = True


class Program:
    """One call of one view: the function of its traced arrays that it stands for."""

    _numbers = itertools.count(1)

    def __init__(self, peer: Peer, target: int, template: Any) -> None:
        self.peer = peer
        self.target = target
        self.template = template
        self.number = next(Program._numbers)
        self.result: Any = (
            None  # the structure of the result with a Hole for each array, once any evaluation has told it
        )
        self.known: dict[tuple[Chain, Avals], tuple[Any, ...]] = {}
        self._artifacts: dict[tuple[Chain, Avals], tuple[artifacts.Artifact, wire.Lowered | None]] = {}

    def apply(self, chain: Chain, arrays: Sequence[Any]) -> list[jax.Array]:
        """Let the other side compute the transformed function on concrete arrays."""
        avals = tuple(map(artifacts.aval_of, arrays))
        (self.result, leaves), _ = self.peer.request(
            "apply", self.target, [self.number, self.template, tuple(arrays)], avals=avals, chain=chain
        )
        return [jnp.asarray(leaf) for leaf in leaves]

    def artifact(self, chain: Chain, avals: Avals) -> artifacts.Artifact:
        """The transformed function as an admitted program for arrays of these shapes and dtypes."""
        if (chain, avals) not in self._artifacts:
            wanted = [self.number, self.template, jax.default_backend(), self.peer.elsewhere]
            self.result, told = self.peer.request("export", self.target, wanted, avals=avals, chain=chain)
            self._artifacts[chain, avals] = admitted(told.artifact, avals), told.elsewhere
        artifact, elsewhere = self._artifacts[chain, avals]
        if elsewhere is not None:
            self.peer.on_program(self.target, chain, avals, elsewhere)
        return artifact

    def out_avals(self, chain: Chain, avals: Avals) -> tuple[Any, ...]:
        """Shapes and dtypes of the results; derived where they follow from what is known, else asked for by exporting."""
        if (chain, avals) in self.known:
            return self.known[chain, avals]
        if chain and isinstance(chain[-1], wire.Transpose):
            return tuple(_shaped(artifacts.spec_of(aval)) for aval in chain[-1].avals)
        if chain and isinstance(chain[-1], wire.Jvp):
            primal = self.known.get((chain[:-1], avals[: len(chain[-1].active)]))
            if primal is not None:
                return tuple(aval for aval in primal if _inexact(aval))
        return self.artifact(chain, avals).out_avals


def call(peer: Peer, target: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the other side's `target` where some leaves of the arguments are tracers; the others go by value."""
    leaves, tree = flatten((args, kwargs))
    traced = [leaf for leaf in leaves if isinstance(leaf, jax.core.Tracer)]
    holes = iter(range(len(traced)))
    filled = [Hole(next(holes)) if isinstance(leaf, jax.core.Tracer) else leaf for leaf in leaves]
    program = _program(peer, target, tree, filled)
    results = view_call.bind(*traced, program=program, chain=())
    return fill(program.result, results)


def operations(peer: Peer, target: int, args: tuple[Any, ...]) -> dict[str, int]:
    """Operation counts of the other side's program for arguments of these shapes and dtypes."""
    leaves, tree = jax.tree.flatten((args, {}))
    avals = tuple(artifacts.aval_of(jnp.asarray(one)) for one in leaves)
    program = _program(peer, target, tree, [Hole(index) for index in range(len(leaves))])
    return program.artifact((), avals).operations


def _program(peer: Peer, target: int, tree: Any, leaves: list[Any]) -> Program:
    """The program of a call; the same call again is the same program, as a second jax.jit of one function traces once."""
    template = jax.tree.unflatten(tree, leaves)
    if not all(isinstance(leaf, (Hole, bool, int, float, str)) for leaf in leaves):
        return Program(peer, target, template)
    key = (target, tree, tuple((type(leaf), repr(leaf)) for leaf in leaves))
    return peer.programs.setdefault(key, Program(peer, target, template))


def admitted(data: bytes, avals: Avals) -> artifacts.Artifact:
    """An artifact, with a refusal turned into an error of the check that asked for it."""
    try:
        return artifacts.admit(data, avals)
    except wire.WireError as error:
        raise ValueError(f"the program was refused: {error}") from None


# --- the rules of the primitive ---------------------------------------------------------------------------------------


def _avals(arrays: Sequence[Any]) -> Avals:
    return tuple(map(artifacts.aval_of, arrays))


def _shaped(spec: Any) -> Any:
    return jax.core.ShapedArray(spec.shape, spec.dtype)


def _inexact(aval: Any) -> bool:
    return bool(jax.dtypes.issubdtype(aval.dtype, np.inexact))


def _impl(*arrays: Any, program: Program, chain: Chain) -> list[jax.Array]:
    return program.apply(chain, arrays)


def _abstract_eval(*avals: Any, program: Program, chain: Chain) -> list[Any]:
    wanted = tuple(artifacts.aval_of(jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)) for a in avals)
    return [_shaped(aval) for aval in program.out_avals(chain, wanted)]


view_call.def_impl(_impl)
view_call.def_abstract_eval(_abstract_eval)


def _traced(*arrays: Any, program: Program, chain: Chain) -> Any:
    return program.artifact(chain, _avals(arrays)).call(*arrays)


mlir.register_lowering(view_call, mlir.lower_fun(_traced, multiple_results=True))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: Program, chain: Chain) -> tuple[Any, Any]:
    results = view_call.bind(*primals, program=program, chain=chain)
    program.known[chain, _avals(primals)] = tuple(jax.typeof(one) for one in results)
    active = tuple(not isinstance(tangent, ad.Zero) for tangent in tangents)
    moving = [tangent for tangent in tangents if not isinstance(tangent, ad.Zero)]
    pushed = iter(view_call.bind(*primals, *moving, program=program, chain=(*chain, wire.Jvp(active))))
    kinds = [jax.typeof(one) for one in results]
    return results, [next(pushed) if _inexact(kind) else ad.Zero(kind.to_tangent_aval()) for kind in kinds]


ad.primitive_jvps[view_call] = _jvp


def _transpose(cotangents: Sequence[Any], *args: Any, program: Program, chain: Chain) -> list[Any]:
    linear = tuple(ad.is_undefined_primal(arg) for arg in args)
    known = [arg for arg in args if not ad.is_undefined_primal(arg)]
    avals = tuple(
        artifacts.aval_of(jax.ShapeDtypeStruct(arg.aval.shape, arg.aval.dtype))
        for arg in args
        if ad.is_undefined_primal(arg)
    )
    seeds = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    step = wire.Transpose(linear, avals)
    pulled = iter(view_call.bind(*known, *seeds, program=program, chain=(*chain, step)))
    return [next(pulled) if one else None for one in linear]


ad.primitive_transposes[view_call] = _transpose


def _batch(args: Sequence[Any], dims: Sequence[Any], *, program: Program, chain: Chain) -> tuple[Any, Any]:
    axes = tuple(None if dim is None else int(dim) for dim in dims)
    results = view_call.bind(*args, program=program, chain=(*chain, wire.Vmap(axes)))
    return results, [0] * len(results)


batching.primitive_batchers[view_call] = _batch
