"""How urgent each flag is: the one list that exit status, class page and review queue go by.

Comes in: the name of a flag. Goes out: its level and its place in the order. Must not: import anything, or take a flag that it does not
know for harmless.
"""

from __future__ import annotations

NOW, SOON, LATER = "Look now", "May change a score", "For your information"
ORDER = {
    NOW: ("second_look", "protocol_broken", "examiner_lost", "broken_check", "marks_edited"),
    SOON: (
        "marked_before_change",
        "awaits_marking",
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
        "library_hidden",
        "defined_below",
        "answer_above",
        "cell_repeated",
        "cells_reordered",
        "locked_text_changed",
    ),
    LATER: (
        "not_attempted",
        "cell_restored",
        "cell_type_changed",
        "notebook_renamed",
        "encoding_changed",
        "archive_read",
        "file_renamed",
        "builtin_hidden",
        "folder_changed",
        "packages_installed",
        "examined_in_kernel",
        "attempts",
        "attempt_refused",
        "better_stands",
    ),
}
_LEVELS = {name: level for level, names in ORDER.items() for name in names}
_PLACES = {name: place for place, name in enumerate(_LEVELS)}


def level(name: str) -> str:
    """One of the three; a flag that nobody has placed yet is looked at now."""
    return _LEVELS.get(name, NOW)


def place(name: str) -> tuple[int, int]:
    """For sorting: by level, and within it by the list."""
    return list(ORDER).index(level(name)), _PLACES.get(name, -1)


def needs_person(name: str) -> bool:
    """Whether somebody has to look; what is only for information needs nobody."""
    return level(name) != LATER
