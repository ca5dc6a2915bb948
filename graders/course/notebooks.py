"""Read notebooks: the author's, the released and the handed-in ones.

Comes in: folders and bytes. Goes out: `Assignment`, `Submission`, and nbformat notebooks. Must not: follow a link, glob
by a student's name, or execute anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from graders.course.parsing import RawCell, parse
from graders.coursework import Assignment, ReleasedCell, Role, Submission, SubmittedCell
from graders.errors import CourseError, SubmissionError
from graders.records import Flag, Kind

MAX_FILE_BYTES = 64 * 2**20
_IGNORED = {".DS_Store", "desktop.ini", "Thumbs.db", "timestamp.txt"}
_IGNORED_FOLDERS = {".ipynb_checkpoints", "__pycache__", "__MACOSX", ".git"}


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
    files = {p: b for p, b in read_files(release).items() if not p.endswith(".ipynb")}
    return Assignment(name, notebooks, files, _version(notebooks, files))


def released_notebook(course: Path, assignment: str, name: str) -> dict[str, Any]:
    """One released notebook as an nbformat 4 dictionary."""
    found = json.loads((course / "release" / assignment / f"{name}.ipynb").read_bytes())
    return dict(found)


def read_submission(files: dict[str, bytes], links: Sequence[str], student: str, assignment: Assignment) -> Submission:
    """Read what one student handed in, as an opaque set of files. `links` were found among them and not followed.

    Raises:
        SubmissionError: nothing that could be graded arrived; the text says what did.
    """
    flags = [Flag("link_ignored", f"{link} is a link or a special file and was not read.") for link in links]
    notebooks: dict[str, tuple[SubmittedCell, ...]] = {}
    reasons = []
    for name, cells in assignment.notebooks.items():
        ids = {cell.id for cell in cells if cell.id}
        found, why = _find_notebook(name, ids, files)
        if found is None:
            reasons.append(
                why or f"No notebook {name}.ipynb was found; files present: {', '.join(sorted(files)) or 'none'}."
            )
            continue
        path, handed_in, notes = found
        flags += notes
        if path != f"{name}.ipynb":
            flags.append(
                Flag("notebook_renamed", f"Your notebook is called {path!r}; {name}.ipynb was expected. It was graded.")
            )
        flags += _edited_marks(cells, handed_in)
        notebooks[name] = tuple(map(_submitted_cell, handed_in))
    if not notebooks:
        raise SubmissionError(" ".join(reasons))
    flags += [Flag("notebook_missing", reason) for reason in reasons]
    others = {path: data for path, data in files.items() if not path.lower().endswith((".ipynb", ".ipynb.txt"))}
    return Submission(student, assignment.name, notebooks, others, tuple(flags))


def read_files(folder: Path, links: list[str] | None = None) -> dict[str, bytes]:
    """The regular files below a folder by relative name; links and special files are named in `links`, never opened.

    Raises:
        SubmissionError: a file is larger than 64 MiB.
    """
    files: dict[str, bytes] = {}
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in _IGNORED_FOLDERS)
        linked = [one for one in folders if (Path(root) / one).is_symlink()]  # named here, and never walked into
        for name in sorted([*names, *linked]):
            path = Path(root) / name
            relative = path.relative_to(folder).as_posix()
            status = path.lstat()
            if name in _IGNORED:
                continue
            if not stat.S_ISREG(status.st_mode):
                if links is not None:
                    links.append(relative)
                continue
            if status.st_size > MAX_FILE_BYTES:
                raise SubmissionError(
                    f"{relative} has {status.st_size:,} bytes; at most {MAX_FILE_BYTES:,} are accepted."
                )
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
                files[relative] = stream.read(MAX_FILE_BYTES)
    return files


_Found = tuple[str, tuple[RawCell, ...], list[Flag]]


def _find_notebook(name: str, ids: set[str], files: dict[str, bytes]) -> tuple[_Found | None, str]:
    """The file that is this notebook, by name or else by the ids in it, and why there is none."""
    why, most = "", 0
    best: _Found | None = None
    paths = [path for path in files if path.lower().endswith((".ipynb", ".ipynb.txt"))]
    for path in sorted(paths, key=lambda path: (path != f"{name}.ipynb", path)):
        try:
            cells, flags = parse(files[path], path)
        except SubmissionError as error:
            why = why or str(error)
            continue
        known = len(ids & {str(cell.nbgrader.get("grade_id")) for cell in cells})
        if path == f"{name}.ipynb" and not cells:
            return None, f"{path} holds no cells."
        if path == f"{name}.ipynb" and known:
            return (path, cells, flags), ""
        if known > most:
            best, most = (path, cells, flags), known
        elif not known and not why:
            why = f"{path} is not the released notebook: none of its cells carries an id of {name}.ipynb."
    return best, why


def _submitted_cell(cell: RawCell) -> SubmittedCell:
    grade_id = cell.nbgrader.get("grade_id")
    return SubmittedCell(cell.cell_type, cell.source, str(grade_id) if grade_id else None)


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


def _edited_marks(cells: Sequence[ReleasedCell], handed_in: Sequence[RawCell]) -> list[Flag]:
    """Flags for cells whose nbgrader metadata says something else than at release; the author's is what counts."""
    known = {cell.id: cell for cell in cells if cell.id}
    edited = dict.fromkeys(
        released.id
        for cell in handed_in
        if (released := known.get(str(cell.nbgrader.get("grade_id"))))
        and (role_of(cell), _points(cell)) != (released.role, released.points)
    )
    text = "The points or the kind of this cell in the notebook's metadata are not the instructor's; those were used."
    return [Flag("marks_edited", text, identity) for identity in edited]


def _points(cell: RawCell) -> Decimal | None:
    try:
        return Decimal(str(cell.nbgrader.get("points", 0) or 0))
    except ArithmeticError:
        return None


def role_of(cell: RawCell) -> Role:
    """What a cell is for, by its nbgrader metadata."""
    meta = cell.nbgrader
    if meta.get("task"):
        return Role.task
    if meta.get("solution") and meta.get("grade"):
        return Role.written
    if meta.get("solution"):
        return Role.answer
    if meta.get("grade"):
        return Role.test
    return Role.locked if meta.get("locked") else Role.plain


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
    )


def _version(notebooks: dict[str, tuple[ReleasedCell, ...]], files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, cells in sorted(notebooks.items()):
        for cell in cells:
            digest.update(
                json.dumps([name, cell.id, cell.source, cell.released, str(cell.points), cell.kind.value]).encode()
            )
    for path, data in sorted(files.items()):
        digest.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
    return digest.hexdigest()
