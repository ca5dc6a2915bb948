"""The rules that mend what a student handed in: one function a rule.

Comes in: released cells and submitted ones. Goes out: what is run instead, or a flag that a student and a TA understand. Must
not: blame anybody (most of these are accidents of an editor), or let a student's text stand where the instructor's belongs.

Whole notebooks that lost their marks are recognised in `alignment`, bytes are decoded in `decoding`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from decimal import Decimal

from graders.course.alignment import binds, grade_id, squeeze
from graders.course.parsing import RawCell
from graders.coursework import ANSWERS, ReleasedCell, Role, SubmittedCell
from graders.records import Flag

INSTRUCTORS = (Role.test, Role.locked)


def metadata_lost(ids: Sequence[str]) -> list[Flag]:
    """S5: cells without nbgrader's marks were recognised."""
    if not ids:
        return []
    text = (
        f"{_cells(ids)} had lost the marks by which the grader knows them (Colab and VS Code drop them). What each is was "
        "recognised by its id, its text or its place."
    )
    return [Flag("metadata_lost", text)]


def marks_edited(cells: Sequence[ReleasedCell], handed_in: Sequence[RawCell]) -> list[Flag]:
    """S8: the points, the role or the lock in a cell's metadata are not the author's, whose own are what counts."""
    known = {cell.id: cell for cell in cells if cell.id}
    edited = dict.fromkeys(
        released.id
        for cell in handed_in
        if (released := known.get(grade_id(cell) or ""))
        and (_other_lock(released, cell) or (_other_marks(released, cell) and not is_signed(cell)))
    )
    text = "The points, the kind or the lock of this cell in the notebook's metadata are not the instructor's; those were used."
    return [Flag("marks_edited", text, identity) for identity in edited]


def _other_marks(released: ReleasedCell, cell: RawCell) -> bool:
    return (role_of(cell), _points(cell)) != (released.role, released.points)


def _other_lock(released: ReleasedCell, cell: RawCell) -> bool:
    said = cell.nbgrader.get("locked", released.locked)  # older versions of nbgrader write no lock at all
    return released.locked is not None and bool(said) != released.locked


def _points(cell: RawCell) -> Decimal | None:
    try:
        points = Decimal(str(cell.nbgrader.get("points", 0) or 0))
    except ArithmeticError:
        return None
    return points if points.is_finite() else None  # a signalling NaN raises when it is compared


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


def is_older(released: ReleasedCell | None, cell: RawCell) -> bool:
    """S13: a cell of the instructor that nobody changed since its release, and that is not today's."""
    if role_of(cell) not in INSTRUCTORS or not is_signed(cell):
        return False
    return released is None or squeeze(cell.source) != squeeze(released.released) or _points(cell) != released.points


def is_signed(cell: RawCell) -> bool:
    """Whether a cell is what nbgrader took the checksum of when it was released.

    `nbgrader.utils.compute_checksum`: MD5 of text, type, the three marks, the id and, where it is graded, the points.
    Nobody is stopped from computing it; so nothing but the words of a flag depends on it.
    """
    meta = cell.nbgrader
    graded, solution = bool(meta.get("grade")), bool(meta.get("solution"))
    locked = not solution and (graded or bool(meta.get("locked")))
    parts = [cell.source, cell.cell_type, str(graded), str(solution), str(locked), str(meta.get("grade_id"))]
    try:
        parts += [str(float(meta.get("points") or 0))] if graded else []
    except (TypeError, ValueError, OverflowError):
        return False
    return (
        meta.get("checksum") == hashlib.md5("".join(parts).encode(errors="replace"), usedforsecurity=False).hexdigest()
    )


def older_release(ids: Sequence[str]) -> list[Flag]:
    """S13: said once for a notebook."""
    if not ids:
        return []
    text = (
        f"Your notebook was made from another release of this assignment: {_cells(ids)} of the instructor changed since. "
        "Your answers were graded with today's release; fetch the assignment again to see what is different."
    )
    return [Flag("older_release", text)]


