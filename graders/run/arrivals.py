"""A submission on its way into the course, wherever it comes from.

Comes in: nothing. Goes out: the record that the exchange and downloads make and that collecting takes. Must not: hold behaviour.
"""

from __future__ import annotations

from graders.records import Flag, Record


class Arrived(Record):
    """A submission as it was found, its files by relative name; or `why` it cannot be taken. `flags` say what a person should
    know of it.
    """

    student: str
    files: dict[str, bytes]
    submitted: str | None = None
    source: str = "exchange"
    flags: tuple[Flag, ...] = ()
    why: str | None = None
