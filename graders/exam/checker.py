"""The process that compiles students' programs for a TPU that is not here. It runs none of them.

Comes in: serialised programs, made by an adversary, over the control socket. Goes out: one `Compiled` a program. Must not:
touch a device, reach a network, or serve two submissions: what a program does to the compiler ends with this process.

The compiler is libtpu, of which the environment of this process alone knows. `lowering_platforms=("tpu",)` would compile for the CPU without
a word: only arguments that are placed on a device of the topology make it a compilation for a TPU.
"""

from __future__ import annotations

import socket
import time
from typing import Any

import jax
import jax.export
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from graders.compilations import CompileOutcome, Figures
from graders.exam import artifacts, control, hlo
from graders.exam.topologies import Chip, chip_of
from graders.exam.wire import WireError
from graders.kernels import birth

_CALLBACKS = ("callback", "multi-platform lowering", "debug_")


def main(argument: dict[str, Any], fds: list[int]) -> None:
    """Serve the control socket `fds[0]` until it closes. `argument` has the `topology`."""
    channel = socket.socket(fileno=fds[0])
    birth.opened()
    topology, chip = str(argument["topology"]), chip_of(str(argument["topology"]))
    try:
        place = SingleDeviceSharding(topologies.get_topology_desc(topology_name=topology, platform="tpu").devices[0])
        _compile(lambda x: x + 1, [jax.ShapeDtypeStruct((8,), "float32", sharding=place)])  # the first one takes 0.3 s
    except Exception as error:  # whatever stands in the way is told to who asked
        control.send(channel, control.Ready(_first_line(error)))
        return
    control.send(channel, control.Ready())
    while True:
        try:
            told, _ = control.receive(channel)
        except EOFError:
            return
        if isinstance(told, control.Compile):
            control.send(channel, compiled(told, place, chip))


def compiled(told: control.Compile, place: Any, chip: Chip) -> control.Compiled:
    """Compile one program for the device of `place`."""
    try:
        exported, counts = artifacts.admit_for_tpu(told.program, told.avals)
    except WireError as error:
        return control.Compiled(CompileOutcome.cannot_check, str(error)[:1000])
    specs = [jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=place) for one in exported.in_avals]
    start = time.perf_counter()
    try:
        made = _compile(exported.call, specs)
    except Exception as error:
        return control.Compiled(outcome_of(str(error)), _first_line(error))
    return control.Compiled(
        CompileOutcome.compiled, figures=_figures(made, exported, counts, chip, time.perf_counter() - start)
    )


def outcome_of(text: str) -> CompileOutcome:
    """Which outcome the text of a refusal stands for, whoever refused."""
    if "RESOURCE_EXHAUSTED" in text:
        return CompileOutcome.out_of_memory
    return CompileOutcome.cannot_check if any(one in text for one in _CALLBACKS) else CompileOutcome.refused


def _compile(function: Any, specs: list[jax.ShapeDtypeStruct]) -> Any:
    return jax.jit(function).lower(*specs).compile()


def _figures(made: Any, exported: jax.export.Exported, counts: dict[str, int], chip: Chip, seconds: float) -> Figures:
    cost, memory, found = made.cost_analysis() or {}, made.memory_analysis(), hlo.instructions(made.as_text())
    flops, moved = (max(0.0, float(cost.get(name, 0.0))) for name in ("flops", "bytes accessed"))
    intensity = flops / moved if moved else 0.0
    used = [exported.in_avals[index] for index in exported.module_kept_var_idx]
    return Figures(
        compile_s=seconds,
        flops=flops,
        bytes_accessed=moved,
        intensity=intensity,
        bound=chip.bound(intensity),
        memory_bound=chip.bound(intensity) < chip.peak,
        argument_bytes=memory.argument_size_in_bytes,
        output_bytes=memory.output_size_in_bytes,
        temporary_bytes=memory.temp_size_in_bytes,
        code_bytes=memory.generated_code_size_in_bytes,
        choices=counts.get("case", 0) + counts.get("if", 0),
        conditionals=found["conditional"],
        repetitions=counts.get("while", 0),
        loops=found["while"],
        fusions=found["fusion"],
        masks=sum(one.dtype == bool and one.ndim > 0 for one in used),
    )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n")[0].encode("utf-8", "replace").decode()[:1000]
