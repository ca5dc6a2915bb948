"""Laws of repair: cells without marks are known again, releases are told apart, and nobody gains by a forged mark."""

from __future__ import annotations

import copy
import json
import random
import time
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from notebook_samples import dump

from graders.course.alignment import align
from graders.course.answers import known_answers
from graders.course.assignments import read_assignment
from graders.course.notebooks import read_submission
from graders.course.parsing import RawCell, parse
from graders.course.repairs import is_older, is_signed
from graders.coursework import Assignment, Role

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.name for path in (ROOT / "source").iterdir() if path.is_dir())
SUBMISSIONS = ROOT / "tests" / "submissions"


def only_notebook(assignment: Assignment):
    """The cells of the one notebook."""
    [cells] = assignment.notebooks.values()
    return cells


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("seed", range(12))
def test_a_lesson_without_marks_is_known_again(lesson: str, seed: int) -> None:
    """S5: with no metadata, no ids, known answers of every quality and scratch cells between, each cell is recognised."""
    cells = only_notebook(read_assignment(ROOT, lesson))
    answers: dict[str, list[str]] = {}
    for one in known_answers(ROOT / "tests" / "answers" / lesson):
        answers.setdefault(one.cell, []).append(one.source)
    pick = random.Random(seed)
    handed_in, wanted = [], []
    for cell in cells:
        if pick.random() < 0.1:
            handed_in.append(RawCell("code", pick.choice(["print(1)", "scratch_x = 3", "len([])"])))
            wanted.append(None)
        text = pick.choice([*answers.get(cell.id or "", []), cell.source, cell.released])
        handed_in.append(RawCell(cell.cell_type, text if cell.role is Role.answer else cell.released))
        wanted.append(cell.id)
    assert align(cells, handed_in).ids == tuple(wanted)


@pytest.mark.parametrize("lesson", LESSONS)
def test_one_lesson_is_not_another(lesson: str) -> None:
    """S5: no other lesson of this course is taken for the released notebook, with its marks and ids or without."""
    cells = only_notebook(read_assignment(ROOT, lesson))
    for other in set(LESSONS) - {lesson}:
        released = parse((ROOT / "release" / other / f"{other}.ipynb").read_bytes(), other)[0]
        bare = [RawCell(one.cell_type, one.source) for one in released]
        assert [align(cells, one).evidence for one in (released, bare)] == [0, 0]


def test_a_cell_that_has_an_id_keeps_it() -> None:
    """S6: an unknown grade_id stays unknown, though text and Jupyter's own id say which cell it was."""
    cells = only_notebook(read_assignment(SUBMISSIONS / "course", "ps1"))
    released = parse((SUBMISSIONS / "course" / "release" / "ps1" / "lesson.ipynb").read_bytes(), "lesson")[0]
    renamed = [
        msgspec.structs.replace(one, nbgrader=one.nbgrader | {"grade_id": "mine"})
        if one.nbgrader.get("grade_id") == "double"
        else one
        for one in released
    ]
    assert align(cells, renamed).found == ()
    assert "mine" in align(cells, renamed).ids


def test_two_answers_in_one_gap_keep_their_order() -> None:
    """S5: two written answers without any mark between the same two cells are taken in the order in which they stand."""
    cells = only_notebook(read_assignment(SUBMISSIONS / "course", "ps1"))
    why = next(one for one in cells if one.id == "why")
    cells = (*cells, msgspec.structs.replace(why, id="why-again", position=len(cells)))
    handed_in = [RawCell(one.cell_type, one.released) for one in cells[:-2]]
    handed_in += [RawCell("markdown", "First."), RawCell("markdown", "Second.")]
    assert align(cells, handed_in).ids[-2:] == ("why", "why-again")
    assert align(cells, [*handed_in, RawCell("markdown", "Which?")]).ids[-3:] == (None, None, None)


def test_aligning_ends_soon() -> None:
    """A notebook made to be compared for ever, of many long and similar cells, is aligned within seconds."""
    cells = only_notebook(read_assignment(ROOT, "performance-02"))
    many = [RawCell("code", f"value_{number} = 1") for number in range(50_000)]
    alike = [RawCell("code", cell.released[:-3] + str(n)) for n in range(50) for cell in cells]
    long = [RawCell("code", "a" * 2_000_000), RawCell("code", "a" + " " * 2_000_000)]
    for handed_in in (many, alike, long):
        started = time.process_time()
        align(cells, handed_in)
        assert time.process_time() - started < 10


def test_the_checksum_is_nbgraders() -> None:
    """A cell counts as untouched since its release exactly when nbgrader's own checksum of it says so."""
    for lesson in LESSONS:
        released = parse((ROOT / "release" / lesson / f"{lesson}.ipynb").read_bytes(), lesson)[0]
        for cell in (one for one in released if one.nbgrader):
            assert is_signed(cell)  # nbgrader wrote it there when the lesson was released
            assert not is_signed(msgspec.structs.replace(cell, source=cell.source + "#"))
            assert not is_signed(msgspec.structs.replace(cell, nbgrader=cell.nbgrader | {"grade_id": "other"}))


@pytest.mark.parametrize("points", [1e400, "nan", "sNaN", "1e999999", [1], {"a": 1}, "٣", True, None, -0.0])
def test_strange_marks_are_flagged_and_nothing_more(points: object) -> None:
    """S8: whatever stands where points belong, the notebook is read and the author's points are used."""
    given = read_assignment(SUBMISSIONS / "course", "ps1")
    made = json.loads((SUBMISSIONS / "F6-extra-files" / "files" / "lesson.ipynb").read_text())
    [test] = [one for one in made["cells"] if one["metadata"].get("nbgrader", {}).get("grade_id") == "double-test"]
    test["metadata"]["nbgrader"] |= {"points": points, "checksum": [1]}
    found = read_submission({"lesson.ipynb": dump(made)}, (), "s", given)
    assert [(flag.name, flag.cell) for flag in found.flags] == [("marks_edited", "double-test")]


def test_an_older_release_is_no_edit() -> None:
    """S13: a cell that nbgrader signed with other text or points is older; the same without a signature was edited."""
    cells = {cell.id: cell for cell in only_notebook(read_assignment(SUBMISSIONS / "course", "ps1"))}
    older = parse((SUBMISSIONS / "S13-older-release" / "files" / "lesson.ipynb").read_bytes(), "lesson")[0]
    found = {one.nbgrader["grade_id"]: one for one in older if one.nbgrader}
    assert is_older(cells["double-test"], found["double-test"])
    assert is_older(None, found["gone-test"])
    assert not is_older(cells["total-test"], found["total-test"])
    unsigned = copy.deepcopy(found["double-test"].nbgrader) | {"checksum": "0" * 32}
    assert not is_older(cells["double-test"], msgspec.structs.replace(found["double-test"], nbgrader=unsigned))
    assert cells["double-test"].points == Decimal(2)
