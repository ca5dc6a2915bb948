"""Commands about what students hand in and what they get back: submit, collect, feedback.

Comes in: parsed options. Goes out: text and an exit status. Must not: know how anything is done.
"""

from __future__ import annotations

import argparse

from graders import config
from graders.commands.terminal import out


def submit(options: argparse.Namespace) -> int:
    """Hand in an assignment and print its receipt; 1 when the grader will have something to say about it."""
    from graders.results.times import shown
    from graders.run import handingin

    made = handingin.hand_in(options.course / options.assignment, options.course_id, options.query)
    look = made.look
    out.print(f"Handed in {shown(made.submitted)} by {made.student} for {made.course_id}.", markup=False)
    out.print(f"Hash: {made.sha256}")
    unanswered = f", {_count(look.open_checkpoints, 'checkpoint')} unanswered" if look.open_checkpoints else ""
    out.print(f"Found: {look.answered} of {_count(look.answers, 'answer')}{unanswered}.")
    if look.why is not None:
        out.print(f"This cannot be graded; mend it and hand in again. {look.why}", markup=False)
    if look.flags:
        out.print("Your page will say this; mend it and hand in again, if you like:")
    for text in dict.fromkeys(flag.text for flag in look.flags):
        cells = ", ".join(flag.cell for flag in look.flags if flag.text == text and flag.cell)
        out.print(f"- {f'{cells}: ' if cells else ''}{text}", markup=False)
    return int(bool(look.flags) or look.why is not None)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def collect(options: argparse.Namespace) -> int:
    """Collect what was handed in; 1 when something was not taken that a person may want to see."""
    from graders.run import collecting

    settings = config.load(options.course)
    found = collecting.collect(settings, options.assignment, options.download)
    for one in found.students:
        out.print(f"{one.student}: {one.text}", markup=False)
    for name in found.unknown:
        out.print(f"Not understood: {name}", markup=False)
    if found.unknown and options.download:
        out.print(
            "The list of students tells who they are: nbgrader db student add ID --lms-user-id NUMBER --first-name …"
        )
    taken = sum(one.taken for one in found.students)
    out.print(f"{taken} of {len(found.students)} collected.")
    return int(any(one.problem for one in found.students) or bool(found.unknown))


def feedback(options: argparse.Namespace) -> int:
    """Write the pages of an assignment, and put them into the exchange if asked to; 1 when somebody's stays behind."""
    from graders.run import returning

    settings = config.load(options.course)
    give = returning.release_feedback if options.release else returning.write
    found = give(settings, options.assignment)
    pages = [page for one in found for page in one.pages]
    out.print(f"{len(pages)} pages are below {settings.course / 'feedback'}; the first is {pages[0]}.", markup=False)
    behind = [one for one in found if one.why is not None]
    for one in behind:
        out.print(f"{one.student}: {one.why}", markup=False)
    if options.release:
        out.print(f"{len(found) - len(behind)} of {len(found)} students find theirs in the exchange.")
    return int(bool(behind))