def repeated(cell: ReleasedCell) -> Flag:
    """S1, S2: two cells with one id."""
    if cell.role in ANSWERS:
        text = "This answer stood in several cells; they were run in order as one answer."
    else:
        text = "This cell of the instructor stood there more than once; it was run once."
    return Flag("cell_repeated", text, cell.id)


def without_untouched_copies(cell: ReleasedCell, copies: Sequence[SubmittedCell]) -> list[SubmittedCell]:
    """S2: beside a copy with an answer, one that is still as it was handed out is not run; its stub would undo the answer."""
    answered = [one for one in copies if not untouched(cell, one)]
    return answered or list(copies)


def untouched(cell: ReleasedCell, text: SubmittedCell) -> bool:
    """Whether a cell is still as it was handed out."""
    return squeeze(text.source) == squeeze(cell.released)


def missing(cell: ReleasedCell) -> Flag:
    """S3, S4, S6: a known id is not there."""
    if cell.role in ANSWERS:
        return Flag("answer_missing", "The answer cell is not in the notebook, so there is no answer.", cell.id)
    return Flag("cell_restored", "A cell of the instructor was missing; it was put back in its place.", cell.id)


def changed(cell: ReleasedCell, text: SubmittedCell) -> list[Flag]:
    """S7, S9: another type of cell, or another text where the instructor's belongs."""
    flags = []
    if cell.role in INSTRUCTORS and not text.older and not untouched(cell, text):
        told = "A cell of the instructor was changed; the released text was used."
        flags.append(Flag("locked_text_changed", told, cell.id))
    if text.cell_type != cell.cell_type:
        told = f"A {cell.cell_type} cell had become {text.cell_type}; it was restored."
        flags.append(Flag("cell_type_changed", told, cell.id))
    return flags


def reordered() -> Flag:
    """S10: known cells run in the released order."""
    return Flag("cells_reordered", "Cells stood in another order than released; they were run in the released order.")


def above_its_stub(
    cell: ReleasedCell, text: SubmittedCell, before: list[SubmittedCell], flags: list[Flag]
) -> list[SubmittedCell]:
    """S11: cells that answer directly above an answer cell left as it was: they run after it, or its stub would undo them.

    Takes them out of `before`, the student's own cells since the last known one.
    """
    names = binds(text.source)
    if cell.role is not Role.answer or not names or not untouched(cell, text):
        return []
    moved = [one for one in before if one.cell_type == "code" and names & binds(one.source)]
    if moved:
        before[:] = [one for one in before if one.cell_type != "code" or not names & binds(one.source)]
        told = "Your answer stood above its answer cell, which is as you received it; it was run after that cell."
        flags.append(Flag("answer_above", told, cell.id))
    return moved


def answered_above(cell: ReleasedCell) -> Flag:
    """S11: a stub that would undo an answer further up is left out."""
    told = "Your answer stands further up and its answer cell is as you received it; that cell was not run again."
    return Flag("answer_above", told, cell.id)


def set_up_missing(cell: ReleasedCell) -> Flag:
    """S3: a cell that students may change, such as the imports, is gone."""
    first = cell.released.strip().partition("\n")[0][:60]
    return Flag("cell_restored", f"The cell that begins with `{first}` was missing; it was put back in its place.")


def defined_below(test: str | None, names: Iterable[str]) -> Flag:
    """S10: a test reads what only a cell below it defines."""
    text = f"{', '.join(sorted(names))}: defined below the test that reads it. Move the definition into the answer cell above."
    return Flag("defined_below", text, test)


def _cells(ids: Sequence[str]) -> str:
    named = ", ".join(ids[:6]) + (f" and {len(ids) - 6} more" if len(ids) > 6 else "")
    return f"The cell {named}" if len(ids) == 1 else f"The cells {named}"
