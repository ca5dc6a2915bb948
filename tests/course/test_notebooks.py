"""Laws of reading: whatever bytes arrive, the student gets a grade or a sentence that says what arrived instead."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest
from notebook_samples import answer, cell, dump, hidden, notebook

from graders.course.files import read_files
from graders.course.notebooks import read_submission
from graders.course.parsing import parse
from graders.coursework import LARGEST_FILE_BYTES, Assignment, ReleasedCell, Role
from graders.errors import SubmissionError
from graders.records import Flag

TEXT = "label = 'größe – naïve'"
GOOD = notebook(answer("a", TEXT), hidden("a-test", "assert label", 2))
RELEASED = (
    ReleasedCell("nb", 0, "a", Role.answer, "code", TEXT, "label = ..."),
    ReleasedCell("nb", 1, "a-test", Role.test, "code", "assert label", "", Decimal(2)),
)
ASSIGNMENT = Assignment("ps1", {"nb": RELEASED}, {}, "0" * 64)


def first_source(data: bytes) -> str:
    """The text of the first cell of these bytes."""
    return parse(data, "nb.ipynb")[0][0].source


def reason(files: dict[str, bytes]) -> str:
    """The sentence with which a submission of these files is refused."""
    with pytest.raises(SubmissionError) as refused:
        read_submission(files, (), "student-01", ASSIGNMENT)
    return str(refused.value)


def names_of_flags(files: dict[str, bytes], links: tuple[Flag, ...] = ()) -> list[str]:
    """The flags of a submission of these files, which must be readable."""
    found = read_submission(files, links, "student-01", ASSIGNMENT)
    assert found.notebooks["nb"][0].source
    return [flag.name for flag in found.flags]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_unicode_is_read_without_loss(encoding: str) -> None:
    """A notebook in any Unicode encoding that its bytes announce is read as it was written, without a flag."""
    text = dump(GOOD).decode()
    data = b"\xfe\xff" + text.encode(encoding) if encoding == "utf-16-be" else text.encode(encoding)
    assert TEXT in first_source(data)
    assert parse(data, "nb.ipynb")[1] == []


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_a_guessed_encoding_is_flagged(encoding: str) -> None:
    """Bytes that are not Unicode are read as Windows-1252, and the student is told."""
    text = dump(GOOD).decode().replace("–", "-")
    assert "größe - naïve" in first_source(text.encode(encoding))
    assert [flag.name for flag in parse(text.encode(encoding), "nb.ipynb")[1]] == ["encoding_guessed"]


def test_windows_line_ends_are_one_newline() -> None:
    """CRLF between the lines of the file or inside a cell's text changes nothing."""
    windows = notebook(cell("a", "one\r\ntwo"))
    assert first_source(dump(windows)) == "one\ntwo"
    listed = notebook(cell("a", ""))
    listed["cells"][0]["source"] = ["one\r\n", "two"]
    assert first_source(json.dumps(listed, indent=1).replace("\n", "\r\n").encode()) == "one\ntwo"


def test_half_an_emoji_is_replaced() -> None:
    """A lone surrogate, which no file can hold, becomes a question mark; the cell is read."""
    data = json.dumps(notebook(cell("a", "x = '\ud83d'"))).encode()
    assert first_source(data) == "x = '?'"


def test_version_3_is_upgraded() -> None:
    """A notebook of nbformat 3 is read like one of version 4, nbgrader's metadata included."""
    old = {"cell_type": "code", "language": "python", "metadata": {"nbgrader": {"grade_id": "a"}}, "input": "x = 1"}
    made = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": [old | {"outputs": []}]}],
    }
    cells, _ = parse(dump(made), "nb.ipynb")
    assert [(one.source, one.nbgrader["grade_id"]) for one in cells] == [("x = 1", "a")]


