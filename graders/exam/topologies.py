"""What a TPU chip can do at best, by family, for the roofline; and how libtpu is told which one is meant.

Comes in: the name of a topology, such as `v5e:1x1`. Goes out: a `Chip`. Must not: import jax.
"""

from __future__ import annotations

from graders.errors import SettingsError
from graders.records import Record


class Chip(Record, frozen=True):
    """One chip. `peak` is FLOP per second in bfloat16, `bandwidth` bytes per second to its memory; `accelerator` is libtpu's name."""

    name: str
    peak: float
    bandwidth: float
    accelerator: str

    def bound(self, intensity: float) -> float:
        """The roofline of the lesson performance-02, P <= min(P_peak, B * I): FLOP per second for FLOP per byte."""
        return min(self.peak, self.bandwidth * intensity)


# Peak compute and HBM bandwidth per chip: docs.cloud.google.com/tpu/docs/v5e and /v6e, the tables "System architecture".
CHIPS = {
    "v5e": Chip("TPU v5e", 197e12, 819e9, "v5litepod-1"),
    "v6e": Chip("TPU v6e", 918e12, 1638e9, "v6e-1"),
}


def chip_of(topology: str) -> Chip:
    """The chip of a topology. Raises `SettingsError` for a family that is not in the table."""
    family = topology.replace("=", ":").partition(":")[0]
    if family not in CHIPS:
        raise SettingsError(
            f"The topology {topology!r} is of no chip that is known here; wanted: one of {', '.join(CHIPS)} and its shape, "
            f'as in "v5e:1x1".'
        )
    return CHIPS[family]
