"""Laws of attestation: what both processes say of themselves, and what is made of it."""

from __future__ import annotations

import pytest

from graders.errors import AcceleratorError, InfrastructureError
from graders.exam import attest, control
from graders.targets import BUILT_IN, CPU

ON_CPU = {"platform": "cpu", "devices": ["cpu 0"]}
UNABLE = "Unable to initialize backend 'tpu': "


def met(candidate: dict[str, object], examiner: dict[str, object] = ON_CPU) -> control.Met:
    """Both as they describe themselves."""
    return control.Met(({"role": "examiner"} | examiner, {"role": "candidate"} | candidate))


def test_what_a_target_wants_is_let_through() -> None:
    """A candidate on the chip and an examiner on the CPU are the target `tpu`, the other way round `tpu-export`."""
    chip: dict[str, object] = {"platform": "tpu", "devices": ["TPU v5 lite 0"]}
    for target, told in ((CPU, met(ON_CPU)), (BUILT_IN["tpu"], met(chip)), (BUILT_IN["tpu-export"], met(ON_CPU, chip))):
        assert attest.met(told, target) is told


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file", "libtpu could not be loaded"),
        ("NOT_FOUND: TPU initialization failed: No jellyfish device found.", "libtpu found no chip"),
        ("ABORTED: The TPU is already in use by process with pid 27568.", "another process has the chip"),
        (
            'ABORTED: Internal error when accessing libtpu multi-process lockfile. Run "$ sudo rm /tmp/libtpu_lockfile".',
            "another process has loaded libtpu (its lock file may stay where it is",
        ),
        (
            "open(/dev/vfio/0): Device or resource busy; Couldn't open iommu group",
            "the chip is busy, or its driver has not let go",
        ),
        ("something that nobody has seen yet", "JAX could not start there"),
    ],
)
def test_the_words_of_libtpu_are_told_with_what_they_mean(said: str, meaning: str) -> None:
    """JAX raises one class for all of these, so the text decides what is told; the text itself is told too."""
    with pytest.raises(AcceleratorError) as caught:
        attest.met(met({"problem": UNABLE + said}), BUILT_IN["tpu"])
    assert f"The candidate does not run where target 'tpu' wants it: {meaning}" in str(caught.value)
    assert f"(JAX: {UNABLE}{said})" in str(caught.value)


def test_a_fault_of_the_cpu_is_not_waited_for() -> None:
    """Where no accelerator is asked for, a process that does not come up is a fault like any other."""
    for told in (
        None,
        control.Met((), "gone"),
        met({"problem": "no memory"}),
        met({"platform": "cuda", "devices": []}),
    ):
        with pytest.raises(InfrastructureError) as caught:
            attest.met(told, CPU)
        assert not isinstance(caught.value, AcceleratorError)
