"""Laws of near-identical answers: what counts as the same work, and what does not."""

from __future__ import annotations

from decimal import Decimal

import pytest

from graders.coursework import Assignment, ReleasedCell, Role
from graders.records import ExerciseResult, Kind, Report, Status
from graders.results.likeness import groups, own_part, together

STUB = "def smooth(values, width):\n    # your work\n    raise NotImplementedError()"
LOOP = '''\
def smooth(values, width):
    """Mean of each window."""
    found = []
    for start in range(len(values) - width + 1):
        window = values[start : start + width]
        total = 0.0
        for value in window:
            total += float(value)
        found.append(total / width)
    return jnp.asarray(found, dtype=jnp.float32)
'''
RENAMED = """\
def smooth(xs, k):
    out = []    # collected
    for i in range( len(xs)-k+1 ):
        part = xs[i:i+k]
        s = 0.0
        for x in part: s += float(x)
        out.append(s/k)
    return jnp.asarray(out, dtype=jnp.float32)
"""
SUMS = """\
def smooth(values, width):
    sums = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.asarray(values, dtype=jnp.float32))])
    upper = sums[width:]
    lower = sums[:-width]
    difference = jnp.where(width > 0, upper - lower, jnp.zeros_like(upper))
    return (difference / width).astype(jnp.float32)
"""
ESSAY = """Padding changes the mean, because the zeros are counted as if they were measured: the sum stays as it was and the number of
rows grows. A mask says which rows are real, so sum and count are both taken over those, and whatever the padding holds is left out."""
CELLS = (
    ReleasedCell("nb", 0, "smooth", Role.answer, "code", LOOP, STUB),
    ReleasedCell("nb", 1, "smooth-test", Role.test, "code", "assert True", "assert True", Decimal(2)),
    ReleasedCell("nb", 2, "why", Role.written, "markdown", "", "Your words here.", Decimal(2)),
)
BOOK = Assignment("lesson", {"nb": CELLS}, {}, "0" * 64)


def handed_in(student: str, code: str = STUB, essay: str = "", attempted: bool = True) -> Report:
    """A report with these two answers."""
    two = Decimal(2)
    exercises = (
        ExerciseResult(
            "smooth-test", "nb", Kind.exercise, two, two, answers=("smooth",), answer=code, attempted=attempted
        ),
        ExerciseResult("why", "nb", Kind.exercise, None, two, answers=("why",), answer=essay, attempted=bool(essay)),
    )
    return Report(student, "lesson", Status.graded, two, Decimal(4), exercises)


def alike(*reports: Report) -> list[tuple[str, tuple[str, ...]]]:
    """The groups, without their figures."""
    return [(one.exercise, one.students) for one in groups(BOOK, reports)]


def test_other_names_layout_and_comments_are_the_same_work() -> None:
    """Who renames variables, moves white space and rewrites comments is in one group; who solves it another way is not."""
    class_ = handed_in("student-01", LOOP), handed_in("student-02", SUMS), handed_in("student-03", RENAMED)
    assert alike(*class_) == [("smooth-test", ("student-01", "student-03"))]
    assert own_part(LOOP, [STUB]) == own_part(RENAMED, [STUB])


def test_a_text_with_a_few_words_changed_is_the_same_text() -> None:
    """A written answer is compared by its words; case and line breaks are no difference."""
    other = ESSAY.replace("whatever", "what").replace("\n", " ").upper()
    assert alike(handed_in("student-01", essay=ESSAY), handed_in("student-02", essay=other)) == [
        ("why", ("student-01", "student-02"))
    ]
    own = " ".join(reversed(ESSAY.split()))
    assert alike(handed_in("student-01", essay=ESSAY), handed_in("student-02", essay=own)) == []


@pytest.mark.parametrize(
    "code",
    [STUB, "def smooth(values, width):\n    return values / width", STUB + "\n# nothing yet", LOOP],
    ids=["released", "short", "comment", "not attempted"],
)
def test_what_was_handed_out_and_what_is_short_is_no_sign(code: str) -> None:
    """Answers that hold little beside the released text are never grouped, nor those that were not attempted."""
    assert (
        alike(handed_in("student-01", code, attempted=code != LOOP), handed_in("student-02", code, attempted=False))
        == []
    )


def test_a_deep_program_is_compared_as_text() -> None:
    """What is nested deeper than Python's own tools can follow stops nobody's comparison."""
    deep = "total = " + " + ".join(["value"] * 20_000)
    class_ = handed_in("student-01", deep), handed_in("student-02", deep), handed_in("student-03", LOOP)
    assert alike(*class_) == [("smooth-test", ("student-01", "student-02"))]


def test_small_groups_come_first() -> None:
    """What two students share stands above what many do."""
    many = [handed_in(f"student-{number:02d}", LOOP, ESSAY if number < 2 else "") for number in range(6)]
    assert [len(students) for _, students in alike(*many)] == [2, 6]


def test_like_answers_are_marked_together() -> None:
    """Answers that say nearly the same are one group, the largest first, and everybody is in exactly one."""
    said = {
        "student-01": "The zeros are counted in the mean.",
        "student-02": "It divides by the number of all rows, so it is too small.",
        "student-03": "the zeros  are counted in the mean",
        "student-04": "A mask.",
        "student-05": "The zeros were counted in the mean!",
        "student-06": "It divides by the number of all rows so it is too small",
    }
    assert together(said) == (
        ("student-01", "student-03", "student-05"),
        ("student-02", "student-06"),
        ("student-04",),
    )
    assert together({}) == ()
