"""Records that several tests build on: a small assignment and a report as a student would get it."""

from __future__ import annotations

from decimal import Decimal

from graders.coursework import Assignment, ReleasedCell, Role
from graders.records import CheckResult, ExerciseResult, Flag, Kind, Outcome, Report, Status

LEDGER = """\
x16 = jax.device_put(np.arange(16, dtype=np.float32), cpu)
observed_call("new length sixteen", x16, 1.0)
print("Added ledger row:", call_rows[-1])"""

MASKED = """\
@jax.jit
def masked_score(values, mask):
    # padded rows are zero, so only the offset has to go
    kept = jnp.where(mask, values, 0.0)
    return jnp.sum((kept + 1.0) ** 2)"""

BRANCH = """\
def broken_branch(values, gain):
    if gain > 1.0:
        return jnp.sum(values**2)
    return jnp.sum(values)


repaired = jax.jit(
    lambda values, gain: jax.lax.cond(
        gain >= 1.0,
        lambda v: jnp.sum(v**2),
        lambda v: jnp.sum(v),
        values,
    )
)"""


def cell(
    role: Role,
    id: str | None = None,
    points: int | str = 0,
    source: str = "",
    released: str | None = None,
    **more: object,
) -> ReleasedCell:
    """One cell of the notebook `nb`; its position is not looked at by what is tested here."""
    text = source if released is None else released
    kind = "markdown" if role in (Role.written, Role.task) else "code"
    fields = {"notebook": "nb", "position": 0, "cell_type": kind, "points": Decimal(points)} | more
    return ReleasedCell(id=id, role=role, source=source, released=text, **fields)  # type: ignore[arg-type]


def assignment(*cells: ReleasedCell, name: str = "ps1") -> Assignment:
    """An assignment of these cells, grouped by notebook."""
    notebooks: dict[str, tuple[ReleasedCell, ...]] = {}
    for one in cells:
        notebooks[one.notebook] = (*notebooks.get(one.notebook, ()), one)
    return Assignment(name=name, notebooks=notebooks, files={}, sha256="0" * 64)


def passed(title: str, points: int) -> CheckResult:
    """A check that passed; its hint must not be shown."""
    return CheckResult(title, Outcome.passed, Decimal(points), Decimal(points), hint="SHOWN ONLY WHEN NOT PASSED")


def failed(title: str, points: int, hint: str | None = None, misconception: str | None = None) -> CheckResult:
    """A check that failed, with everything that only staff may see."""
    return CheckResult(
        title,
        Outcome.failed,
        Decimal(points),
        Decimal(0),
        hint=hint,
        misconception=misconception,
        message="HIDDEN message of the test",
        expected="HIDDEN expected 55.0",
        actual="HIDDEN actual 58.0",
    )


def performance_report() -> Report:
    """Three exercises of four points as in performance-02: right, a known mistake, wrong at a boundary."""
    where = {"notebook": "performance-02", "kind": Kind.exercise, "max_score": Decimal(4)}
    ledger = ExerciseResult(
        id="ledger-x16-test",
        score=Decimal(4),
        checks=(
            passed("x16 holds sixteen float32 elements, 0 to 15", 1),
            passed("The ledger has a fifth row for the new length", 1),
            passed("The new row holds the score of sixteen elements", 1),
            passed("The trace delta is recorded as it was observed", 1),
        ),
        outcome="Record a call ledger",
        answers=("ledger-x16",),
        answer=LEDGER,
        **where,
    )
    masked = ExerciseResult(
        id="masked-score-test",
        score=Decimal(1),
        checks=(
            failed(
                "Five values padded to eight give the score of five",
                1,
                "Compare your function with a plain sum over the first five values.",
                "The padding was counted: each padded row adds (0 + 1)² = 1. Add the offset first, mask afterwards.",
            ),
            passed("A mask that is all true changes nothing", 1),
            failed("A mask that is all false gives zero", 1, "With nothing selected, no row may contribute."),
            failed("Nothing stored in the padding matters", 1, "Try your function with 7.0 in the padded rows."),
        ),
        outcome="Keep an objective while padding",
        answers=("masked-score",),
        answer=MASKED,
        **where,
    )
    branch = ExerciseResult(
        id="branch-repair-test",
        score=Decimal(3),
        checks=(
            passed("broken_branch fails under jit as described", 1),
            passed("repaired is right on both sides of gain 1", 1),
            failed(
                "repaired is right at exactly gain 1",
                1,
                "Read the condition of the task once more: which side does gain 1.0 belong to?",
                "At gain 1.0 your function takes the squared branch. The task says greater than 1, not at least 1.",
            ),
            passed("The choice is made when the program runs", 1),
        ),
        outcome="Keep a choice dynamic",
        answers=("branch-repair",),
        answer=BRANCH,
        **where,
    )
    return Report(
        student="student-01",
        assignment="performance-02",
        status=Status.graded,
        score=Decimal(8),
        max_score=Decimal(12),
        exercises=(ledger, masked, branch),
        flags=(Flag("tests_restored", "A test cell differed from the released one. The released one was used."),),
        submitted="2026-11-12T14:05:00+00:00",
    )
