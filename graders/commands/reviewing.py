"""The command that works through flags: review.

Comes in: parsed options. Goes out: the queue as text, lines in the journal, an exit status. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from graders import config
from graders.commands.classes import class_of
from graders.commands.grading import grade_class
from graders.commands.terminal import out
from graders.errors import GradersError

if TYPE_CHECKING:
    from graders.results.classbook import Entry
    from graders.results.review import Open


def review(options: argparse.Namespace) -> int:
    """Show the queue of flags, or settle one; 1 when flags or written answers wait."""
    from graders.results import review

    settings, name = config.load(options.course), options.assignment
    entries = {one.person.student: one for one in class_of(settings, name)[1]}
    waiting = review.queue(review.reports(entries.values()), review.settled(settings.course, name))
    if options.accept:
        student, flag = options.accept
        review.accept(settings.course, name, waiting, student, flag, options.reason or "")
        out.print(f"{flag} of {student} is settled; it comes back if the answer changes.", markup=False)
    elif options.override:
        _override(settings, entries, waiting, options)
    elif options.rerun:
        _rerun(settings, entries, options)
    else:
        unmarked = sum(map(_unmarked, entries.values()))
        _print_queue(name, waiting, unmarked)
        return int(bool(waiting or unmarked))
    return 0


def _override(
    settings: config.Settings, entries: Mapping[str, Entry], waiting: Sequence[Open], options: argparse.Namespace
) -> None:
    from graders.results import review

    student, exercise, number = options.override
    if not options.reason:
        raise GradersError("An override needs a reason, for whoever asks later. Add: --reason TEXT.")
    try:
        points = Decimal(number)
    except InvalidOperation:
        raise GradersError(f"{number!r} is no number of points. Write one such as 2 or 0.5.") from None
    entry = _entry(entries, student, options.assignment)
    changed = review.override(settings, entry, waiting, exercise, points, options.reason)
    out.print(f"{student}, {changed}. Next step: graders feedback {options.assignment}", markup=False)


def _rerun(settings: config.Settings, entries: Mapping[str, Entry], options: argparse.Namespace) -> None:
    from graders.results import review

    before = _entry(entries, options.rerun, options.assignment)
    review.note_rerun(settings.course, before, options.reason or "")
    grade_class(settings, options.assignment, [options.rerun], 1, again=True, json=False)
    after = next(one for one in class_of(settings, options.assignment)[1] if one.person.student == options.rerun)
    out.print(f"{options.rerun}: {_standing(before)} → {_standing(after)}.", markup=False)


def _entry(entries: Mapping[str, Entry], student: str, assignment: str) -> Entry:
    if student not in entries:
        raise GradersError(
            f"{student!r} has nothing graded in {assignment!r}. Next step: graders overview {assignment}."
        )
    return entries[student]


def _standing(entry: Entry) -> str:
    return entry.status if entry.score is None else f"{entry.score:g} of {entry.max_score:g}"


def _unmarked(entry: Entry) -> int:
    from graders.results.marks import waiting

    return sum(map(waiting, entry.report.exercises)) if entry.report else 0


def _print_queue(name: str, waiting: Sequence[Open], unmarked: int) -> None:
    from graders.results.feedback import code
    from graders.results.urgency import level

    before = None
    for one in waiting:
        if (now := level(one.name)) != before:
            out.print(f"{now}:", markup=False)
            before = now
        out.print(f"  {one.student}  {one.name}{f'  at {one.cell}' if one.cell else ''}", markup=False)
        for line in code(one.text).splitlines():
            out.print(f"      {line}", markup=False)
    if waiting:
        out.print(
            f"{len(waiting)} to look at, in autograded/STUDENT/{name}/. To settle one:\n"
            f"  graders review {name} --accept STUDENT FLAG\n"
            f"  graders review {name} --override STUDENT EXERCISE POINTS --reason TEXT\n"
            f"  graders review {name} --rerun STUDENT",
            markup=False,
        )
    else:
        out.print("No flag waits.")
    if unmarked:
        out.print(
            f"Written answers to mark in formgrader: {unmarked}. Like ones stand together: graders overview {name}",
            markup=False,
        )
