"""Recognise the cells of a released notebook that have lost nbgrader's marks (Colab and VS Code drop them).

Comes in: the released cells and those that were handed in. Goes out: for each of the latter the grade_id that it has or must
have had. Must not: give a cell that carries a grade_id another one, or take longer for a notebook made to take long.

A cell is recognised by the id that Jupyter gave it, else by a text that no other released cell has, else, an answer, by
the names that it binds and that were asked for, else by a text that is nearly the same, and at last, an answer, by its place: what stands alone
between two cells that were recognised, where one answer stood.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence

from graders.course.parsing import RawCell
from graders.coursework import ANSWERS, ReleasedCell, Role
from graders.records import Record

TELLING = (*ANSWERS, Role.test, Role.task)  # a cell of set-up may stand in many notebooks of a course
_ALIKE = 0.8  # a test that was commented out has 0.9, two tests of one course 0.3 to 0.6
_COMPARED = 600  # characters; and at most so many pairs of cells: about a second at worst
_PAIRS = 900
_BINDS = re.compile(r"^(?:async )?(?:def|class) (\w+)|^(\w+) *(?::[^=\n]+)?=(?!=)", re.MULTILINE)


class Alignment(Record):
    """What was recognised: a grade_id or None for each cell handed in, the ids of cells that had lost theirs, and how many
    cells speak for this notebook being the released one.
    """

    ids: tuple[str | None, ...]
    found: tuple[str, ...]
    evidence: int


def align(released: Sequence[ReleasedCell], handed_in: Sequence[RawCell]) -> Alignment:
    """Recognise the cells of one notebook."""
    own = [grade_id(cell) for cell in handed_in]
    match = _Matching(released, handed_in, own)
    # lessons of one course may share ids, such as `setup`; a question of one is hardly a text of another
    match.by_text(
        lambda cell: cell.cell_id and f"{cell.cell_type} {cell.cell_id}",
        lambda cell: cell.cell_id and f"{cell.cell_type} {cell.cell_id}",
    )
    match.by_text(lambda cell: squeeze(cell.released), lambda cell: squeeze(cell.source))
    named = match.by_names()
    match.by_likeness()
    evidence = _evidence(match, released, named)
    match.by_place()
    ids = match.ids()
    found = tuple(one for one, before in zip(ids, own, strict=True) if one and not before)
    return Alignment(ids, found, evidence)


def _evidence(match: _Matching, released: Sequence[ReleasedCell], named: list[int]) -> int:
    """How many of the questions and tests were recognised by more than what stands in any notebook."""
    telling = {place for place, cell in enumerate(released) if cell.role in TELLING} or set(range(len(released)))
    # `YOUR ANSWER HERE` is the same everywhere
    same = {place for place, cell in enumerate(released) if cell.role in ANSWERS and not binds(cell.released)}
    sure = {place for number, place in match.place.items() if match.own[number] or place not in same} & telling
    sure -= set(named)
    # one name such as `total` may stand in any notebook; half of what was asked for does not
    answers = sum(cell.role is Role.answer for cell in released)
    return len(sure) + (len(named) if sure or 2 * len(named) >= answers else 0)


def grade_id(cell: RawCell) -> str | None:
    """The grade_id that a cell carries, if it carries one."""
    found = cell.nbgrader.get("grade_id")
    return found if isinstance(found, str) and found else None


# of each text several parts of a plan ask, and the author's are the same for everybody
@functools.lru_cache(maxsize=2000)
def squeeze(text: str) -> str:
    """A text without the white space that editors add and remove."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


