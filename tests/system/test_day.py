"""The law of the whole way: a lesson goes from an instructor to students and back, by the buttons of JupyterLab and formgrader.

`PICTURES=docs/pictures make test-system` keeps a picture of each step, which docs/day.md shows.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from driving import Lab, chromium, press
from people import ROOT, Person, people
from playwright.sync_api import Browser, FrameLocator, expect

pytestmark = pytest.mark.system

LEAK = "[9.0, 5.0, 4.0]"  # stands in a hidden test and nowhere else
STARS = """\
def masked_mean(values, mask):
    return np.mean(values[mask])"""
SLIP = """\
def masked_mean(values, mask):
    return np.where(mask, values, 0).mean()"""
WHY = {"student-01": "It divides by the number of real values.", "student-02": "Zeros do not count."}
POINTS = {"student-01": 2, "student-02": 1}
TOTAL = {"student-01": "5 of 5 points", "student-02": "2 of 5 points"}


def cell(id: str, kind: str, source: str, points: int | None = None, **marks: bool) -> dict[str, Any]:
    """A cell as nbgrader's *Create Assignment* marks it."""
    marks = {"grade": False, "solution": False, "locked": False, "task": False} | marks
    meta = {"grade_id": id, "schema_version": 3, **marks} | ({} if points is None else {"points": points})
    made = {"id": id, "cell_type": kind, "source": source, "metadata": {"nbgrader": meta}}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


TESTS = f"""\
assert masked_mean(np.array([1.0, 3.0]), np.array([True, True])) == 2
### BEGIN HIDDEN TESTS
from graders.checks import check, expect
with check("No padding", points=1):
    expect(masked_mean(np.array([1.0, 3.0]), np.array([True, True])), 2.0)
with check("The padding may hold anything", points=2, hint="Divide by the number of real values."):
    expect(masked_mean(np.array({LEAK}), np.array([False, True, True])), 4.5)
### END HIDDEN TESTS"""
LESSON = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "cells": [
        cell(
            "task", "markdown", "# A mean over the real rows\n\nThe mean of `values` where `mask` is true.", locked=True
        ),
        cell("setup", "code", "import numpy as np", locked=True),
        cell("masked-mean", "code", f"### BEGIN SOLUTION\n{STARS}\n### END SOLUTION", solution=True),
        cell("masked-mean-test", "code", TESTS, 3, grade=True, locked=True),
        cell("question", "markdown", "Why is `np.where(mask, values, 0).mean()` wrong?", locked=True),
        cell("why", "markdown", "YOUR ANSWER HERE", 2, grade=True, solution=True),
    ],
}
STUDENTS = ("student-01", "student-02")


def test_a_lesson_goes_round() -> None:
    """Generated, released, fetched, answered, validated, submitted, collected, graded, marked and returned: each student reads
    their own page, and no other user of the machine can."""
    pictures = Path(os.environ["PICTURES"]).resolve() if os.environ.get("PICTURES") else None
    with ExitStack() as stack:
        instructor, *students = stack.enter_context(people("instructor", *STUDENTS))
        settle(instructor, students)
        servers = [
            stack.enter_context(one.serving("course" if one is instructor else ".")) for one in (instructor, *students)
        ]
        browser = stack.enter_context(chromium())
        desk, *laptops = (Lab(browser, one.address()) for one in servers)
        desk.pictures = laptops[-1].pictures = pictures
        release(desk)
        for student, laptop in zip(students, laptops, strict=True):
            work(student, laptop)
        collect_and_grade(desk, instructor)
        mark(browser, servers[0].address(), pictures)
        return_feedback(desk)
        for student, laptop in zip(students, laptops, strict=True):
            read_feedback(student, laptop)
        nobody_else_reads(students)


def settle(instructor: Person, students: list[Person]) -> None:
    """A course at the instructor's, and for everybody where the exchange is."""
    for one in (instructor, *students):
        lines = [
            "c = get_config()",
            f"c.Exchange.root = {str(one.base / 'exchange')!r}",
            "c.CourseDirectory.course_id = 'numerical'",
        ]
        one.write(".jupyter/nbgrader_config.py", "\n".join(lines))
    level = "from graders.kernels.nursery import best_level; print(best_level())"
    walls = instructor.run(sys.executable, "-c", level).split()[-1]
    settings = (ROOT / "course_config.py").read_text().replace("numerical-python", "numerical")
    instructor.write(
        "course/course_config.py", f"{settings}\nc.Graders.isolation = {walls!r}\nc.Graders.processes = 1024\n"
    )
    instructor.write("course/nbgrader_config.py", (ROOT / "nbgrader_config.py").read_bytes())
    instructor.write("course/source/ps1/ps1.ipynb", json.dumps(LESSON))


def row(frame: FrameLocator, name: str) -> Any:
    """The row of a table of formgrader's."""
    return frame.locator("#main-table tr", has_text=name)


