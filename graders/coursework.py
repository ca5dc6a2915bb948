"""What an author wrote and what a student handed in, as records.

Comes in: nothing. Goes out: cells, assignments, submissions, and what an author's own run established. Must not: hold behaviour.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum

from graders.records import Flag, Kind, Record, Shown
from graders.runs import RawCheck

# What is read of a submission. A file beyond this is named and left out, and its size alone enters a hash.
LARGEST_FILE_BYTES = 64 * 2**20
LARGEST_SUBMISSION_BYTES = 256 * 2**20
DEEPEST_FOLDER = 16


class Role(str, Enum):
    """What a cell of the released notebook is for."""

    answer = "answer"
    test = "test"
    written = "written"
    task = "task"
    locked = "locked"
    plain = "plain"


ANSWERS = (Role.answer, Role.written)


def module_of(path: str) -> str:
    """The name under which a Python file, or the package that it lies in, is imported."""
    return path.removesuffix(".py").partition("/")[0]


class ReleasedCell(Record):
    """One cell of an assignment as the author wrote it.

    `source` is the author's whole text (solution and hidden tests included), `released` is what students receive.
    `position` counts the cells of its notebook from 0. `file` names the answer file that a test judges, if it judges one.
    `cell_id` is Jupyter's own id of the released cell, `locked` what its metadata says, and None where that is not known.

    An answer file, a Python file with regions of a solution, is such a cell too: `id` is its name, `cell_type` is "file".
    """

    notebook: str
    position: int
    id: str | None
    role: Role
    cell_type: str
    source: str
    released: str
    points: Decimal = Decimal(0)
    kind: Kind = Kind.exercise
    outcome: str | None = None
    file: str | None = None
    cell_id: str | None = None
    locked: bool | None = None


class Assignment(Record):
    """One folder of source/ after reading. `files` are the data and Python files that students receive, by relative name.

    `notebooks` holds the cells of every notebook, by its name without `.ipynb`. `sha256` identifies this version.
    `answer_files` are those of the Python files that students complete.
    """

    name: str
    notebooks: dict[str, tuple[ReleasedCell, ...]]
    files: dict[str, bytes]
    sha256: str
    answer_files: dict[str, ReleasedCell] = {}  # noqa: RUF012  (msgspec copies defaults)

    def modules(self) -> tuple[str, ...]:
        """Names under which the Python files of the assignment are imported."""
        return tuple(module_of(path) for path in self.files if path.endswith(".py"))

    def answers_of(self) -> dict[str, ReleasedCell]:
        """Every cell and file that holds an answer, by its id."""
        cells = (cell for cells in self.notebooks.values() for cell in cells)
        own = {cell.id: cell for cell in cells if cell.id and cell.role in ANSWERS}
        return own | self.answer_files


class SubmittedCell(Record):
    """One cell as it was handed in. `id` is its grade_id, if it still has one.

    `older` says that the text is the instructor's, from another release than today's. `shown` is what it showed when it was saved.
    """

    cell_type: str
    source: str
    id: str | None = None
    older: bool = False
    shown: Shown | None = None


class Submission(Record):
    """What one student handed in for one assignment: cells by notebook, other files by relative name."""

    student: str
    assignment: str
    notebooks: dict[str, tuple[SubmittedCell, ...]]
    files: dict[str, bytes] = {}  # noqa: RUF012  (msgspec copies defaults)
    flags: tuple[Flag, ...] = ()


class Reference(Record):
    """What the instructor's own run of an assignment established, once per version.

    `checks` names each test's checks, all passed or broken on the reference; `partial_credit` holds the ids of tests whose
    reference ended in a number.
    """

    assignment_sha256: str
    checks: dict[str, tuple[RawCheck, ...]]
    partial_credit: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
