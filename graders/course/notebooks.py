"""Read what a student handed in: which of the files is which notebook, and which of its cells is which.

Comes in: files by name, and the assignment. Goes out: a `Submission`, or a sentence that says why there is none. Must not:
go by a student's name, or execute anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from graders.course import repairs
from graders.course.alignment import Alignment, align, grade_id, squeeze
from graders.course.archives import is_archive, unpack
from graders.course.parsing import RawCell, parse
from graders.course.sources import with_answer_files
from graders.coursework import ANSWERS, Assignment, ReleasedCell, Submission, SubmittedCell
from graders.errors import SubmissionError
from graders.records import Flag, Record

_OTHER_NAMES = (".json", ".txt")  # what browsers and mail programs make of .ipynb


class _Read(Record):
    """One file that is a notebook, or the sentence why it is none."""

    path: str
    cells: tuple[RawCell, ...] = ()
    flags: tuple[Flag, ...] = ()
    why: str = ""


class _Found(Record):
    """The file that is a released notebook, and which of its cells is which."""

    read: _Read
    alignment: Alignment
    copies: int = 1


def read_submission(
    files: dict[str, bytes], left_out: Sequence[Flag], student: str, assignment: Assignment
) -> Submission:
    """Read what one student handed in, as an opaque set of files. `left_out` says which others arrived and were not read.

    Raises:
        SubmissionError: nothing that could be graded arrived; the text says what did.
    """
    flags = list(left_out)
    files = _unpacked(files, assignment, flags)
    read = [_read(path, data) for path, data in sorted(files.items()) if _is_notebook(path, data, assignment)]
    notebooks: dict[str, tuple[SubmittedCell, ...]] = {}
    reasons = []
    folders = set()
    for name, cells in assignment.notebooks.items():
        found = _find_notebook(name, assignment, read)
        if isinstance(found, str):
            reasons.append(found or _absent(name, files, left_out))
            continue
        path = found.read.path
        folders.add(path.rpartition("/")[0])
        flags += [*found.read.flags, *_names(name, path, found.copies)]
        notebooks[name] = _submitted(cells, found.read.cells, found.alignment, flags)
    if not notebooks:
        raise SubmissionError(" ".join(dict.fromkeys(reasons)))
    flags += [Flag("notebook_missing", reason) for reason in reasons]
    known = {one.path for one in read if not one.why}
    others = {path: data for path, data in files.items() if path not in known and ".ipynb" not in path.lower()}
    others, notes = with_answer_files(_lifted(others, folders), assignment)
    return Submission(student, assignment.name, notebooks, others, (*flags, *notes))


def _unpacked(files: dict[str, bytes], assignment: Assignment, flags: list[Flag]) -> dict[str, bytes]:
    """F9: the files, with those of an archive where no notebook lies beside it."""
    if any(_is_notebook(path, data, assignment) for path, data in files.items()):
        return files
    for path in [path for path, data in files.items() if is_archive(path, data)]:
        inside, notes = unpack(path, files[path])
        flags += notes
        files = inside | {name: data for name, data in files.items() if name != path}
        text = f"What you handed in was packed into {path}; it was read from there. Next time hand in the files themselves."
        flags.append(Flag("archive_read", text))
    return files


def _is_notebook(path: str, data: bytes, assignment: Assignment) -> bool:
    """F5: a file with .ipynb anywhere in its name, or one that is a notebook under a name that a browser gave it."""
    if path in assignment.files or is_archive(path, data):
        return False
    lower = path.lower()
    name = lower.rpartition("/")[2]
    other = name.endswith(_OTHER_NAMES) or "." not in name
    return ".ipynb" in name or (other and data[:1] == b"{" and b'"nbformat"' in data)


def _read(path: str, data: bytes) -> _Read:
    try:
        cells, flags = parse(data, path)
    except SubmissionError as error:
        return _Read(path, why=str(error))
    return _Read(path, cells, tuple(flags), "" if cells else f"{path} is an empty notebook: it holds no cells.")


def _find_notebook(name: str, assignment: Assignment, read: Sequence[_Read]) -> _Found | str:
    """The file that is this notebook, by name or else by its cells; or why there is none."""
    cells = assignment.notebooks[name]
    mine, others = f"{name}.ipynb", {f"{other}.ipynb" for other in assignment.notebooks} - {f"{name}.ipynb"}
    why = ""
    fitting: list[_Found] = []
    for one in sorted(read, key=lambda one: (one.path != mine, one.path)):
        if one.path in others and one.cells:
            continue
        found = None if one.why else _Found(one, align(cells, one.cells))
        if found is not None and found.alignment.evidence:
            if one.path == mine:
                return found
            fitting.append(found)
        else:
            why = why or one.why or _another(name, one.path)
    if not fitting:
        return why
    best = max(fitting, key=lambda one: (one.alignment.evidence, _answered(cells, one)))
    return _Found(best.read, best.alignment, len(fitting))


def _answered(cells: Sequence[ReleasedCell], found: _Found) -> int:
    """How many answers are no longer as they were handed out."""
    known = {cell.id: cell for cell in cells if cell.role in ANSWERS}
    pairs = zip(found.alignment.ids, found.read.cells, strict=True)
    return sum(one in known and squeeze(cell.source) != squeeze(known[one].released) for one, cell in pairs)


def _names(name: str, path: str, copies: int) -> list[Flag]:
    """F5: what is said about a file of another name."""
    if path == f"{name}.ipynb":
        return []
    text = f"Your notebook is called {path!r}; {name}.ipynb was expected. It was graded."
    if copies > 1:
        text += (
            f" {copies} files hold this notebook; this one has the most answers. Hand in one, under the expected name."
        )
    return [Flag("notebook_renamed", text)]


def _another(name: str, path: str) -> str:
    return f"{path} is not the released notebook: none of its cells is a question or a test of {name}.ipynb."


def _absent(name: str, files: dict[str, bytes], left_out: Sequence[Flag]) -> str:
    present = ", ".join(sorted(files)[:20]) + (f" and {len(files) - 20} more" if len(files) > 20 else "")
    told = "".join(f" {flag.text}" for flag in left_out[:5])
    where = " among the files that could be read" if left_out else ""
    return f"No notebook {name}.ipynb was found{where}; files present: {present or 'none'}.{told}"


def _submitted(
    released: Sequence[ReleasedCell], handed_in: Sequence[RawCell], found: Alignment, flags: list[Flag]
) -> tuple[SubmittedCell, ...]:
    known = {cell.id: cell for cell in released if cell.id}
    older = [repairs.is_older(known.get(grade_id(cell) or ""), cell) for cell in handed_in]
    flags += repairs.metadata_lost(found.found)
    flags += repairs.marks_edited(released, handed_in)
    flags += repairs.older_release([one for one, old in zip(found.ids, older, strict=True) if old and one])
    return tuple(
        SubmittedCell(cell.cell_type, cell.source, one, old, cell.shown)
        for cell, one, old in zip(handed_in, found.ids, older, strict=True)
    )


def _lifted(files: dict[str, bytes], folders: set[str]) -> dict[str, bytes]:
    """F5: files beside a notebook that was handed in inside a folder, as if the folder were not there."""
    lifted = dict(files)
    for folder in folders - {""}:
        for path, data in files.items():
            if path.startswith(f"{folder}/") and (short := path.removeprefix(f"{folder}/")) not in files:
                lifted[short] = lifted.pop(path, data)
    return lifted
