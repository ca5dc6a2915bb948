"""Where candidate and examiner run: the targets that a course may name, and what each asks for.

Comes in: `c.Graders.targets`. Goes out: frozen `Target`s. Must not: look at this machine (see `kernels/chips.py`), or import
anything but the standard library and the record library.

    cpu           both processes on the CPU
    tpu           the candidate holds the chip; the examiner compares on the CPU
    tpu-export    the candidate stays on the CPU; the examiner holds the chip and runs what the candidate exports
    tpu-compile   both on the CPU; what the candidate exports is also compiled for the `topology`, and run on the CPU
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Annotated

import msgspec

from graders.errors import SettingsError
from graders.records import Record

CANDIDATE, EXAMINER, NOBODY = "candidate", "examiner", ""
TPU_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",  # there is no network inside: without this libtpu asks the metadata server for ten minutes
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_LOG_DIR": "disabled",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # its lock file is out of reach inside the walls; outside, a lease does that work
    "XLA_FLAGS": "",  # ours are of the CPU's compiler, and XLA ends a process over a flag that it does not know
}
_NODES = ("/dev/accel*", "/dev/vfio/*")
_TOLD = ("/sys/bus/pci", "/sys/class/accel", "/sys/class/vfio", "/sys/devices", "/sys/kernel/iommu_groups")


class Target(Record):
    """One place to run.

    `holder` is the process that has the accelerator, "candidate" or "examiner", or "" where there is none; `platform` is JAX's name
    for what the holder runs on, and its `device_kind` and `device_count` must be these, where they are given. What the holder alone is given: the
    `environment`, set before its process starts and with `{slot}` standing for the number of its slot, and what the patterns
    `devices` and `readable` match. `limits` are those that are others here. So many examinations as there are `slots` run at once on a
    machine, or as many as there are workers. `resource` is what a Dask task asks for. `topology` is what exported functions are compiled for.
    A holder that does not come up as it should is tried again after each of the seconds in `patience_s`.
    """

    name: str
    holder: str = NOBODY
    platform: str = "cpu"
    device_kind: str = ""
    device_count: Annotated[int, msgspec.Meta(ge=0)] = 0
    environment: dict[str, str] = {}  # noqa: RUF012  (msgspec copies defaults)
    devices: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    limits: dict[str, int] = {}  # noqa: RUF012  (the same)
    slots: Annotated[int, msgspec.Meta(ge=0)] = 0
    resource: str = ""
    topology: str = ""
    patience_s: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)

    @property
    def tolerances(self) -> str:
        """The profile that values are compared by: that of the accelerator, whichever process holds it."""
        return self.platform if self.holder else "cpu"

    def platform_of(self, role: str) -> str:
        """What the process of this role must run on, in JAX's words."""
        return self.platform if role == self.holder else "cpu"


CPU = Target("cpu")
_CHIP = Target(
    "tpu",
    CANDIDATE,
    "tpu",
    device_count=1,
    environment=TPU_ENVIRONMENT,
    devices=_NODES,
    readable=_TOLD,
    # libtpu starts dozens of threads, and hangs where it may not: with 64 a candidate never comes up, with 512 it does
    limits={"memory_bytes": 8 * 2**30, "processes": 512, "cell_timeout_s": 120, "submission_timeout_s": 900},
    slots=1,
    resource="TPU",
)
BUILT_IN = {
    "cpu": CPU,
    "tpu": _CHIP,
    "tpu-export": msgspec.structs.replace(_CHIP, name="tpu-export", holder=EXAMINER),
    "tpu-compile": Target("tpu-compile", topology="v5e:1x1"),
}
_OF_ALL = ("slots", "resource")
_OF_HOLDERS = ("environment", "devices", "readable", "device_kind", "device_count", "patience_s")
LIMITS = ("cell_timeout_s", "submission_timeout_s", "memory_bytes", "disk_bytes", "output_bytes", "processes")
_OUR_OWN = (
    "JAX_PLATFORMS",
    "TPU_LIBRARY_PATH",
)  # one follows from the target, the other from where libtpu is installed


def chosen(name: str, targets: Mapping[str, Target], where: str) -> Target:
    """The target of this name. Raises `SettingsError`, which says `where` it was named and what was probably meant."""
    known(name, targets, f"{where}: there is no target ")
    return targets[name]


def configured(targets: Mapping[str, object], where: str) -> dict[str, Target]:
    """The built-in targets with what a course says about them. Raises `SettingsError` for a name or value that cannot be."""
    made = dict(BUILT_IN)
    for name, changes in targets.items():
        known(name, BUILT_IN, f"{where}: there is no target ")
        made[name] = _changed(BUILT_IN[name], changes, f"{where}[{name!r}]")
    return made


def _changed(target: Target, changes: object, where: str) -> Target:
    if not isinstance(changes, dict):
        raise SettingsError(f'{where} is {changes!r}; wanted: settings by name, as in {{"slots": 1}}.')
    own = (*_OF_ALL, *LIMITS, *(_OF_HOLDERS if target.holder else ()), *(("topology",) if target.topology else ()))
    for name in changes:
        known(str(name), own, f"{where}: there is no setting ")
    told = {name: value for name, value in changes.items() if name not in LIMITS}
    told["limits"] = target.limits | {name: value for name, value in changes.items() if name in LIMITS}
    told["environment"] = target.environment | _environment(told.get("environment", {}), where)
    try:
        return msgspec.convert(msgspec.to_builtins(target) | told, Target)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{where}: {error}.") from None


def _environment(told: object, where: str) -> dict[str, str]:
    if not isinstance(told, dict):
        raise SettingsError(
            f'{where}["environment"] is {told!r}; wanted: variables by name, as in {{"TPU_WORKER_ID": "0"}}.'
        )
    for name in _OUR_OWN:
        if name in told:
            raise SettingsError(f'{where}["environment"]: {name} follows from the target and cannot be set.')
    return told


def known(name: str, names: Collection[str], problem: str) -> None:
    """Raise `SettingsError` with what was probably meant, unless `name` is one of `names`."""
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"Known names: {', '.join(sorted(names))}."
        raise SettingsError(f"{problem}{name}. {hint}")
