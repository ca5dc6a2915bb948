"""The page that a student reads.

Comes in: a report, and what a person gave beside it. Goes out: one self-contained HTML file, and the same as JSON. Must not: show source, values,
messages or tracebacks of hidden tests, or let anything from a student be more than text.

The page has no script and loads nothing; its Content-Security-Policy allows the one style sheet by its hash. Flags
whose name begins with `staff_` are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from graders.records import ExerciseResult, Flag, Kind, Report, Shown, Status, to_json
from graders.results.compilation import told as compiled
from graders.results.folders import folder, replace_folder
from graders.results.hints import student_reads
from graders.results.marks import CHANGED, NO_MARKS, Marks, changed, marked, of, waiting
from graders.results.mastery import WORDS as MASTERY
from graders.results.mastery import as_data, by_kind, outcomes, short
from graders.results.numbers import plain
from graders.results.pages import Page, load
from graders.results.report import earlier, showed, summary
from graders.results.times import shown

Outputs = Mapping[str, Mapping[str, Shown]]  # by notebook and grade_id
NO_OUTPUTS: Outputs = {}
STAFF = "staff_"
LONGEST_ANSWER = 20_000  # characters; beyond it nobody reads on, and a page of 30 MB opens nowhere
KINDS = ("Exercises", "Checkpoints")
WORDS = {
    "passed": ("✓", "Passed"),
    "failed": ("✗", "Not passed"),
    "not_run": ("–", "Not run"),
    "broken": ("!", "Broken"),
}
# Controls, and the marks that turn the direction of text and can make code read as it does not run
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def render(
    report: Report,
    notebooks: Iterable[str] = (),
    before: Report | None = None,
    marks: Marks = NO_MARKS,
    outputs: Outputs = NO_OUTPUTS,
) -> str:
    """The page of one report, with the points that count: a person's marks before the machine's.

    `notebooks` are those that were expected. `before` is an earlier report whose score stands because this one has none;
    its results are shown below. `outputs` are what the answers showed.
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
        groups=list(zip(KINDS, (exercises, checkpoints), strict=True)),
        shares=[(name, share) for name, share in zip(KINDS, by_kind(results), strict=True) if share],
        mastery=MASTERY,
        proof=_proof(checkpoints),
        practice=_practice(exercises),
        outputs={anchor(one): _shown(one, outputs) for one in results},
        outcomes=outcomes([judged] if judged else ()),
        flags=for_student(report.flags),
        submitted=shown(report.submitted),
        waiting=[one for one in results if waiting(one)],
        next_steps=[one for one in results if short(one)],
        words=WORDS,
        penalty=marks.penalty,
        persons={anchor(one): _told(one, marks) for one in results},
        compiled=compiled(judged) if judged else {},
        compilation=judged.receipt.compilation if judged and judged.receipt else None,
    )


def write(course: Path, report: Report, notebooks: Iterable[str] = (), marks: Marks = NO_MARKS) -> list[Path]:
    """Put the pages into feedback/STUDENT/ASSIGNMENT/, one for each notebook as nbgrader names them, and feedback.json.

    `notebooks` are the assignment's; by default those of the report's exercises, else the assignment's own name.
    """
    before = earlier(course, report.student, report.assignment) if report.status is Status.not_graded else None
    known = (before or report).exercises
    names = list(notebooks) or list(dict.fromkeys(one.notebook for one in known)) or [report.assignment]
    outputs = showed(course, report.student, report.assignment)
    page = render(report, names, before, marks, outputs).encode("utf-8", "replace")
    target = folder(course, "feedback", report.student, report.assignment)
    data = to_json(student_copy(report, marks, outputs))
    replace_folder(target, {f"{name}.html": page for name in names} | {"feedback.json": data})
    return [target / f"{name}.html" for name in names]


def student_copy(report: Report, marks: Marks = NO_MARKS, outputs: Outputs = NO_OUTPUTS) -> dict[str, object]:
    """What stands on the page, as data."""
    report = marked(report, marks)
    programs = compiled(report)
    told = {
        one.id: {
            "outcome": one.outcome,
            "reason": one.reason,
            "advice": one.advice,
            "answer": one.answer,
            "showed": _shown(one, outputs),
            "comments": comments(one, marks),
            "compiled": programs.get(one.id, []),
        }
        for one in report.exercises
    }
    line = summary(report)
    exercises = line["exercises"]
    assert isinstance(exercises, list)
    return line | {
        "flags": [{"name": flag.name, "text": flag.text, "cell": flag.cell} for flag in for_student(report.flags)],
        "outcomes": as_data([report]),
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


def _proof(checkpoints: Sequence[ExerciseResult]) -> list[tuple[str, list[ExerciseResult]]]:
    """The checkpoints that are proven, those that are not yet, and those that nobody has judged."""
    found: dict[str, list[ExerciseResult]] = {"Proven": [], "Not yet": [], "Waiting": []}
    for one in checkpoints:
        found["Not yet" if short(one) else "Waiting" if one.score is None else "Proven"].append(one)
    return list(found.items())


def _practice(exercises: Iterable[ExerciseResult]) -> dict[str, list[ExerciseResult]]:
    """The exercises that practise each outcome: what to read again when its checkpoint is not yet proven."""
    found: dict[str, list[ExerciseResult]] = {}
    for one in exercises:
        if one.outcome:
            found.setdefault(one.outcome, []).append(one)
    return found


def _shown(one: ExerciseResult, outputs: Outputs) -> list[Shown]:
    mine = outputs.get(one.notebook, {})
    return [mine[id] for id in one.answers if id in mine]


def for_student(flags: Iterable[Flag]) -> list[Flag]:
    """The flags that a student is told of."""
    return [flag for flag in flags if not flag.name.startswith(STAFF)]


@cache
def _page() -> Page:
    return load("feedback.html.j2", "feedback.css", filters=FILTERS, pictures=True)


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
