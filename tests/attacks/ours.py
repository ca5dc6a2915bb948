"""The attack class, graded by this project, and what every attack came to.

Comes in: a folder and attacks. Goes out: `Graded`: evidence by attack and sign, and every page that a person may open.
Must not: count anything as a success that a wrong answer without an attack has as well.
"""

from __future__ import annotations

import html
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import assignment
import bait
import msgspec
from corpus import Attack

from graders import config
from graders.kernels.nursery import best_level
from graders.records import Report
from graders.results import classbook, feedback, likeness, overview, overviewpage, portfoliopage
from graders.results.portfolio import Portfolio, Work, as_json
from graders.results.report import REPORT, json_line, read
from graders.run import grading

Evidence = dict[str, dict[str, list[str]]]  # attack: sign: what was seen


class Outcome(msgspec.Struct):
    """One class after grading. `pages` are HTML by attack and name; `notebooks` what staff opens."""

    course: Path
    evidence: Evidence
    pages: dict[str, dict[str, str]]
    notebooks: dict[str, str]


def run(root: Path, attacks: Iterable[Attack], workers: int = 1) -> Outcome:
    """Grade the class and look for every sign."""
    attacks, course = list(attacks), root / "course"
    bait.make_course(course)
    around = bait.Bait(root, course)
    for one in attacks:
        bait.hand_in(course, one, around.places)
    with around:
        settings = config.load(course)
        ready = grading.prepare(settings, assignment.NAME, best_level())
        grading.grade_class(
            settings, ready, grading.students(course, assignment.NAME), workers, True, lambda report: None
        )
        traces = around.traces()
    evidence = {one.name: _evidence(course, one) for one in attacks}
    add_traces(evidence, traces)
    pages = {one.name: _pages(course, one) for one in attacks}
    notebooks = {one.name: notebook(course, one.who()) for one in attacks}
    return Outcome(course, evidence, pages, {name: text for name, text in notebooks.items() if text})


def add_traces(evidence: Evidence, traces: dict[str, set[str]]) -> None:
    """Put each mark to the attack that it names; what names none is evidence against all, under its own name."""
    for sign, marks in traces.items():
        for mark in marks:
            name = mark.removeprefix("wombat-")
            evidence.setdefault(name, {}).setdefault(sign, []).append(f"{mark} was found")


def report_of(course: Path, student: str) -> Report:
    """The report on one student."""
    return read(course / "autograded" / student / assignment.NAME / REPORT)


def notebook(course: Path, student: str) -> str:
    """The autograded notebook, or nothing where there is none."""
    path = course / "autograded" / student / assignment.NAME / f"{assignment.NOTEBOOK}.ipynb"
    return path.read_text() if path.is_file() else ""


def scores(course: Path, student: str) -> dict[str, float]:
    """Points by exercise in a gradebook, as nbgrader adds them up."""
    query = (
        "SELECT b.name, coalesce(g.manual_score, g.auto_score, 0) + coalesce(g.extra_credit, 0) FROM grade g"
        " JOIN base_cell b ON g.cell_id = b.id JOIN submitted_notebook n ON g.notebook_id = n.id"
        " JOIN submitted_assignment a ON n.assignment_id = a.id WHERE a.student_id = ?"
    )
    with closing(sqlite3.connect(course / "gradebook.db")) as book:
        return {name.removesuffix("-test"): score for name, score in book.execute(query, (student,))}


def outputs(text: str) -> str:
    """What the cells of a notebook put out that are no tests: what the student's code knew, all of it staff's."""
    cells = json.loads(text)["cells"] if text else []
    return "\n".join(
        json.dumps(one.get("outputs", [])) for one in cells if not one["metadata"].get("nbgrader", {}).get("grade")
    )


def told(text: str, attack: Attack, values: bool = False) -> list[str]:
    """Hidden words in a text, but for those that stand in the attack itself."""
    own = attack.code + "".join(attack.answers.values())
    hidden = assignment.hidden_lines() | {bait.CANARY} | (assignment.hidden_values() if values else set())
    return sorted(one for one in hidden if one in text and one not in own)


def says_so(text: str, attack: Attack) -> dict[str, list[str]]:
    """The signs that only the attack itself can see; it then prints a line that begins with WON."""
    cells = json.loads(text)["cells"] if text else []
    printed = [
        "".join(out["text"]) for one in cells for out in one.get("outputs", ()) if out["output_type"] == "stream"
    ]
    won = any(line.startswith("WON") for part in printed for line in part.splitlines())
    return {sign: ["it says so"] for sign in attack.seen if won}


def _evidence(course: Path, attack: Attack) -> dict[str, list[str]]:
    report = report_of(course, attack.who())
    found = says_so(notebook(course, attack.who()), attack)
    points = [f"{one.id}: {one.score}" for one in report.exercises if one.score not in (None, Decimal(0))]
    points += [f"gradebook, {id}: {score}" for id, score in scores(course, attack.who()).items() if score]
    seen = told(outputs(notebook(course, attack.who())), attack)
    for text in (*_pages(course, attack).values(), *_data(course, attack)):
        # the answer that was handed in is shown again
        seen += [f"{one} on a page" for one in told(html.unescape(text), attack, values=True)]
    more = {"forged points": points, "hidden text seen": seen}
    return found | {sign: found.get(sign, []) + texts for sign, texts in more.items() if texts}


def _data(course: Path, attack: Attack) -> list[str]:
    report = report_of(course, attack.who())
    return [
        json_line(report).decode(),
        as_json(_portfolio(report)).decode(),
        json.dumps(feedback.student_copy(report), default=str),
    ]


def _pages(course: Path, attack: Attack) -> dict[str, str]:
    """Every page of this project that shows something of this student."""
    report = report_of(course, attack.who())
    stands = (report.status.value, report.score, report.max_score, report.reason, report, report)
    entry = classbook.Entry(classbook.Person(report.student), report.assignment, *stands)
    class_ = overview.build(report.assignment, (entry,), (), likeness.together)
    return {
        "feedback": feedback.render(report),
        "portfolio": portfoliopage.render(_portfolio(report)),
        "overview": overviewpage.render(class_, "2030-01-01T00:00:00+00:00", lambda student: None),
    }


def _portfolio(report: Report) -> Portfolio:
    return Portfolio(report.student, "2030-01-01T00:00:00+00:00", (Work(report, "0" * 64, ("ps1/nb.ipynb",)),))
