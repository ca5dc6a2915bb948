"""Tables of what attacks came to, for a terminal and for docs/attacks.md.

Comes in: attacks and evidence. Goes out: text. Must not: leave out a family that has nothing but zeros.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from corpus import SIGNS, Attack
from ours import Evidence

Row = tuple[str, int, dict[str, int | str]]
NOT_OPENED = "not opened: no Chromium found"
_PAGE = """\
# The attack corpus

{total} notebooks of students who know this source code. Each is wrong in every answer and tries something else. `make attack`
grades them as one class and looks for signs of success; `make attack NBGRADER=1` runs them through `nbgrader autograde` as well and
writes this page. `tests/attacks/README.md` says how to read an attack and how to add one.

A number is how many attacks of the family were seen to succeed.

## Here

{here}
## Under `nbgrader autograde`

The same notebooks in throw-away courses, one a family, behind walls, with the loopback device up. A6 has nothing to attack
there, since there is no examiner to speak to; most of A7 waits for a call that never comes, since a test cell ends at its first
assertion that fails. The walls keep some attacks on the machine from succeeding that succeed without them. What is of nobody is
a file that was changed by an attack that left no mark in it.

{there}
## Each attack

| attack | tries | seen under nbgrader |
|---|---|---|
{each}
"""


def rows(attacks: Iterable[Attack], evidence: Evidence, opened: bool) -> list[Row]:
    """One row a family: its name, how many attacks it has, and how many succeeded by sign; the last row adds them up.

    Evidence that names a family, or nobody, is that of one more. `opened` is whether a browser has looked at the pages.
    """
    families = {family: list(group) for family, group in groupby(attacks, lambda one: one.family)}
    by_name = {one.name for group in families.values() for one in group}
    found: list[Row] = []
    for family, members in families.items():
        names = [family, *(one.name for one in members)]
        found.append(
            (family, len(members), {sign: sum(sign in evidence.get(one, {}) for one in names) for sign in SIGNS})
        )
    strangers = [signs for name, signs in evidence.items() if name not in by_name | families.keys()]
    if any(strangers):
        found.append(("of nobody", 0, {sign: sum(sign in signs for signs in strangers) for sign in SIGNS}))
    found.append(("all", len(by_name), {sign: sum(int(by[sign]) for _, _, by in found) for sign in SIGNS}))
    unseen = {} if opened else {SIGNS[-1]: NOT_OPENED}
    return [(name, count, by | unseen) for name, count, by in found]


def markdown(found: list[Row]) -> str:
    """The rows as a table."""
    lines = [f"| family | attacks | {' | '.join(SIGNS)} |", f"|---|{'---|' * (len(SIGNS) + 1)}"]
    lines += [f"| {name} | {count} | {' | '.join(str(by[sign]) for sign in SIGNS)} |" for name, count, by in found]
    return "\n".join([*lines, ""])


def text(found: list[Row], evidence: Evidence) -> str:
    """The rows for a terminal, and below them the evidence for whatever succeeded."""
    cells = [["family", "attacks", *SIGNS]]
    cells += [[name, str(count), *(str(by[sign]) for sign in SIGNS)] for name, count, by in found]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(one.rjust(w) for one, w in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    ]
    lines += [
        f"{name}: {sign}: {'; '.join(seen[:5])}" for name, signs in evidence.items() for sign, seen in signs.items()
    ]
    return "\n".join(lines) + "\n"


def page(attacks: list[Attack], here: Evidence, there: Evidence, opened: bool) -> str:
    """docs/attacks.md."""
    each = [f"| {one.family.partition('-')[0]} `{one.name}` | {one.tries} | {_seen(one, there)} |" for one in attacks]
    tables = {"here": markdown(rows(attacks, here, opened)), "there": markdown(rows(attacks, there, opened))}
    return _PAGE.format(total=len(attacks), each="\n".join(each), **tables)


def _seen(attack: Attack, there: Evidence) -> str:
    return ", ".join(sign for sign in SIGNS if there.get(attack.name, {}).get(sign)) or "–"