REFUSED = {
    "truncated": (dump(GOOD)[:-30], "not complete JSON"),
    "empty": (b"", "is empty"),
    "white space": (b" \n\t\n", "is empty"),
    "a byte order mark alone": (b"\xef\xbb\xbf", "is empty"),
    "a list": (b"[]", "no nbformat version"),
    "a number": (b"4", "no nbformat version"),
    "a login page": (b"<!DOCTYPE html><html><body>Please log in</body></html>", "web page"),
    "a conflict inside": (dump(GOOD).replace(b'"cells"', b'\n<<<<<<< HEAD\n"cells"'), "git conflict markers"),
    "a conflict of the whole file": (b"<<<<<<< HEAD\n" + dump(GOOD) + b"\n=======\n{}\n>>>>>>> main\n", "git conflict"),
    "nbformat 5": (dump(GOOD | {"nbformat": 5}), "newer Jupyter"),
    "nbformat true": (dump(GOOD | {"nbformat": True}), "no nbformat version"),
    "no cells": (dump(notebook()), "holds no cells"),
    "cells that are no list": (dump(GOOD | {"cells": {}}), "no list of cells"),
    "worksheets that are none": (dump({"nbformat": 3, "nbformat_minor": 0, "worksheets": 7}), "not a valid notebook"),
    "too deep": (b'{"nbformat": 4, "cells": ' + b"[" * 100_000, "not complete JSON"),
    "another notebook": (dump(notebook(cell("z", "x = 1"))), "is not the released notebook"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_has_its_own_sentence(name: str) -> None:
    """Bytes that are no notebook of this assignment are refused with a sentence that says what they are."""
    data, words = REFUSED[name]
    told = reason({"nb.ipynb": data})
    assert words in told
    assert "nb.ipynb" in told


def test_no_notebook_names_what_is_there() -> None:
    """Where no notebook was handed in, the sentence names the files that were."""
    told = reason({"essay.pdf": b"%PDF", "data.csv": b"1"})
    assert "No notebook nb.ipynb" in told
    assert "data.csv, essay.pdf" in told
    assert "none" in reason({})


@pytest.mark.parametrize(
    "name", ["nb (1).ipynb", "nb-Copy1.ipynb", "NB.IPYNB", "nb.ipynb.txt", "sub/nb.ipynb", "x.ipynb"]
)
def test_a_renamed_notebook_is_known_by_its_cells(name: str) -> None:
    """A notebook under another name is recognised by its grade_ids, graded, and the student is told."""
    assert names_of_flags({name: dump(GOOD)}) == ["notebook_renamed"]


def test_the_right_name_goes_before_a_copy() -> None:
    """Of several copies the one with the right name counts, and nothing needs to be said."""
    copy = notebook(answer("a", "copy = 1"), hidden("a-test", "", 2))
    files = {"nb-Copy1.ipynb": dump(copy), "nb.ipynb": dump(GOOD), "nb (1).ipynb": dump(copy)}
    assert names_of_flags(files) == []
    assert TEXT in read_submission(files, (), "student-01", ASSIGNMENT).notebooks["nb"][0].source


@pytest.mark.parametrize("broken", [b"", dump(notebook(cell("z", "scratch = 1")))])
def test_a_copy_counts_where_the_right_name_is_broken(broken: bytes) -> None:
    """A file of the right name that is not the notebook does not hide a copy that is."""
    assert names_of_flags({"nb.ipynb": broken, "nb (1).ipynb": dump(GOOD)}) == ["notebook_renamed"]


def test_one_notebook_of_two_is_graded() -> None:
    """A missing notebook is flagged and does not cost the other one."""
    other = (ReleasedCell("other", 0, "b", Role.answer, "code", TEXT, ""),)
    two = Assignment("ps1", {"nb": RELEASED, "other": other}, {}, "0" * 64)
    found = read_submission({"nb.ipynb": dump(GOOD), "other.ipynb": b""}, (), "student-01", two)
    assert set(found.notebooks) == {"nb"}
    assert [flag.name for flag in found.flags] == ["notebook_missing"]


@pytest.mark.parametrize(
    "change",
    [
        {"source": None}, {"source": 7}, {"source": [None, 1]}, {"metadata": None}, {"metadata": []},
        {"metadata": {"nbgrader": "x"}}, {"metadata": {"nbgrader": {"grade_id": ["a"]}}}, {"cell_type": "video"},
        {"cell_type": ["code"]}, {"outputs": "none"},
    ],
)  # fmt: skip
def test_a_malformed_cell_does_not_cost_the_others(change: dict[str, object]) -> None:
    """A cell of the wrong shape is read as far as it goes; the cells beside it keep their answers."""
    made = notebook(answer("a", TEXT), cell("b", "x = 1"))
    made["cells"][1] |= change
    made["cells"].append("not a cell")
    found = read_submission({"nb.ipynb": dump(made)}, (), "student-01", ASSIGNMENT)
    assert TEXT in found.notebooks["nb"][0].source
    assert found.notebooks["nb"][0].id == "a"


def test_links_and_special_files_are_not_followed(tmp_path: Path) -> None:
    """A link, a link to a folder and a FIFO are named in a flag and never opened."""
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "solution.ipynb").write_bytes(dump(GOOD))
    folder = tmp_path / "handed-in"
    folder.mkdir()
    (folder / "nb.ipynb").symlink_to(secret / "solution.ipynb")
    (folder / "folder").symlink_to(secret)
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "nb-Copy1.ipynb").write_bytes(dump(GOOD))
    links: list[Flag] = []
    files = read_files(folder, links)
    assert set(files) == {"nb-Copy1.ipynb"}
    assert {flag.text.partition(" ")[0] for flag in links} == {"nb.ipynb", "folder", "pipe.ipynb"}
    assert names_of_flags(files, tuple(links)).count("link_ignored") == 3