class _Matching:
    """Which released cell each cell handed in is, as far as it is known."""

    def __init__(self, released: Sequence[ReleasedCell], handed_in: Sequence[RawCell], own: list[str | None]) -> None:
        self.released, self.handed_in, self.own = released, handed_in, own
        places = {cell.id: place for place, cell in enumerate(released) if cell.id}
        self.place: dict[int, int] = {}  # of a cell handed in: the released one
        for number, one in enumerate(own):
            if one in places and places[one] not in self.place.values():
                self.place[number] = places[one]

    def free(self) -> list[int]:
        """Released cells that nothing was recognised as."""
        taken = set(self.place.values())
        return [place for place in range(len(self.released)) if place not in taken]

    def lost(self) -> list[int]:
        """Cells handed in that have no grade_id, some text, and were not recognised."""
        return [
            number
            for number, cell in enumerate(self.handed_in)
            if number not in self.place and not self.own[number] and cell.source.strip()
        ]

    def by_text(
        self, of_released: Callable[[ReleasedCell], str | None], of_handed_in: Callable[[RawCell], str | None]
    ) -> None:
        """What is the same in both and stands once in each; of copies in the notebook the first counts for a text."""
        keys = {place: of_released(self.released[place]) for place in range(len(self.released))}
        once = {key for key, count in Counter(keys.values()).items() if key and count == 1}
        there = {keys[place]: place for place in self.free() if keys[place] in once}
        for number in self.lost():
            place = there.pop(of_handed_in(self.handed_in[number]), None)
            if place is not None:
                self.place[number] = place

    def by_names(self) -> list[int]:
        """An answer binds a name that only its stub or the author's solution to it binds, and no other cell does; returns those."""
        answers = {place: cell for place, cell in enumerate(self.released) if cell.role is Role.answer}
        asked = {place: binds(cell.released) | binds(cell.source) for place, cell in answers.items()}
        shared = {
            name for name, count in Counter(name for names in asked.values() for name in names).items() if count > 1
        }
        texts = {number: binds(self.handed_in[number].source) for number in self.lost()}
        found = []
        for place in self.free():
            wanted = asked.get(place, set()) - shared
            fitting = [number for number, names in texts.items() if wanted & names and number not in self.place]
            if len(fitting) == 1:
                self.place[fitting[0]] = place
                found.append(place)
        return found

    def by_likeness(self) -> None:
        """Nearly the same text; the most alike first."""
        free = [place for place in self.free() if self.released[place].released.strip()]
        lost = self.lost()
        if len(free) * len(lost) > _PAIRS:
            return
        pairs = []
        for place in free:
            matcher = difflib.SequenceMatcher(None, "", self.released[place].released[:_COMPARED])
            for number in lost:
                matcher.set_seq1(self.handed_in[number].source[:_COMPARED])
                if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE:
                    pairs.append((matcher.ratio(), -place, -number))
        for ratio, place, number in sorted(pairs, reverse=True):
            if ratio >= _ALIKE and -number not in self.place and -place not in self.place.values():
                self.place[-number] = -place

    def by_place(self) -> None:
        """Answers between two recognised cells, where exactly as many cells of their type stand."""
        lost = self.lost()
        gaps: dict[tuple[int, int], list[int]] = {}
        for place in self.free():
            if self.released[place].role in ANSWERS:
                gaps.setdefault(self._around(place), []).append(place)
        for (first, last), places in gaps.items():
            types = [self.released[place].cell_type for place in places]
            inside = [number for number in lost if first < number < last and self.handed_in[number].cell_type in types]
            if [self.handed_in[number].cell_type for number in inside] == types:
                self.place |= dict(zip(inside, places, strict=True))

    def _around(self, place: int) -> tuple[int, int]:
        """The cells handed in between which a released cell would stand."""
        before = [(other, number) for number, other in self.place.items() if other < place]
        after = [(other, number) for number, other in self.place.items() if other > place]
        return max(before, default=(0, -1))[1], min(after, default=(0, len(self.handed_in)))[1]

    def ids(self) -> tuple[str | None, ...]:
        """The grade_id of each cell handed in, its own where it has one."""
        return tuple(
            own or (self.released[self.place[number]].id if number in self.place else None)
            for number, own in enumerate(self.own)
        )


def binds(source: str) -> set[str]:
    """Names that a text binds at its left margin, found without reading it as Python, which it may not be."""
    return {one or other for one, other in _BINDS.findall(source)}
