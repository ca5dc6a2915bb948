"""The page of the gate: what was refused and why, and what the tests do to wrong answers.

Comes in: a `Gate`. Goes out: one HTML page below `.graders/gate/`. Must not: run anything, or leave out a finding.
"""

from __future__ import annotations

from pathlib import Path

from graders.findings import Gate
from graders.results.folders import write_file
from graders.results.pages import load

TITLES = {
    "reference": "The solution, and what was handed out",
    "answers": "Known answers",
    "mutants": "Wrong answers made from the solution",
    "leaks": "Leaks and markers",
    "seal": "What a test may read and bind",
    "stability": "Stability",
}


def render(gate: Gate) -> str:
    """The page. It has no script, and its style is allowed by hash alone."""
    groups = [
        (title, gate.ran.get(name, "not tried, since something before it was refused"), found)
        for name, title in TITLES.items()
        if (found := [one for one in gate.findings if one.group == name]) is not None
    ]
    return load("gate.html.j2", "gate.css").fill(gate=gate, groups=groups)


def write(course: Path, gate: Gate) -> Path:
    """Write `.graders/gate/ASSIGNMENT.html` and return its path."""
    path = course / ".graders" / "gate" / f"{gate.assignment}.html"
    write_file(path, render(gate).encode("utf-8", "replace"))
    return path
