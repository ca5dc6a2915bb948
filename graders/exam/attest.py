"""Do both processes run where the target says? What they report of themselves is compared before any cell runs.

Comes in: what came back when examiner and candidate met. Goes out: it, or an `AcceleratorError` that says what is wrong, who holds
what, and the next step. Must not: let a run on another platform become a score.

A candidate reports before its first cell runs, in a process that has run no code but ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from graders.errors import AcceleratorError, InfrastructureError
from graders.exam import control
from graders.kernels import chips
from graders.kernels.births import Walls
from graders.records import Place
from graders.targets import Target

# JAX raises a plain RuntimeError, so these are texts of jaxlib and libtpu: what it means, by what it says.
_MEANINGS = {
    "Failed to open libtpu.so": "libtpu could not be loaded",
    "No jellyfish device found": "libtpu found no chip",
    "The TPU is already in use": "another process has the chip",
    "libtpu multi-process lockfile": "another process has loaded libtpu (its lock file may stay where it is, even after that process has ended)",
    "Device or resource busy": "the chip is busy, or its driver has not let go of it since a process ended",
    "not in the list of known backends": "this JAX knows no such platform",
}


def met(told: control.Told | None, target: Target) -> control.Met:
    """What both said of themselves, once it is what the target asks for.

    Raises:
        InfrastructureError: they did not meet.
        AcceleratorError: the same on a target with an accelerator, where waiting may help.
    """
    fault = AcceleratorError if target.holder else InfrastructureError
    if not isinstance(told, control.Met):
        raise fault("The examiner did not meet its candidate in time. The examination is tried again.")
    if told.lost is not None:
        raise fault(f"The candidate was lost before its first cell: {told.lost}. It is tried again.")
    for place in told.places:
        problem = _problem(place, target)
        if problem:
            raise fault(
                f"The {place['role']} does not run where target {target.name!r} wants it: {problem}.{_here(target)}"
            )
    return told


def _here(target: Target) -> str:
    """What can be seen of it from outside, and the next step."""
    seen = chips.problem(chips.look()) if target.platform == "tpu" else ""
    return f" Here {seen}." if seen else f" Next step: graders doctor --target {target.name}."


def _problem(place: Mapping[str, object], target: Target) -> str:
    role, wanted = str(place["role"]), target.platform_of(str(place["role"]))
    if "problem" in place:
        said = str(place["problem"])
        meaning = next((meaning for text, meaning in _MEANINGS.items() if text in said), "JAX could not start there")
        return f"{meaning} (JAX: {said})"
    if place.get("platform") != wanted:
        return f"it runs on {place.get('platform')!r} and not on {wanted!r}, to which JAX fell back without a word"
    return _mismatch(place.get("devices"), target) if role == target.holder else ""


def _mismatch(devices: object, target: Target) -> str:
    """A device is reported as its kind and its number, such as `TPU v5 lite 0`."""
    found = [str(one) for one in devices] if isinstance(devices, list) else []
    others = [one for one in found if target.device_kind and one.rpartition(" ")[0] != target.device_kind]
    if others:
        return f"its device is {others[0]!r}, and a {target.device_kind!r} is wanted"
    if target.device_count and len(found) != target.device_count:
        return f"it has {len(found)} devices ({', '.join(found)}), and {target.device_count} are wanted"
    return ""


def place(told: Mapping[str, object], walls: Walls) -> Place:
    """What a process said of itself, and the walls that it was born behind."""
    devices = told.get("devices")
    return Place(
        str(told["role"]),
        str(told.get("platform", "")),
        tuple(map(str, devices)) if isinstance(devices, list) else (),
        walls.level,
        walls.held,
        str(told.get("python", "")),
        str(told.get("jax", "")),
        str(told.get("jaxlib", "")),
    )
