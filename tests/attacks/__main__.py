"""`make attack`: every attack through this project's grader, and a table by family of what succeeded. All must be zero.

Comes in: options. Goes out: the table, the evidence for whatever succeeded, and an exit status. `--nbgrader` runs the same
attacks through `nbgrader autograde` as well and writes the two tables into docs/attacks.md. Must not: pass over a family, or call
an attack harmless that was not run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from itertools import groupby
from pathlib import Path

import bait
import browser
import corpus
import ours
import table
import theirs
from corpus import Attack
from ours import Evidence

from graders.kernels.nursery import best_level

PAGE = Path(__file__).resolve().parents[2] / "docs" / "attacks.md"


def main() -> int:
    """Run, show, and say whether all is zero."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__.partition("\n")[0])
    parser.add_argument("--nbgrader", action="store_true", help="run nbgrader too and write docs/attacks.md")
    parser.add_argument("only", nargs="*", help="families or names of attacks; all where none is named")
    options = parser.parse_args()
    wanted = set(options.only)
    chosen = [one for one in corpus.read() if not wanted or {one.name, one.family.partition("-")[0]} & wanted]
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        os.environ["XDG_DATA_HOME"] = folder  # reports are signed with a key of this run
        here, opened = _here(Path(folder, "ours"), chosen)
        sys.stdout.write(table.text(table.rows(chosen, here, opened), here))
        if options.nbgrader:
            there = _under_nbgrader(Path(folder), chosen)
            sys.stdout.write(f"\nUnder nbgrader autograde:\n\n{table.text(table.rows(chosen, there, opened), {})}")
            if not wanted:
                PAGE.write_text(table.page(chosen, here, there, opened))
    return 1 if any(here.values()) else 0


def _here(root: Path, chosen: list[Attack]) -> tuple[Evidence, bool]:
    """The evidence against this project, and whether there was a browser to look for some."""
    outcome = ours.run(root, chosen, workers=2)
    honest = ours.notebook(outcome.course, bait.VICTIM)
    opened = _browse(outcome.evidence, chosen, outcome.pages, outcome.notebooks, honest)
    return outcome.evidence, opened


def _under_nbgrader(root: Path, chosen: list[Attack]) -> Evidence:
    """The evidence against nbgrader, each family in a course of its own."""
    evidence: Evidence = {}
    for family, group in groupby(chosen, lambda one: one.family):
        attacks = list(group)
        found = theirs.run(root / family, attacks, walled=best_level() == "namespaces")
        _browse(found.evidence, attacks, {}, found.notebooks, found.notebooks[bait.VICTIM])
        evidence |= found.evidence
    return evidence


def _browse(
    evidence: Evidence, attacks: list[Attack], pages: browser.Pages, notebooks: dict[str, str], honest: str
) -> bool:
    """Add what a browser sees; False where there is none."""
    program = browser.chromium()
    if program is None:
        return False
    with browser.visitor(program) as visiting:
        for name, signs in browser.look(visiting, attacks, pages, notebooks, honest).items():
            evidence.setdefault(name, {}).update(signs)
    return True


if __name__ == "__main__":
    raise SystemExit(main())
