"""Read an assignment: the author's notebooks and files, and what students received.

Comes in: a course folder. Goes out: an `Assignment`. Must not: execute anything.
"""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from graders.course import downloads, markers
from graders.course.files import read_files
from graders.course.parsing import RawCell, parse
from graders.course.repairs import role_of
from graders.coursework import Assignment, ReleasedCell, Role
from graders.errors import CourseError, SubmissionError
from graders.records import Kind

# Our own run of the lesson, kept beside what students receive
EXECUTION_RECORD = "execution-record.json"
_RECORDS = re.compile(r"execution-record(-[a-z-]+)?\.json")


def read_assignment(course: Path, name: str, released: bool = True) -> Assignment:
    """Read one assignment: the author's text from source/, what students received from release/.

    `released=False` reads source/ alone, for an assignment that has not been released yet.

    Raises:
        CourseError: a folder or notebook is missing, or the two do not belong together.
    """
    source = course / "source" / name
    release = course / "release" / name if released else source
    if not source.is_dir():
        known = sorted(p.name for p in (course / "source").glob("*") if p.is_dir())
        raise CourseError(
            f"There is no assignment {name!r} in {source.parent}; there are: {', '.join(known) or 'none'}."
        )
    if not release.is_dir():
        raise CourseError(
            f"{release} does not exist: {name!r} has not been released. Next step: graders release {name}."
        )
    notebooks = {}
    for path in sorted(source.glob("*.ipynb")):
        if not (release / path.name).is_file():
            raise CourseError(f"{release / path.name} is missing. Next step: graders release {name}.")
        notebooks[path.stem] = _pair(path, release / path.name)
    if not notebooks:
        raise CourseError(f"{source} holds no notebook. An assignment is a folder with at least one .ipynb file.")
    files = _beside(release)
    answer_files = _answer_files(source, next(iter(notebooks)))
    if not released:
        files |= {path: one.released.encode() for path, one in answer_files.items()}
    return Assignment(name, notebooks, files, _version(notebooks, files, answer_files), answer_files)


def read_handed_out(folder: Path) -> Assignment:
    """An assignment as students know it: of the author's text, what was released is all that there is.

    Raises:
        CourseError: the folder holds no notebook, or one that cannot be read.
    """
    notebooks = {path.stem: _pair(path, path) for path in sorted(folder.glob("*.ipynb"))}
    if not notebooks:
        raise CourseError(f"{folder} holds no notebook, so it is no assignment that was released.")
    files = _beside(folder)
    judged = {cell.file: cell.notebook for cells in notebooks.values() for cell in cells if cell.file in files}
    texts = {path: files[path].decode(errors="replace") for path in judged if path}
    answer_files = {
        path: ReleasedCell(str(judged[path]), -1, path, Role.answer, "file", text, text) for path, text in texts.items()
    }
    return Assignment(folder.name, notebooks, files, _version(notebooks, files, answer_files), answer_files)


def _beside(folder: Path) -> dict[str, bytes]:
    """The files that students receive with the notebooks."""
    return {
        path: data for path, data in read_files(folder).items() if not path.endswith(".ipynb") and not made_here(path)
    }


def made_here(path: str) -> bool:
    """Whether a file beside the notebooks is one that this package makes; no such file is a part of the assignment."""
    return is_record(path) or path.partition("/")[0] == downloads.FOLDER


def is_record(name: str) -> bool:
    """Whether a file is an execution record, on whatever target."""
    return _RECORDS.fullmatch(name) is not None


def execution_record(target: str) -> str:
    """The name of the record of a run on a target."""
    return EXECUTION_RECORD if target == "cpu" else f"execution-record-{target}.json"


def _answer_files(source: Path, notebook: str) -> dict[str, ReleasedCell]:
    """The Python files that students complete, each as an answer cell."""
    texts = {path: data.decode(errors="replace") for path, data in read_files(source).items() if path.endswith(".py")}
    return {
        path: ReleasedCell(notebook, -1, path, Role.answer, "file", text, markers.stripped(text))
        for path, text in texts.items()
        if markers.has_solution(text)
    }


def released_notebook(course: Path, assignment: str, name: str) -> dict[str, Any]:
    """One released notebook as an nbformat 4 dictionary."""
    found = json.loads((course / "release" / assignment / f"{name}.ipynb").read_bytes())
    return dict(found)


def _pair(source: Path, release: Path) -> tuple[ReleasedCell, ...]:
    author, released = _author_cells(source), _author_cells(release)
    author = _with_header(author, released)
    if len(author) != len(released):
        raise CourseError(
            f"{release} does not have the cells of {source}. Next step: graders release {source.parent.name}."
        )
    return tuple(
        _released_cell(source.stem, position, one, other)
        for position, (one, other) in enumerate(zip(author, released, strict=True))
    )


def _with_header(author: tuple[RawCell, ...], released: tuple[RawCell, ...]) -> tuple[RawCell, ...]:
    """The author's cells between those that nbgrader's IncludeHeaderFooter put around them at release."""

    def names(cells: tuple[RawCell, ...]) -> list[object]:
        return [(cell.cell_type, cell.nbgrader.get("grade_id")) for cell in cells]

    for start in range(len(released) - len(author) + 1):
        end = start + len(author)
        if names(released[start:end]) == names(author):
            return (*released[:start], *author, *released[end:])
    return author


def _author_cells(path: Path) -> tuple[RawCell, ...]:
    try:
        return parse(path.read_bytes(), str(path))[0]
    except SubmissionError as error:
        raise CourseError(str(error)) from None


def _released_cell(notebook: str, position: int, author: RawCell, released: RawCell) -> ReleasedCell:
    return ReleasedCell(
        notebook,
        position,
        author.nbgrader.get("grade_id"),
        role_of(author),
        author.cell_type,
        author.source,
        released.source,
        Decimal(str(author.nbgrader.get("points", 0) or 0)),
        Kind(author.graders.get("kind", "exercise")),
        author.graders.get("outcome"),
        author.graders.get("file"),
        released.cell_id,
        bool(released.nbgrader.get("locked")),
    )


def _version(
    notebooks: dict[str, tuple[ReleasedCell, ...]], files: dict[str, bytes], answer_files: dict[str, ReleasedCell]
) -> str:
    digest = hashlib.sha256()
    for name, cells in sorted(notebooks.items()):
        for cell in cells:
            digest.update(
                json.dumps([name, cell.id, cell.source, cell.released, str(cell.points), cell.kind.value]).encode()
            )
    texts = {f"{path} with its solution": one.source.encode() for path, one in answer_files.items()}
    for path, data in sorted((files | texts).items()):
        digest.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
    return digest.hexdigest()
