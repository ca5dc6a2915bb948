"""Laws of times: they are read with their zone or called unknown, and no text is a crash."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.results.times import shown, utc

# What machines and people write, and the same moment in UTC
TIMES = {
    "2026-10-20 09:00:00.000000 UTC": "2026-10-20T09:00:00",
    "2026-10-20 09:00:00 Europe/Berlin": "2026-10-20T07:00:00",
    "2026-11-20 09:00:00 Europe/Berlin": "2026-11-20T08:00:00",
    "2026-10-20 09:00:00 +0200": "2026-10-20T07:00:00",
    "2026-10-20 09:00:00 -03:30": "2026-10-20T12:30:00",
    "2026-10-20T09:00:00Z": "2026-10-20T09:00:00",
    "2026-10-20T09:00:00+05:45": "2026-10-20T03:15:00",
    "2026-10-20 09:00:00 PST8PDT": "2026-10-20T16:00:00",
    "2026-10-20 09:00": "2026-10-20T09:00:00",
    "  2026-10-20 09:00:00 UTC\n": "2026-10-20T09:00:00",
    # the hour that comes twice when summer time ends is the earlier one: nobody is late by it
    "2026-10-25 02:30:00 Europe/Berlin": "2026-10-25T00:30:00",
    # the hour that never comes when summer time begins
    "2026-03-29 02:30:00 Europe/Berlin": "2026-03-29T01:30:00",
}
NO_TIMES = [
    None, "", "yesterday", "2026-13-40 09:00:00 UTC", "2026-10-20 09:00:00 Mars/Olympus", "2026-10-20 09:00:00 ../../etc/passwd",
    "2026-10-20 09:00:00 /etc/localtime", "2026-10-20 09:00:00 \0", "2026-10-20 09:00:00 Europe", "UTC", "0001-01-01 00:00:00 +1400",
    "9999-12-31 23:59:59 -1400", "2026-10-20 09:00:00 +99:99", "12.11.2026 15:05",
]  # fmt: skip


@pytest.mark.parametrize("text", TIMES)
def test_a_time_is_read_with_its_zone(text):
    """P8: names of zones, offsets, summer time and none at all come out as one moment."""
    assert utc(text).replace(tzinfo=None).isoformat() == TIMES[text]
    assert utc(text).tzinfo is UTC


@pytest.mark.parametrize("text", NO_TIMES, ids=repr)
def test_what_is_no_time_is_unknown(text):
    """P8: a text or zone that cannot be read is no time, and never taken for UTC."""
    assert (utc(text), shown(text)) == (None, None)


@given(st.text() | st.builds("2026-10-20 09:00:00 {}".format, st.text()))
def test_no_text_is_a_crash(text):
    """P8: whatever stands in a file of a submission is a time or unknown."""
    assert utc(text) is None or utc(text).tzinfo is UTC
