"""Author's and student's cells in a line each, for tests that need a whole assignment."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from graders.coursework import Assignment, ReleasedCell, Role, Submission, SubmittedCell

NOTEBOOK = "lesson"


def cell(
    role: Role, id: str | None, source: str, points: int = 0, released: str | None = None, **more: str
) -> ReleasedCell:
    """One cell of the author; `released` is what students receive, by default the same text."""
    shown = source if released is None else released
    return ReleasedCell(NOTEBOOK, 0, id, role, more.get("cell_type", "code"), source, shown, Decimal(points))


def locked(id: str, source: str, **more: str) -> ReleasedCell:
    """A locked cell."""
    return cell(Role.locked, id, source, **more)


def answer(id: str, source: str, released: str = "raise NotImplementedError()", **more: str) -> ReleasedCell:
    """An answer cell with the author's solution."""
    return cell(Role.answer, id, source, released=released, **more)


def judge(id: str, source: str, points: int = 1) -> ReleasedCell:
    """A test cell."""
    return cell(Role.test, id, source, points)


def assignment(cells: Iterable[ReleasedCell], files: dict[str, bytes] | None = None) -> Assignment:
    """An assignment of one notebook."""
    return Assignment("lesson", {NOTEBOOK: tuple(cells)}, files or {}, "0" * 64)


def as_received(given: Assignment) -> list[SubmittedCell]:
    """The released notebook, cell by cell."""
    return [SubmittedCell(one.cell_type, one.released, one.id) for one in given.notebooks[NOTEBOOK]]


def handed_in(given: Assignment, answers: dict[str, str], files: dict[str, bytes] | None = None) -> Submission:
    """The released notebook with other texts in the cells of these ids."""
    cells = [SubmittedCell(one.cell_type, answers.get(one.id or "", one.source), one.id) for one in as_received(given)]
    return submission(given, cells, files)


def submission(given: Assignment, cells: Iterable[SubmittedCell], files: dict[str, bytes] | None = None) -> Submission:
    """A submission of exactly these cells."""
    return Submission("student-01", given.name, {NOTEBOOK: tuple(cells)}, files or {})
