"""Times of submission, as people and machines write them.

Comes in: text from a submission. Goes out: an aware UTC time, or None. Must not: crash, or take a strange zone for UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def utc(text: str | None) -> datetime | None:
    """Read ISO 8601, or nbgrader's `2026-10-20 09:00:00.000000 UTC` with a zone's name or offset.

    A time without a zone is UTC, as in nbgrader. None when the text or its zone cannot be read: "time unknown".
    """
    text = (text or "").strip()
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        stamp, _, zone = text.rpartition(" ")
        try:
            when = datetime.fromisoformat(f"{stamp}{zone}" if zone[:1] in ("+", "-") else stamp)
            when = when if when.tzinfo else when.replace(tzinfo=ZoneInfo(zone))
        except (ValueError, OSError, KeyError):  # ZoneInfo raises each of them for a name that is no zone
            return None
    try:
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (OverflowError, ValueError):  # the first or last day that a datetime can hold
        return None


def shown(text: str | None) -> str | None:
    """The time as a person reads it, such as `20 October 2026, 09:00 UTC`; None when it is unknown."""
    when = utc(text)
    return None if when is None else f"{when.day} {when:%B %Y, %H:%M} UTC"
