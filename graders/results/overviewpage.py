"""The page of a class, for staff.

Comes in: an `Overview`. Goes out: one self-contained HTML file, `autograded/ASSIGNMENT.html`: there everything is for staff, and from there
nothing is returned. Must not: run a script, let anything from a student be more than text, or say by colour alone what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from graders.records import ExerciseResult
from graders.results.feedback import FILTERS, anchor
from graders.results.folders import folder, write_file
from graders.results.itemanalysis import level
from graders.results.mastery import by_kind
from graders.results.overview import BINS, Overview, Spread, judged, share
from graders.results.pages import Page, load
from graders.results.times import shown

FEW = 12  # names that stand in a line; more are behind a button
MOST = 10  # mistakes that are common; more, and those of one student, are behind a button
CHART = (400, 150)  # width and height of a drawing, in its own units
_WORDS = {
    "full": "all points",
    "part": "some points",
    "none": "no points",
    "open": "not judged yet",
    "blank": "not attempted",
}


class Column(NamedTuple):
    """One column of a histogram: where it stands in the drawing, how many it counts, and from where to where in percent."""

    x: float
    y: float
    width: float
    height: float
    students: int
    low: int
    high: int


def render(overview: Overview, made: str, page_of: Callable[[str], str | None]) -> str:
    """The page. `made` is ISO 8601; `page_of` gives the address of a student's feedback, None where there is none."""
    return _page().fill(
        one=overview,
        made=shown(made),
        columns=histogram(overview.spread) if overview.spread else (),
        chart=CHART,
        few=FEW,
        words=_WORDS,
        page_of=page_of,
        graded=sum(one.score is not None for one in overview.entries),
        common=min(MOST, sum(len(mistake.students) > 1 for mistake in overview.mistakes)),
        waiting=sum(len(group) for written in overview.written for group in written.groups),
    )


def write(course: Path, overview: Overview, made: str) -> Path:
    """Write the page and return its path; other users of the machine may not read it."""
    name = overview.assignment

    def page_of(student: str) -> str | None:
        pages = folder(course, "feedback", student, name)
        notebook = next((one.notebook for one in overview.exercises), name)
        path = pages / f"{notebook}.html"
        return _address("..", *path.relative_to(course).parts) if path.is_file() else None

    path = folder(course, "autograded", "any", name).parent.parent / f"{name}.html"
    write_file(path, render(overview, made, page_of).encode("utf-8", "replace"), mode=0o640)
    return path


def histogram(spread: Spread) -> tuple[Column, ...]:
    """The columns, the tallest as high as the drawing leaves room for numbers above and below."""
    width, height = CHART
    step, room, floor = width / BINS, height - 45, height - 22
    most = max(spread.counts)
    return tuple(
        Column(
            x=round(place * step + 2, 2),
            y=round(floor - room * count / most, 2),
            width=step - 4,
            height=round(room * count / most, 2),
            students=count,
            low=100 * place // BINS,
            high=100 * (place + 1) // BINS,
        )
        for place, count in enumerate(spread.counts)
    )


def state(one: ExerciseResult) -> str:
    """The level of one exercise, or that it was not attempted."""
    return "blank" if not one.attempted and not one.score else level([one])


def telling(index: float | None) -> str:
    """What a discrimination says, in words; the limits are Ebel's."""
    if index is None:
        return "says nothing here"
    if index < 0:
        return "favours the weak: look at this check"
    return "hardly tells" if index < 0.2 else "tells" if index < 0.4 else "tells well"


def _address(*parts: str) -> str:
    return "/".join(quote(part.encode("utf-8", "replace")) for part in parts)


@cache
def _page() -> Page:
    more: dict[str, Callable[..., Any]] = {
        "percent": lambda number: f"{100 * number:.0f} %",
        "judged": judged,
        "share": share,
        "kinds": by_kind,
        "state": state,
        "telling": telling,
        "place": lambda exercise: "#" + anchor(exercise),
    }
    return load("overview.html.j2", "feedback.css", "overview.css", filters={**FILTERS, **more})
