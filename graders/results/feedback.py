"""The page that a student reads.

Comes in: a report, and what a person gave beside it. Goes out: one self-contained HTML file, and the same as JSON. Must not: show source, values,
messages or tracebacks of hidden tests, or let anything from a student be more than text.

The page has no script and loads nothing; its Content-Security-Policy allows the one style sheet by its hash. Flags
whose name begins with `staff_` are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from pathlib import Path

from graders.records import ExerciseResult, Flag, Kind, Record, Report, Status, to_json
from graders.results.folders import folder, replace_folder
from graders.results.hints import student_reads
from graders.results.marks import CHANGED, NO_MARKS, Marks, changed, marked, of
from graders.results.numbers import plain
from graders.results.pages import Page, load
from graders.results.report import earlier, summary
from graders.results.times import shown

STAFF = "staff_"
LONGEST_ANSWER = 20_000  # characters; beyond it nobody reads on, and a page of 30 MB opens nowhere
WORDS = {
    "passed": ("✓", "Passed"),
    "failed": ("✗", "Not passed"),
    "not_run": ("–", "Not run"),
    "broken": ("!", "Broken"),
}
# Controls, and the marks that turn the direction of text and can make code read as it does not run
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Share(Record, frozen=True):
    """Points of one group of exercises."""

    name: str
    score: Decimal
    max_score: Decimal


def render(report: Report, notebooks: Iterable[str] = (), before: Report | None = None, marks: Marks = NO_MARKS) -> str:
    """The page of one report, with the points that count: a person's marks before the machine's.

    `notebooks` are those that were expected. `before` is an earlier report whose score stands because this one has none;
    its results are shown below.
    """
    report = marked(report, marks)
    graded = report.status is not Status.not_graded
    judged = report if graded else marked(before, marks) if before else None
    results = judged.exercises if judged else ()
    exercises = [one for one in results if one.kind is Kind.exercise]
    checkpoints = [one for one in results if one.kind is Kind.checkpoint]
    return _page().fill(
        report=report,
        graded=graded,
        judged=judged,
        notebooks=list(notebooks) or [report.assignment],
        groups=[("Exercises", exercises), ("Checkpoints", checkpoints)],
        shares=shares([("Exercises", exercises), ("Checkpoints", checkpoints)]),
        outcomes=shares(_by_outcome(results)),
        flags=for_student(report.flags),
        submitted=shown(report.submitted),
        waiting=[one for one in results if one.manual and one.score is None and one.attempted],
        next_steps=[one for one in results if one.score is not None and one.score < one.max_score],
        words=WORDS,
        penalty=marks.penalty,
        persons={anchor(one): _told(one, marks) for one in results},
    )


def write(course: Path, report: Report, notebooks: Iterable[str] = (), marks: Marks = NO_MARKS) -> list[Path]:
    """Put the pages into feedback/STUDENT/ASSIGNMENT/, one for each notebook as nbgrader names them, and feedback.json.

    `notebooks` are the assignment's; by default those of the report's exercises, else the assignment's own name.
    """
    before = earlier(course, report.student, report.assignment) if report.status is Status.not_graded else None
    known = (before or report).exercises
    names = list(notebooks) or list(dict.fromkeys(one.notebook for one in known)) or [report.assignment]
    page = render(report, names, before, marks).encode("utf-8", "replace")
    target = folder(course, "feedback", report.student, report.assignment)
    data = to_json(student_copy(report, marks))
    replace_folder(target, {f"{name}.html": page for name in names} | {"feedback.json": data})
    return [target / f"{name}.html" for name in names]


def student_copy(report: Report, marks: Marks = NO_MARKS) -> dict[str, object]:
    """What stands on the page, as data."""
    report = marked(report, marks)
    told = {
        one.id: {"reason": one.reason, "advice": one.advice, "answer": one.answer, "comments": comments(one, marks)}
        for one in report.exercises
    }
    line = summary(report)
    exercises = line["exercises"]
    assert isinstance(exercises, list)
    return line | {
        "flags": [{"name": flag.name, "text": flag.text, "cell": flag.cell} for flag in for_student(report.flags)],
        "exercises": [one | told[one["id"]] for one in exercises],
        "submitted": report.submitted,
        "arrived": report.arrived,
        "penalty": marks.penalty,
    }


def comments(one: ExerciseResult, marks: Marks) -> list[str]:
    """What a person wrote below the answers of an exercise."""
    ids = dict.fromkeys((*one.answers, one.id))
    found = (marks.by_cell.get((one.notebook, id)) for id in ids)
    return [mark.comment for mark in found if mark is not None and mark.comment]


def _told(one: ExerciseResult, marks: Marks) -> dict[str, object]:
    mark = of(one, marks)
    return {
        "comments": comments(one, marks),
        "by_person": mark.score is not None,
        "changed": CHANGED if changed(one, mark) else None,
    }


def for_student(flags: Iterable[Flag]) -> list[Flag]:
    """The flags that a student is told of."""
    return [flag for flag in flags if not flag.name.startswith(STAFF)]


@cache
def _page() -> Page:
    return load("feedback.html.j2", "feedback.css", filters=FILTERS)


def title(id: str) -> str:
    """A heading from a grade_id: `masked-score-test` is shown as “Masked score”."""
    words = re.sub(r"[-_ ]*\btests?$", "", id.replace("_", "-")).replace("-", " ").strip() or id
    return words[:1].upper() + words[1:]


def code(text: str) -> str:
    """Text for a <pre>: unseen characters are made visible, and what is endless is cut."""
    text = _UNSEEN.sub("�", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")
    return text if len(text) <= LONGEST_ANSWER else text[:LONGEST_ANSWER] + "\n… (cut here)"


def anchor(one: ExerciseResult) -> str:
    """An id inside the page that any grade_id gives."""
    return "x-" + hashlib.sha256(f"{one.notebook}/{one.id}".encode("utf-8", "replace")).hexdigest()[:12]


FILTERS: dict[str, Callable[..., str]] = {
    "points": plain,
    "title": title,
    "code": code,
    "anchor": anchor,
    "time": lambda text: shown(text) or "",
    "reads": lambda check: student_reads(check) or "",
}


def shares(groups: Iterable[tuple[str, Iterable[ExerciseResult]]]) -> list[Share]:
    """Points by group; what nobody has marked yet is left out of both numbers."""
    found = []
    for name, group in groups:
        judged = [one for one in group if one.score is not None]
        if judged:
            total = sum((one.max_score for one in judged), Decimal(0))
            found.append(Share(name, sum((one.score or Decimal(0) for one in judged), Decimal(0)), total))
    return found


def _by_outcome(exercises: Iterable[ExerciseResult]) -> list[tuple[str, list[ExerciseResult]]]:
    found: dict[str, list[ExerciseResult]] = {}
    for one in exercises:
        if one.outcome:
            found.setdefault(title(one.outcome), []).append(one)
    return list(found.items())
