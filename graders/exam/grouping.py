"""Which released cell each submitted one is or follows.

Comes in: the released cells and those that were handed in, each with the grade_id that it has or was recognised by. Goes out:
groups by the position of the released cell, and a flag for each repair. Must not: decide what is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graders.course import repairs
from graders.course.alignment import squeeze
from graders.coursework import ReleasedCell, Role, SubmittedCell
from graders.records import Flag


class Group(NamedTuple):
    """What was handed in as one released cell, and the student's own cells that follow it."""

    own: list[SubmittedCell]
    extras: list[SubmittedCell]


TOP = -1  # the group of what stands above every cell that is known


def grouped(cells: Sequence[ReleasedCell], handed_in: Sequence[SubmittedCell], flags: list[Flag]) -> dict[int, Group]:
    """Submitted cells by the position of the released cell that they belong to."""
    known = {cell.id: place for place, cell in enumerate(cells) if cell.id}
    plain = {squeeze(cell.released): place for place, cell in enumerate(cells) if not cell.id}
    groups = {TOP: Group([], [])}
    anchor = TOP
    order: list[int] = []
    for text in handed_in:
        place = known.get(text.id) if text.id else plain.pop(squeeze(text.source), None)
        if place is None:
            if text.source.strip() and not text.older:
                groups[anchor].extras.append(text)
            continue
        cell, group = cells[place], groups.setdefault(place, Group([], []))
        if group.own:
            flags.append(repairs.repeated(cell))
        elif cell.id:
            order.append(place)
            flags += repairs.changed(cell, text)
            group.extras[:] = repairs.above_its_stub(cell, text, groups[anchor].extras, flags)
        group.own.append(text)
        anchor = place
    flags += [
        repairs.missing(cell)
        for place, cell in enumerate(cells)
        if cell.id and place not in groups and cell.role is not Role.plain
    ]
    if order != sorted(order):
        flags.append(repairs.reordered())
    return groups