def test_a_file_that_is_too_large_is_refused_by_size(tmp_path: Path) -> None:
    """A sparse file of many gigabytes is refused by its size, without being read."""
    with (tmp_path / "nb.ipynb").open("wb") as stream:
        stream.truncate(5 * 2**30)
    with pytest.raises(SubmissionError, match=f"{5 * 2**30:,} bytes; at most {LARGEST_FILE_BYTES:,}"):
        read_files(tmp_path)


def test_what_an_editor_leaves_behind_is_no_file_of_the_student(tmp_path: Path) -> None:
    """Checkpoints, caches and the desktop's own files are left out."""
    for name in (".ipynb_checkpoints/nb-checkpoint.ipynb", "__pycache__/a.pyc", ".DS_Store", "desktop.ini", "kept.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    assert set(read_files(tmp_path)) == {"kept.csv"}


@pytest.mark.parametrize(
    "marks",
    [{"points": 100}, {"points": -1}, {"points": "many"}, {"grade": False}, {"solution": True}, {"task": True}],
    ids=["more", "less", "no number", "no test", "answer", "task"],
)
def test_edited_points_and_roles_are_told_once(marks: dict[str, object]) -> None:
    """S8: a cell whose metadata gives itself other points or another role is flagged by its id, and read as before."""
    made = notebook(answer("a", "a = 1"), hidden("a-test", "assert a == 1", 2))
    made["cells"].append(json.loads(json.dumps(made["cells"][1])))
    for one in made["cells"][1:]:
        one["metadata"]["nbgrader"] |= marks
    cells = (
        ReleasedCell("nb", 0, "a", Role.answer, "code", "a = 1", ""),
        ReleasedCell("nb", 1, "a-test", Role.test, "code", "", "", Decimal(2)),
    )
    given = Assignment("ps", {"nb": cells}, {}, "")
    flags = read_submission({"nb.ipynb": dump(made)}, (), "s", given).flags
    assert [(flag.name, flag.cell) for flag in flags] == [("marks_edited", "a-test")]


def test_points_written_in_another_way_are_no_edit() -> None:
    """Some editors write 2 as 2.0 and leave marks out that are false; neither is flagged."""
    made = notebook(answer("a", "a = 1"), hidden("a-test", "assert a == 1", 2))
    for one in made["cells"]:
        marks = one["metadata"]["nbgrader"]
        one["metadata"]["nbgrader"] = {name: value for name, value in marks.items() if value is not False}
    made["cells"][1]["metadata"]["nbgrader"]["points"] = 2.0
    cells = (
        ReleasedCell("nb", 0, "a", Role.answer, "code", "a = 1", ""),
        ReleasedCell("nb", 1, "a-test", Role.test, "code", "", "", Decimal(2)),
    )
    assert read_submission({"nb.ipynb": dump(made)}, (), "s", Assignment("ps", {"nb": cells}, {}, "")).flags == ()
