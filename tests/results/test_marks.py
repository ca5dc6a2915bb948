"""Laws of people's marks: they count, they outlive a regrade, and one for another text is never passed off as one for this."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from nbgrader_runs import address
from test_gradebook import exercise, graded, statuses, store, unreadable

from graders.errors import CourseError
from graders.records import Flag, Report, Status
from graders.results import feedback
from graders.results.gradebook import Writer
from graders.results.markbook import marks_of
from graders.results.marks import NO_MARKS, Mark, Marks, difference, marked
from graders.results.mastery import mastery
from graders.results.portfolio import Portfolio, Work, as_json
from graders.results.portfoliopage import render

pytestmark = [
    pytest.mark.filterwarnings("ignore:Object of type:sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning"),
]
AWAITS = Flag("awaits_marking", "Some answers are read and marked by a person, who has not done so yet.")


def wrote(text: str, code: str = "x = 1\n", **more: object) -> Report:
    """A report in which one answer is code and one is written."""
    exercises = (
        exercise("a-test", "1", 4, answer=code),
        exercise("w", None, 3, manual=True, answers=("w",), answer=text),
    )
    made = graded(exercises=exercises, flags=(AWAITS,), score=Decimal(1))
    return msgspec.structs.replace(made, max_score=Decimal(7), **more)


def give(course: Path, id: str, mark: float | None, extra: float | None = None, comment: str | None = None) -> None:
    """What formgrader's handlers store when a person fills the fields of one answer."""
    from nbgrader.api import Gradebook

    with Gradebook(address(course), "course") as book:
        grade = book.find_grade(id, "nb", "ps1", "student-01")
        grade.manual_score, grade.extra_credit = mark, extra
        grade.needs_manual_grade = grade.manual_score is None and grade.auto_score is None
        if comment is not None:
            book.find_comment(id.removesuffix("-test"), "nb", "ps1", "student-01").manual_comment = comment
        book.db.commit()


def marks(course: Path) -> Marks:
    """The marks of the one student."""
    return marks_of(course, "ps1", address(course)).get("student-01", NO_MARKS)


def names(report: Report) -> list[tuple[str, str | None]]:
    """The flags of a report, with their cells."""
    return [(flag.name, flag.cell) for flag in report.flags]


def test_what_a_person_gives_reaches_page_line_and_portfolio(course):
    """A mark, extra credit, an override and a comment change total, page and portfolio, and nothing waits any more."""
    report = wrote("Because of the mask.")
    store(course, report)
    assert marks(course) == NO_MARKS
    give(course, "w", 2.5, 0.1, "Well said.\nMore?")
    give(course, "a-test", 3)
    given = marks(course)
    shown = marked(report, given)
    assert [one.score for one in shown.exercises] == [3, Decimal("2.6")]
    assert (shown.score, names(shown)) == (Decimal("5.6"), [])
    html = feedback.render(report, marks=given)
    for told in ("5.6", "Well said.\nMore?", "A person gave these points in place of the checks"):
        assert told in html.replace("&#39;", "'")
    for waiting in ("Waiting to be marked", "are given by a person who reads", "A person reads and marks"):
        assert waiting not in html
    data = msgspec.json.decode(msgspec.json.encode(feedback.student_copy(report, given)))
    assert data["exercises"][1]["comments"] == ["Well said.\nMore?"]
    portfolio = Portfolio("student-01", "2026-11-29T10:00:00+00:00", (Work(report, marks=given),))
    told = msgspec.json.decode(as_json(portfolio))["assignments"][0]
    assert (told["score"], told["scores"]["exercises"]["score"]) == (5.6, 5.6)
    assert "5.6" in render(portfolio)


def test_a_mark_for_another_answer_is_kept_and_says_so(course):
    """After a change the mark stands, flagged, with a diff for staff, until a person saves it again for the new text."""
    first, second = wrote("Old line.\nSame line."), wrote("New line.\nSame line.")
    store(course, first)
    give(course, "w", 2)
    store(course, first)
    assert names(marked(first, marks(course))) == []
    store(course, second)
    for _ in range(2):
        shown = marked(second, marks(course))
        assert (shown.exercises[1].score, names(shown)) == (2, [("marked_before_change", "w")])
        assert difference(second, marks(course)).splitlines() == [
            "--- nb/w (marked)",
            "+++ nb/w (now)",
            "@@ -1,2 +1,2 @@",
            "-Old line.",
            "+New line.",
            " Same line.",
        ]
        assert "Your answer changed after a person had marked it." in feedback.render(second, marks=marks(course))
        store(course, second)  # grading again settles nothing
    give(course, "w", 2)
    assert names(marked(second, marks(course))) == []
    store(course, second)
    assert (names(marked(second, marks(course))), difference(second, marks(course))) == ([], "")
    store(course, first)
    assert names(marked(first, marks(course))) == [("marked_before_change", "w")]


def test_extra_credit_alone_is_remembered_with_its_answer(course):
    """Extra credit on an exercise of the machine is for the answer that a person saw, too."""
    store(course, wrote("w", "x = 1"))
    give(course, "a-test", None, 1)
    store(course, wrote("w", "x = 2"))
    shown = marked(wrote("w", "x = 2"), marks(course))
    assert (shown.exercises[0].score, names(shown)[1:]) == (2, [("marked_before_change", "a-test")])


