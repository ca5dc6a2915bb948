"""Laws of the checker with the real compiler: what it says of honest programs, and what hostile ones cost."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo

from graders.compilations import Compilation, CompileOutcome
from graders.exam import artifacts, compiling, control, wire
from graders.exam.compiling import Compiling
from graders.exam.pair import PRELOAD
from graders.kernels.nursery import LEVELS, Limits, Zygote, best_level

pytestmark = pytest.mark.system
FLOATS, MASK, GAIN = (jax.ShapeDtypeStruct(*of) for of in (((8,), "float32"), ((8,), "bool"), ((), "float32")))
MIB = 2**20


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """A zygote that knows the checker."""
    with Zygote(("jax", "jax.numpy", "jax.export", *PRELOAD[-1:])) as started:
        yield started


def exported(function: Callable[..., Any], *specs: Any, name: str = "f") -> control.Exported:
    """A program as a test notes it."""
    data = artifacts.export(lambda *arrays: tuple(jax.tree.leaves(function(*arrays))), specs, "tpu")
    return given(data, *specs, name=name)


def given(data: bytes, *specs: Any, name: str = "f") -> control.Exported:
    """Bytes in the place of a program."""
    return control.Exported(name, (), (), tuple(map(artifacts.aval_of, specs)), wire.Lowered("tpu", data), True)


def compiled(
    zygote: Zygote,
    *programs: control.Exported,
    level: str | None = None,
    topology: str = "v5e:1x1",
    limits: Limits | None = None,
) -> Compilation:
    """What becomes of these programs of one submission."""
    with Compiling(topology, level or best_level(), limits or Limits(), zygote) as one:
        one.add("t", programs)
        return one.finish()


def masked_score(values: Any, mask: Any) -> Any:
    """The masked objective of performance-02."""
    return jnp.where(mask, (values + 1) ** 2, 0.0).sum()


def repaired(values: Any, gain: Any) -> Any:
    """The branch repair of performance-02."""
    return jax.lax.cond(gain > 1.0, lambda v: jnp.square(v).sum(), lambda v: v.sum(), values)


def repeated(values: Any) -> Any:
    """A loop whose length depends on the numbers."""
    return jax.lax.while_loop(lambda v: v.sum() < 100.0, lambda v: v * 2, values)


@pytest.mark.parametrize("level", LEVELS)
def test_an_honest_program_is_compiled(zygote: Zygote, level: str) -> None:
    """At each level of walls a mask, a choice and a loop are found again in what a TPU would execute."""
    programs = (
        exported(masked_score, FLOATS, MASK),
        exported(repaired, FLOATS, GAIN, name="g"),
        exported(repeated, FLOATS, name="h"),
    )
    made = compiled(zygote, *programs, level=level)
    assert (made.problem, made.chip, made.left_out) == (None, "TPU v5e", 0)
    mask, choice, loop = (one.figures for one in made.programs)
    assert None not in (mask, choice, loop)
    assert (mask.masks, mask.choices, mask.flops > 0, mask.bytes_accessed > 0, mask.memory_bound) == (
        1,
        0,
        True,
        True,
        True,
    )
    assert (choice.choices, choice.conditionals, choice.masks) == (1, 1, 0)
    assert (loop.repetitions, loop.loops) == (1, 1)
    assert mask.bound == pytest.approx(819e9 * mask.flops / mask.bytes_accessed)


def test_a_large_product_is_bound_by_arithmetic(zygote: Zygote) -> None:
    """A product of 4096 x 4096 has 2 n^3 operations; far above 240 FLOP per byte, the peak of the chip is the bound."""
    square = jax.ShapeDtypeStruct((4096, 4096), "bfloat16")
    (one,) = compiled(zygote, exported(jnp.dot, square, square)).programs
    assert one.figures
    assert one.figures.flops == pytest.approx(2 * 4096**3, rel=0.01)
    assert (one.figures.bound, one.figures.memory_bound) == (197e12, False)
    assert one.figures.argument_bytes == 2 * 2 * 4096**2


def test_a_choice_of_a_batch_is_no_conditional(zygote: Zygote) -> None:
    """Under vmap over gains the choice is made for each element: the program holds no conditional."""
    gains = jax.ShapeDtypeStruct((4,), "float32")
    (one,) = compiled(zygote, exported(jax.vmap(repaired, in_axes=(None, 0)), FLOATS, gains)).programs
    assert one.figures
    assert (one.figures.choices, one.figures.conditionals) == (0, 0)


def test_every_kind_of_chip_is_known_to_the_compiler(zygote: Zygote) -> None:
    """The other chip of the table compiles as well; a shape that no chip has is a problem that is told."""
    (one,) = compiled(zygote, exported(masked_score, FLOATS, MASK), topology="v6e:1x1").programs
    assert one.outcome is CompileOutcome.compiled
    problem = compiled(zygote, exported(masked_score, FLOATS, MASK), topology="v5e:axb").problem
    assert problem
    assert problem.startswith("The TPU compiler did not start: ")


def without_end(values: Any) -> Any:
    """64 GiB of result; a v5e has 16."""
    return jnp.broadcast_to(values[0], (2**34,)) * 2


def with_text(text: str) -> bytes:
    """A serialised program whose module is this text."""
    honest = jax.export.export(jax.jit(lambda x: (x + 1.0,)), platforms=["tpu"])(FLOATS)
    with mlir.make_ir_context():
        module = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_minimum_version())
    return bytes(dataclasses.replace(honest, mlir_module_serialized=module).serialize())


MODULE = """
module @program attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>) {{
    {body}
    return %0 : tensor<8xf32>
  }}
  {more}
}}
"""
KERNEL = "%0 = stablehlo.custom_call @tpu_custom_call(%arg0) {api_version = 2 : i32} : (tensor<8xf32>) -> tensor<8xf32>"
HALF = """func.func private @f{n}(%x: tensor<8xf32>) -> tensor<8xf32> {{
    %a = func.call @f{m}(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %b = func.call @f{m}(%a) : (tensor<8xf32>) -> tensor<8xf32>
    return %b : tensor<8xf32>
  }}"""
LEAF = "func.func private @f0(%x: tensor<8xf32>) -> tensor<8xf32> {\n %a = stablehlo.sine %x : tensor<8xf32>\n return %a : tensor<8xf32>\n }"
DOUBLINGS = 40


def bomb() -> bytes:
    """A few kilobytes that stand for 2**40 sines: each function calls the next one twice."""
    body = f"%0 = func.call @f{DOUBLINGS}(%arg0) : (tensor<8xf32>) -> tensor<8xf32>"
    more = [HALF.format(n=n, m=n - 1) for n in range(DOUBLINGS, 0, -1)]
    return with_text(MODULE.format(body=body, more="\n".join([*more, LEAF])))


def test_too_much_for_the_memory_of_a_chip_is_told(zygote: Zygote) -> None:
    """A program that needs more than the chip's memory is told as that, and the next one is compiled."""
    programs = (exported(without_end, FLOATS), exported(masked_score, FLOATS, MASK, name="g"))
    first, second = compiled(zygote, *programs).programs
    assert (first.outcome, second.outcome) == (CompileOutcome.out_of_memory, CompileOutcome.compiled)
    assert "HBM" in first.reason


def test_what_is_no_program_is_told_and_costs_nothing_else(zygote: Zygote) -> None:
    """Bytes cut off or changed, another platform's program, and a kernel of its own are refused; the next one is compiled."""
    data = exported(masked_score, FLOATS, MASK).lowered.program
    hostile = {
        "cut": given(data[: len(data) // 2], FLOATS, MASK, name="cut"),
        "noise": given(bytes(range(256)) * 9, FLOATS, name="noise"),
        "cpu": given(artifacts.export(lambda x: (x,), [FLOATS]), FLOATS, name="cpu"),
        "kernel": given(with_text(MODULE.format(body=KERNEL, more="")), FLOATS, name="kernel"),
    }
    made = compiled(zygote, *hostile.values(), exported(repaired, FLOATS, GAIN, name="honest"))
    outcomes = {one.function: one.outcome for one in made.programs}
    assert outcomes == dict.fromkeys(hostile, CompileOutcome.cannot_check) | {"honest": CompileOutcome.compiled}


def test_changed_bytes_cost_an_entry_at_most(zygote: Zygote) -> None:
    """Whatever single bits of programs are changed, each of them ends as an entry, and a fresh submission is compiled."""
    data, random = exported(repaired, FLOATS, GAIN).lowered.program, Random(7)
    for _ in range(3):
        changed = []
        for number in range(8):
            one = bytearray(data)
            for _ in range(4):
                one[random.randrange(len(one))] ^= 1 << random.randrange(8)
            changed.append(given(bytes(one), FLOATS, GAIN, name=f"f{number}"))
        assert len(compiled(zygote, *changed).programs) == 8
    (one,) = compiled(zygote, exported(repaired, FLOATS, GAIN)).programs
    assert one.outcome is CompileOutcome.compiled


def test_a_bomb_is_an_entry(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that grows without end while it is compiled is ended, by its time or its memory; what came before stays."""
    monkeypatch.setattr(compiling, "COMPILE_S", 5.0)
    started = time.monotonic()
    programs = (
        exported(masked_score, FLOATS, MASK),
        given(bomb(), FLOATS, name="bomb"),
        exported(repaired, FLOATS, GAIN, name="h"),
    )
    made = compiled(zygote, *programs, limits=Limits(memory_bytes=600 * MIB))
    assert [one.outcome.value for one in made.programs] == ["compiled", "lost", "lost"]
    assert made.programs[1].reason.startswith("could not be compiled here: ")
    assert time.monotonic() - started < 30
