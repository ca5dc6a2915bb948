"""Read what a student handed in, and the files of a folder.

Comes in: folders and bytes. Goes out: `Submission`, and files by name. Must not: follow a link, glob by a student's name, or
execute anything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from graders.course.parsing import RawCell, parse
from graders.coursework import Assignment, ReleasedCell, Role, Submission, SubmittedCell
from graders.errors import SubmissionError
from graders.records import Flag

MAX_FILE_BYTES = 64 * 2**20
_IGNORED = {".DS_Store", "desktop.ini", "Thumbs.db", "timestamp.txt"}
_IGNORED_FOLDERS = {".ipynb_checkpoints", "__pycache__", "__MACOSX", ".git"}


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
