"""Laws of reading that hold for any notebook at all: hypothesis cuts, copies, moves and spoils the cells of a good one."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from notebook_samples import dump

from graders.course.assignments import read_assignment
from graders.course.notebooks import read_submission
from graders.coursework import Role, Submission
from graders.errors import SubmissionError
from graders.exam import plan
from graders.records import to_json

SUBMISSIONS = Path(__file__).resolve().parents[1] / "submissions"
ASSIGNMENT = read_assignment(SUBMISSIONS / "course", "ps1")
GOOD = json.loads((SUBMISSIONS / "F6-extra-files" / "files" / "lesson.ipynb").read_text())
[CELLS] = ASSIGNMENT.notebooks.values()

TEXT = st.text(max_size=30) | st.sampled_from(
    ["def double(x):\n  return 0", "total = 1", "\ud83d", "\0", "assert double(1) == 2"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
KEYS = [
    "source",
    "cell_type",
    "id",
    "metadata",
    "nbgrader",
    "grade_id",
    "points",
    "checksum",
    "grade",
    "solution",
    "locked",
]
CHANGE = st.tuples(
    st.sampled_from(["drop", "copy", "move", "forget", "spoil", "rename", "write"]),
    st.integers(0, 20),
    st.integers(0, 20),
    st.sampled_from(KEYS),
    JSON,
    TEXT,
)


def changed(changes: list[tuple[str, int, int, str, object, str]]) -> dict[str, object]:
    """The good notebook after these changes."""
    made = copy.deepcopy(GOOD)
    cells = made["cells"]
    for what, one, other, key, value, text in changes:
        if not cells:
            break
        cell = cells[one % len(cells)]
        marks = cell.get("metadata")
        if what == "drop":
            cells.remove(cell)
        elif what == "copy":
            cells.insert(other, copy.deepcopy(cell))
        elif what == "move":
            cells.insert(other, cells.pop(one % len(cells)))
        elif what == "forget":
            cell["metadata"] = {}
        elif what == "write":
            cell["source"] = text
        elif what == "rename" and isinstance(marks, dict) and isinstance(marks.get("nbgrader"), dict):
            marks["nbgrader"][key] = value
        else:
            cell[key] = value
    return made


def read(files: dict[str, bytes]) -> Submission | str:
    """What is read of these files, or the sentence that says why nothing is."""
    try:
        return read_submission(files, (), "student-01", ASSIGNMENT)
    except SubmissionError as error:
        return str(error)


@settings(max_examples=200, deadline=None)
@given(st.lists(CHANGE, max_size=12))
def test_whatever_is_changed_the_tests_are_the_authors(changes: list[tuple[str, int, int, str, object, str]]) -> None:
    """Every test runs once, in the released order, with the author's text and names; or one sentence says why nothing does."""
    files = {"lesson.ipynb": json.dumps(changed(changes)).encode(), "rows.csv": b"1\n"}
    found = read(files)
    if isinstance(found, str):
        assert found.startswith("lesson.ipynb ")
        return
    sealed = plan.seal(ASSIGNMENT, found)
    [notebook] = sealed.notebooks
    wanted = [(cell.id, cell.source) for cell in CELLS if cell.role is Role.test]
    whole = plan.seal(ASSIGNMENT, read_submission({"lesson.ipynb": dump(GOOD)}, (), "s", ASSIGNMENT)).notebooks[0]
    names = {step.id: step.names for step in whole.steps if step.names}
    tests = [step for step in notebook.steps if step.role is Role.test]
    assert [(step.id, step.source) for step in tests] == wanted
    assert {step.id: step.names for step in tests} == names
    assert all(step.author for step in notebook.steps if step.role in (Role.test, Role.locked))
    assert [step.position for step in notebook.steps] == list(range(len(notebook.steps)))
    assert sealed.files["rows.csv"] == ASSIGNMENT.files["rows.csv"]
    to_json(sealed.flags)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(["lesson.ipynb", "lesson.json"]),
)
def test_whatever_bytes_arrive_there_is_a_sentence(data: bytes, name: str) -> None:
    """Bytes that are no notebook are refused with one sentence that names the file; nothing else is raised."""
    told = read({name: data})
    assert isinstance(told, str)
    assert name in told
    assert told.endswith(".")
