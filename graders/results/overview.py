"""What staff has to know about one assignment of a class.

Comes in: where each student stands, and groups of near-identical answers. Goes out: an `Overview`, from which the page is made. Must not:
read a file, or let what could not be graded enter a figure.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

from graders.records import Record, Report, Status
from graders.results import itemanalysis
from graders.results.classbook import MISSING, Entry
from graders.results.itemanalysis import ExerciseItem, Levels, Mistake
from graders.results.likeness import Group
from graders.results.marks import waiting
from graders.results.points import ZERO

# How urgent each flag is: first what is no accident, or a fault of ours
NOW, SOON, LATER = "Look now", "May change a score", "For your information"
_URGENCY = {
    NOW: ("second_look", "protocol_broken", "examiner_lost", "broken_check", "marks_edited"),
    SOON: (
        "marked_before_change",
        "time_unknown",
        "time_doubtful",
        "late_unknown",
        "answer_missing",
        "notebook_missing",
        "file_unreadable",
        "file_too_large",
        "file_left_out",
        "archive_damaged",
        "link_ignored",
        "encoding_guessed",
        "earlier_stands",
        "older_release",
        "metadata_lost",
        "data_restored",
        "defined_below",
        "answer_above",
        "cell_repeated",
        "cells_reordered",
        "locked_text_changed",
    ),
    LATER: (
        "cell_restored",
        "cell_type_changed",
        "notebook_renamed",
        "encoding_changed",
        "archive_read",
        "file_renamed",
        "library_hidden",
        "builtin_hidden",
        "folder_changed",
        "packages_installed",
        "examined_in_kernel",
    ),
}
_ELSEWHERE = ("awaits_marking", "not_attempted")  # written answers and the table of students show them
_PLACES = {name: (place, level) for place, (level, names) in enumerate(_URGENCY.items()) for name in names}
BINS = 10


class Look(Record):
    """One flag: how urgent it is, what it says, and of whom; the sentence is the student's own."""

    name: str
    urgency: str
    told: tuple[tuple[str, str], ...]


class Written(Record):
    """The answers to one written exercise that nobody has marked: groups of (student, text) that are much alike."""

    id: str
    notebook: str
    max_score: Decimal
    groups: tuple[tuple[tuple[str, str], ...], ...]


class Spread(Record):
    """The scores of all who have one, as shares of the points that were judged. `counts` are of `BINS` equal steps from 0 to 1."""

    students: int
    mean: float
    lower: float
    median: float
    upper: float
    counts: tuple[int, ...]


class Overview(Record):
    """One assignment of a class. `entries` come in the order of scores; `lost` are those without one, or with a part missing."""

    assignment: str
    entries: tuple[Entry, ...]
    lost: tuple[tuple[Entry, str], ...]
    missing: tuple[str, ...]
    spread: Spread | None
    exercises: tuple[ExerciseItem, ...]
    outcomes: tuple[Levels, ...]
    mistakes: tuple[Mistake, ...]
    looks: tuple[Look, ...]
    written: tuple[Written, ...]
    alike: tuple[Group, ...]


def build(
    assignment: str,
    entries: Iterable[Entry],
    alike: Sequence[Group],
    together: Callable[[Mapping[str, str]], Iterable[tuple[str, ...]]],
) -> Overview:
    """Put it together. `together` groups texts by student."""
    entries = sorted(entries, key=lambda one: (-(share(one) or 0), share(one) is None, one.person.student))
    reports = [one.report for one in entries if one.report is not None]
    return Overview(
        assignment=assignment,
        entries=tuple(entries),
        lost=tuple((one, why) for one in entries for why in _why_lost(one)),
        missing=tuple(one.person.student for one in entries if one.status == MISSING),
        spread=spread([one for one in map(share, entries) if one is not None]),
        exercises=itemanalysis.exercises(reports),
        outcomes=itemanalysis.outcomes(reports),
        mistakes=itemanalysis.mistakes(reports),
        looks=looks(one for entry in entries for one in (entry.latest, entry.report) if one is not None),
        written=tuple(_written(reports, together)),
        alike=tuple(alike),
    )


def judged(entry: Entry) -> Decimal:
    """The points that were judged: what waits for a person, or could not be judged, is not among them."""
    exercises = entry.report.exercises if entry.report else ()
    return sum((one.max_score for one in exercises if one.score is not None), ZERO)


def share(entry: Entry) -> float | None:
    """The score as a share of the points that were judged; None where there is none."""
    of = judged(entry)
    return float(entry.score / of) if entry.score is not None and of else None


def spread(shares: Sequence[float]) -> Spread | None:
    """Mean, quartiles (linear between order statistics, as NumPy's default) and a histogram; None of nobody."""
    if not shares:
        return None
    lower, median, upper = (
        statistics.quantiles(shares, n=4, method="inclusive") if len(shares) > 1 else (shares[0],) * 3
    )
    counts = [0] * BINS
    for one in shares:
        counts[min(int(one * BINS), BINS - 1)] += 1  # full marks, and more, stand in the last
    return Spread(len(shares), statistics.fmean(shares), lower, median, upper, tuple(counts))


def looks(reports: Iterable[Report]) -> tuple[Look, ...]:
    """The flags that ask a person to look, the most urgent first; a flag that this list does not know is urgent."""
    told: dict[str, dict[tuple[str, str], None]] = {}
    for report in reports:
        for flag in report.flags:
            if flag.name not in _ELSEWHERE:
                told.setdefault(flag.name, {})[report.student, flag.text] = None
    order = sorted(told, key=lambda name: (_PLACES.get(name, (0, NOW))[0], len(told[name]), name))
    return tuple(Look(name, _PLACES.get(name, (0, NOW))[1], tuple(told[name])) for name in order)


def _why_lost(entry: Entry) -> Iterable[str]:
    """Why something of a submission has no score: the whole, or a reason for each exercise, told once."""
    if entry.status == Status.not_graded.value or (entry.report is not None and entry.reason):
        yield entry.reason or ""
    if entry.report is not None:
        lost = [one for one in entry.report.exercises if one.score is None and not one.manual]
        for why in dict.fromkeys(one.reason or "" for one in lost):
            yield f"{', '.join(one.id for one in lost if (one.reason or '') == why)}: {why}"


def _written(
    reports: Sequence[Report], together: Callable[[Mapping[str, str]], Iterable[tuple[str, ...]]]
) -> Iterable[Written]:
    worth: dict[tuple[str, str], Decimal] = {}
    texts: dict[tuple[str, str], dict[str, str]] = {}
    for report in reports:
        for one in filter(waiting, report.exercises):
            worth[one.id, one.notebook] = one.max_score
            texts.setdefault((one.id, one.notebook), {})[report.student] = one.answer
    for key, by_student in texts.items():
        groups = tuple(tuple((student, by_student[student]) for student in group) for group in together(by_student))
        yield Written(*key, worth[key], groups)