def test_a_mark_older_than_our_table_counts_and_is_not_called_changed(course):
    """A course that marked before the texts were remembered keeps its marks; what is not known is not claimed."""
    from nbgrader.api import Gradebook

    with Gradebook(address(course), "course") as book:
        book.add_student("student-01")
        book.add_submission("ps1", "student-01")
    give(course, "w", 2)
    assert marks(course).by_cell == {("nb", "w"): Mark(Decimal(2))}
    store(course, wrote("Other."))
    assert names(marked(wrote("Other."), marks(course))) == []


def test_an_answer_that_no_database_can_keep_did_not_change(course):
    """An answer with a null character or half a surrogate pair is marked, and graded again it is the one that was marked."""
    odd = wrote("a\0b")
    store(course, odd)
    give(course, "w", 2)
    store(course, odd)
    assert names(marked(odd, marks(course))) == []


def test_an_override_judges_what_the_machine_could_not(course):
    """A report whose lost exercise a person has marked is graded."""
    lost = wrote("w", exercises=(exercise("a-test", None, 4),), status=Status.partly_graded, score=Decimal(0))
    store(course, lost)
    give(course, "a-test", 4)
    shown = marked(lost, marks(course))
    assert (shown.status, shown.score, mastery(shown.exercises).value) == (Status.graded, 4, "practised")


def test_a_penalty_is_taken_off_and_never_below_zero():
    """The total is what is left of the points, as nbgrader exports it, and the page says what was taken off."""
    late = Marks(penalty=Decimal("0.5"))
    assert marked(wrote("w"), late).score == Decimal("0.5")
    assert "handed in late: 0.5 points were taken off" in " ".join(feedback.render(wrote("w"), marks=late).split())
    assert marked(wrote("w"), Marks(penalty=Decimal(9))).score == 0


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "{{ 1 }}", "</pre><iframe>"])
def test_a_comment_is_text(text):
    """What a person writes is text on the page like everything else."""
    html = feedback.render(wrote("w"), marks=Marks({("nb", "w"): Mark(Decimal(1), comment=text)}))
    assert not [tag for tag in ("<script", "<iframe") if tag in html]


PLUGIN = """
from nbgrader.plugins import LateSubmissionPlugin
class PerHour(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return {points}
c.AssignLatePenalties.plugin_class = PerHour
"""


def due(course: Path, config: str, when: str = "2026-11-12 12:05:00 UTC") -> None:
    """Set a due date, two hours before the sample is handed in, and what the course does about it."""
    from nbgrader.api import Gradebook

    with (course / "course_config.py").open("a") as file:
        file.write(config)
    with Gradebook(address(course), "course") as book:
        book.update_or_create_assignment("ps1", duedate=when)


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ("", None),
        ('c.LateSubmissionPlugin.penalty_method = "zero"\n', 1),
        (PLUGIN.format(points="0.1 * total_seconds_late / 3600"), Decimal("0.2")),
        (PLUGIN.format(points="99"), 1),
        (PLUGIN.format(points="-1"), 0),
    ],
    ids=["none", "zero", "per hour", "more than earned", "negative"],
)
def test_the_plugin_of_the_course_sets_the_penalty(course, config, wanted):
    """Nbgrader's plugin and a course's own are asked on each run, with the seconds after the due date, within what was earned."""
    from nbgrader.api import Gradebook

    due(course, config)
    store(course, wrote("w"))
    assert marks(course).penalty == (wanted or 0)
    with Gradebook(address(course), "course") as book:
        assert book.find_submission_notebook("nb", "ps1", "student-01").late_submission_penalty == (
            None if wanted is None else float(wanted)
        )
        book.grant_extension("ps1", "student-01", hours=3)
    store(course, wrote("w"))
    assert marks(course).penalty == 0


@pytest.mark.parametrize("again", ["unchanged", "unreadable"])
def test_an_extension_counts_for_what_is_stored(course, again):
    """What stands in the gradebook is charged anew when nothing new is stored for it, and its statuses and marks stay."""
    from nbgrader.api import Gradebook

    due(course, 'c.LateSubmissionPlugin.penalty_method = "zero"\n')
    store(course, wrote("w"))
    give(course, "w", 2)
    with Writer(course, address(course)) as writer:
        assert writer.charge(wrote("w")).penalty == 3
        with Gradebook(address(course), "course") as book:
            book.grant_extension("ps1", "student-01", hours=3)
        if again == "unchanged":
            before = statuses(course)
            assert writer.charge(wrote("w")) == marks(course)
            assert statuses(course) == before
        else:
            writer.store(unreadable())
    assert (marks(course).penalty, marks(course).by_cell["nb", "w"].score) == (0, 2)


def test_an_extension_without_a_due_date_is_no_crash(course):
    """Nobody is late for what is never due."""
    from nbgrader.api import Gradebook

    store(course, wrote("w"))
    with Gradebook(address(course), "course") as book:
        book.grant_extension("ps1", "student-01", hours=3)
    store(course, wrote("w"))
    assert marks(course).penalty == 0


def test_a_plugin_that_fails_is_the_courses_to_mend(course):
    """What the instructor's plugin raises is told with its name and place, and nothing of the report is stored."""
    due(course, PLUGIN.format(points="1 / 0"))
    with pytest.raises(CourseError, match=r"PerHour.*ZeroDivisionError.*plugin_class"):
        store(course, wrote("w"))
    assert statuses(course) == []