def release(desk: Lab) -> None:
    """The instructor makes the students' version and puts it into the exchange."""
    frame = desk.formgrader()
    press(frame, row(frame, "ps1").locator(".assign a"), "Successfully created the student version")
    press(frame, row(frame, "ps1").locator(".release a"), "Successfully released")
    expect(row(frame, "ps1").locator(".status")).to_contain_text("released")
    row(frame, "ps1").scroll_into_view_if_needed()
    desk.picture("day-release")


def work(student: Person, laptop: Lab) -> None:
    """A student fetches, answers, runs, validates and hands in."""
    laptop.assignments()
    laptop.listed("released", "ps1").get_by_role("button", name="Fetch").click()
    expect(laptop.listed("fetched", "ps1")).to_have_count(1)
    laptop.open_fetched("ps1", "ps1")
    laptop.write("YOUR CODE HERE", STARS if student.name == "student-01" else SLIP)
    laptop.write("YOUR ANSWER HERE", WHY[student.name])
    laptop.run_all()
    laptop.picture("day-work")
    assert "Success" in laptop.validate()
    laptop.picture("day-validate")
    laptop.close_dialog()
    laptop.assignments()
    laptop.listed("fetched", "ps1").get_by_role("button", name="Submit").click()
    expect(laptop.listed("submitted", "ps1")).to_have_count(1)
    laptop.picture("day-submit")


def collect_and_grade(desk: Lab, instructor: Person) -> None:
    """The instructor collects, and grades each student with the button beside the name."""
    frame = desk.formgrader()
    press(frame, row(frame, "ps1").locator(".collect a"), "Successfully collected")
    row(frame, "ps1").locator(".num-submissions a").click()
    for name in STUDENTS:
        said = press(frame, row(frame, name).locator(".autograde a"), "Successfully autograded")
        assert f"{name}: graded, " in said
    expect(row(frame, "student-01").locator(".score")).to_contain_text("3 / 5")
    expect(row(frame, "student-02").locator(".score")).to_contain_text("1 / 5")
    row(frame, "student-02").scroll_into_view_if_needed()
    desk.picture("day-grade")
    for name in STUDENTS:  # our examiner was at work: its report is signed
        assert name in instructor.run(
            "graders", "--course", "course", "verify", f"course/autograded/{name}/ps1/report.json"
        )


def mark(browser: Browser, address: str, pictures: Path | None) -> None:
    """A TA reads what the machine found, and marks the written answers."""
    desk = Lab(browser, address, pictures)
    frame = desk.formgrader()
    for link in ("Manual Grading", "ps1", "ps1", "Submission #1"):
        frame.get_by_role("link", name=link, exact=True).click()
    for number in (1, 2):
        expect(frame.get_by_text(f"Submission {number} / 2")).to_be_visible()
        [name] = [name for name in STUDENTS if frame.get_by_text(WHY[name]).count()]
        if name == "student-02":
            expect(frame.get_by_text("the student reads: Divide by the number of real values.")).to_be_visible()
        score = frame.locator(".nbgrader_cell", has_text=WHY[name]).locator("input.score")
        expect(score).to_have_class(
            re.compile("needs_manual_grade")
        )  # the page has filled it in, and will not do so again
        with desk.page.expect_response(
            lambda answer: "/formgrader/api/grade/" in answer.url and answer.request.method == "PUT"
        ):
            score.fill(str(POINTS[name]))
            score.press("Tab")
        if name == "student-02":
            desk.picture("day-mark")
        frame.locator(".next a").click()


def return_feedback(desk: Lab) -> None:
    """The instructor makes the pages and puts them into the exchange."""
    frame = desk.formgrader()
    frame.get_by_role("link", name="Assignments", exact=True).click()
    press(frame, row(frame, "ps1").locator(".generate-feedback a"), "Successfully generated feedback")
    press(frame, row(frame, "ps1").locator(".release-feedback a"), "Successfully released feedback")
    row(frame, "ps1").scroll_into_view_if_needed()
    desk.picture("day-return")


def read_feedback(student: Person, laptop: Lab) -> None:
    """A student fetches the page and reads it."""
    laptop.assignments()
    laptop.page.locator("#refresh_assignments_list").click()
    laptop.listed("submitted", "ps1").get_by_role("button", name="Fetch Feedback").click()
    laptop.page.get_by_text("(view feedback)").click()
    page = laptop.open_file("ps1.html")
    expect(page.locator("body")).to_contain_text(TOTAL[student.name])
    expect(page.locator("body")).to_contain_text(WHY[student.name])
    page.get_by_text(WHY[student.name]).scroll_into_view_if_needed()
    laptop.picture("day-read")
    assert LEAK not in page.locator("html").inner_html()


def nobody_else_reads(students: list[Person]) -> None:
    """Neither of the two finds anything of the other in the exchange, at home, or in what was fetched."""
    for student, other in zip(students, reversed(students), strict=True):
        student.run("ls", str(other.home), status=2)
        for room in ("feedback", "inbound"):
            student.run("ls", str(student.base / "exchange" / "numerical" / room), status=2)
        student.run("grep", "-rqF", WHY[student.name], "ps1/feedback")
        student.run("grep", "-rF", WHY[other.name], "ps1", status=1)
