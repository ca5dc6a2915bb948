"""The words of this project as frozen records.

Comes in: nothing. Goes out: the types that cross every seam of the package and, as JSON, leave it.
Must not: import anything but the standard library and the record library (msgspec), or hold behaviour beyond
what can be derived from a record's own fields.

Points are `decimal.Decimal` so that thirds and 33.3 + 33.3 + 33.4 add up exactly; rounding belongs to display.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum

import msgspec

from graders.compilations import Compilation

# The media type under which a test that runs inside a kernel shows its checks.
CHECKS_TYPE = "application/x-graders-checks+json"


class Outcome(str, Enum):
    """What became of one check. `broken` is the instructor's fault, `not_run` was never reached."""

    passed = "passed"
    failed = "failed"
    not_run = "not_run"
    broken = "broken"


class Status(str, Enum):
    """Whether a submission could be judged. "Could not be graded" is a status, never the number 0."""

    graded = "graded"
    partly_graded = "partly_graded"
    not_graded = "not_graded"


class Kind(str, Enum):
    """An exercise practises, a checkpoint proves understanding; their scores are reported apart."""

    exercise = "exercise"
    checkpoint = "checkpoint"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The common shape of our records: immutable, and strict about what they are decoded from."""


class Flag(Record):
    """A reason why a person should look. `name` is the rule, `text` says it in plain words."""

    name: str
    text: str
    cell: str | None = None


class Place(Record):
    """Where a process ran, as that process reported it itself."""

    role: str
    platform: str
    devices: tuple[str, ...]
    walls: str
    walls_held: tuple[str, ...]
    python: str
    jax: str
    jaxlib: str


class CheckResult(Record):
    """One check after judging.

    `hint` and `misconception` are for the student; `message`, `expected` and `actual` are for staff only.
    """

    title: str
    outcome: Outcome
    points: Decimal
    earned: Decimal
    hint: str | None = None
    misconception: str | None = None
    message: str | None = None
    expected: str | None = None
    actual: str | None = None


class ExerciseResult(Record):
    """One graded cell after judging.

    `id` is the grade_id of the cell that carries the points. `score` is None until somebody, machine or person, has
    judged it. `reason` is a sentence for the student when something other than the checks decided the score.
    `answers` are the grade_ids of the answer cells that belong to this exercise, `answer` their text as handed in.
    `seconds` are the wall seconds of those cells and of the test.
    """

    id: str
    notebook: str
    kind: Kind
    score: Decimal | None
    max_score: Decimal
    checks: tuple[CheckResult, ...] = ()
    outcome: str | None = None
    manual: bool = False
    attempted: bool = True
    reason: str | None = None
    advice: str | None = None
    answers: tuple[str, ...] = ()
    answer: str = ""
    seconds: float = 0.0


class Picture(Record):
    """A PNG in base64, and its pixels."""

    png: str
    width: int
    height: int


class Shown(Record):
    """What one cell showed when its student saved it."""

    text: str
    pictures: tuple[Picture, ...] = ()


class Receipt(Record):
    """The execution record of one examination. Hashes are hex SHA-256; times are seconds, `started` is ISO 8601 UTC.

    What it spent: `wall_s`, `cpu_s` of all its processes, and `peak_bytes`, the most resident memory of its candidate.
    `compile_s` is what each process that was there at the end says it spent on compiling, by role. `tolerances` is the profile by which `expect` compared.
    """

    graders: str
    python: str
    target: str
    examine: str
    isolation: str
    places: tuple[Place, ...]
    submission_sha256: str
    assignment_sha256: str
    environment_sha256: str
    seed: int
    started: str
    wall_s: float
    cpu_s: float
    phases_s: dict[str, float]
    restarts: int = 0
    peak_bytes: int = 0
    compilation: Compilation | None = None
    tolerances: str = "cpu"
    compile_s: dict[str, float] = {}


class ExecutionRecord(Record):
    """Our own run of an assignment: where it ran, for how long, and that its checks pass. Nothing of what it computed.

    `seconds` are wall seconds by notebook and then by grade_id, or `cell N` where there is none; nothing was compiled before
    that run. Hashes and times are as in a receipt.
    """

    assignment: str
    assignment_sha256: str
    environment_sha256: str
    graders: str
    examine: str
    isolation: str
    places: tuple[Place, ...]
    started: str
    wall_s: float
    cpu_s: float
    seconds: dict[str, dict[str, float]]
    checks: int
    passed: int
    restarts: int
    target: str = "cpu"
    compile_s: dict[str, float] = {}


class Report(Record):
    """Results, receipt and flags of one submission: the one record that leaves the pipeline.

    `arrived` says, file by file, what was handed in, where it could not be graded.
    """

    student: str
    assignment: str
    status: Status
    score: Decimal | None
    max_score: Decimal
    exercises: tuple[ExerciseResult, ...] = ()
    flags: tuple[Flag, ...] = ()
    reason: str | None = None
    submitted: str | None = None
    receipt: Receipt | None = None
    arrived: tuple[str, ...] = ()


_JSON = msgspec.json.Encoder(decimal_format="number")
_REPORT = msgspec.json.Decoder(Report)


def to_json(record: object) -> bytes:
    """Encode a record as one line of JSON, points as plain numbers. Half an emoji becomes a question mark."""
    try:
        return _JSON.encode(record)
    except UnicodeEncodeError:
        return _JSON.encode(_whole_characters(msgspec.to_builtins(record, builtin_types=(Decimal,))))


def _whole_characters(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_characters(item) for item in value]
    return value


def report_from_json(data: bytes) -> Report:
    """Decode and validate a report. Raises `msgspec.ValidationError` when `data` is not one."""
    return _REPORT.decode(data)
