"""Read notebooks: the author's, the released and the handed-in ones.

Comes in: folders and bytes. Goes out: `Assignment`, `Submission`, and nbformat notebooks. Must not: follow a link, glob
by a student's name, or execute anything. This module owns nbformat.
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

import nbformat
from nbformat.v4 import upgrade

from graders.errors import CourseError, SubmissionError
from graders.records import Assignment, Flag, Kind, ReleasedCell, Role, Submission, SubmittedCell

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
        path, notebook, notes = found
        flags += notes
        if path != f"{name}.ipynb":
            flags.append(
                Flag("notebook_renamed", f"Your notebook is called {path!r}; {name}.ipynb was expected. It was graded.")
            )
        notebooks[name] = tuple(map(_submitted_cell, notebook.cells))
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
        for name in sorted(names):
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


def parse(data: bytes, name: str) -> tuple[Any, list[Flag]]:
    """Decode and upgrade one notebook to nbformat 4.5.

    Raises:
        SubmissionError: the bytes are no notebook; the text says what they are instead.
    """
    text, flags = _decode(data, name)
    if not text.strip():
        raise SubmissionError(f"{name} is empty. Save the notebook in Jupyter and hand it in again.")
    if text.lstrip()[:1] == "<":
        raise SubmissionError(
            f"{name} is a web page, not a notebook: probably a login page was saved. Download it again."
        )
    if "\n<<<<<<< " in "\n" + text:
        raise SubmissionError(f"{name} holds git conflict markers. Resolve the conflict, then hand it in again.")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{name} is not complete JSON ({error}); it was probably cut off while saving.") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("nbformat"), int):
        raise SubmissionError(f"{name} is JSON but not a notebook: it has no nbformat version.")
    if raw["nbformat"] > 4:
        raise SubmissionError(f"{name} was made by a newer Jupyter (nbformat {raw['nbformat']}); save it as version 4.")
    return _upgrade(raw, name), flags


def _decode(data: bytes, name: str) -> tuple[str, list[Flag]]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), []
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        text = f"{name} is not UTF-8; it was read as Windows-1252, and special characters may be wrong."
        return data.decode("cp1252", "replace"), [Flag("encoding_guessed", text)]


def _upgrade(raw: dict[str, Any], name: str) -> Any:
    try:
        notebook = nbformat.from_dict(raw)
        if raw["nbformat"] < 4:
            notebook = nbformat.convert(notebook, 4)
        notebook = upgrade(notebook)
        for cell in notebook.cells:
            source = cell.get("source", "")
            cell.source = "".join(source) if isinstance(source, list) else str(source)
            cell.source = cell.source.replace("\r\n", "\n").encode("utf-8", "replace").decode()
            cell.setdefault("metadata", {})
    except Exception as error:  # nbformat raises many things for malformed cells
        raise SubmissionError(f"{name} is not a valid notebook: {type(error).__name__}: {error}.") from None
    return notebook


def _find_notebook(name: str, ids: set[str], files: dict[str, bytes]) -> tuple[Any, str]:
    """The file that is this notebook, by name or else by the ids in it, and why there is none."""
    why, best, most = "", None, 0
    paths = [path for path in files if path.lower().endswith((".ipynb", ".ipynb.txt"))]
    for path in sorted(paths, key=lambda path: (path != f"{name}.ipynb", path)):
        try:
            notebook, flags = parse(files[path], path)
        except SubmissionError as error:
            why = why or str(error)
            continue
        known = len(ids & {str(nbgrader_of(cell).get("grade_id")) for cell in notebook.cells})
        if path == f"{name}.ipynb" and (known or not notebook.cells):
            known = 10**6
        if known > most:
            best, most = (path, notebook, flags), known
        elif not known and not why:
            why = f"{path} is not the released notebook: none of its cells carries an id of {name}.ipynb."
    if best is not None and not best[1].cells:
        return None, f"{best[0]} holds no cells."
    return best, why


def nbgrader_of(cell: Any) -> dict[str, Any]:
    """The nbgrader metadata of a cell; empty where there is none."""
    found = cell.get("metadata", {}).get("nbgrader", {})
    return found if isinstance(found, dict) else {}


def _submitted_cell(cell: Any) -> SubmittedCell:
    grade_id = nbgrader_of(cell).get("grade_id")
    return SubmittedCell(str(cell.cell_type), cell.source, str(grade_id) if grade_id else None)


def _pair(source: Path, release: Path) -> tuple[ReleasedCell, ...]:
    author, released = (nbformat.read(path, as_version=4) for path in (source, release))
    if len(author.cells) != len(released.cells):
        raise CourseError(
            f"{release} does not have the cells of {source}. Next step: graders release {source.parent.name}."
        )
    return tuple(
        _released_cell(source.stem, position, one, other)
        for position, (one, other) in enumerate(zip(author.cells, released.cells, strict=True))
    )


def role_of(cell: Any) -> Role:
    """What a cell is for, by its nbgrader metadata."""
    meta = nbgrader_of(cell)
    if meta.get("task"):
        return Role.task
    if meta.get("solution") and meta.get("grade"):
        return Role.written
    if meta.get("solution"):
        return Role.answer
    if meta.get("grade"):
        return Role.test
    return Role.locked if meta.get("locked") else Role.plain


def _released_cell(notebook: str, position: int, author: Any, released: Any) -> ReleasedCell:
    meta, ours = nbgrader_of(author), author.metadata.get("graders", {})
    return ReleasedCell(
        notebook,
        position,
        meta.get("grade_id"),
        role_of(author),
        author.cell_type,
        author.source,
        released.source,
        Decimal(str(meta.get("points", 0) or 0)),
        Kind(ours.get("kind", "exercise")),
        ours.get("outcome"),
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
