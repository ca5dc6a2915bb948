"""The page of a portfolio.

Comes in: a `Portfolio`. Goes out: one self-contained HTML page. Must not: show more than the portfolio's JSON, or let anything from a
student be more than text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import quote

import msgspec

from graders.records import to_json
from graders.results.feedback import FILTERS
from graders.results.mastery import WORDS, Mastery, by_kind, outcomes
from graders.results.pages import Page, load
from graders.results.portfolio import Portfolio, Statement
from graders.results.times import shown


def render(portfolio: Portfolio) -> str:
    """The page. It links to the notebooks beside it and loads nothing."""
    everything = [one for work in portfolio.works for one in work.counted.exercises]
    found = outcomes(work.counted for work in portfolio.works)
    return _page().fill(
        portfolio=portfolio,
        made=shown(portfolio.made),
        totals=by_kind(everything),
        outcomes=found,
        proven=sum(one.mastery is Mastery.proven for one in found),
        words=WORDS,
    )


def pretty(statement: Statement) -> str:
    """A record as indented JSON."""
    return msgspec.json.format(to_json(statement.record), indent=2).decode("utf-8", "replace")


def link(path: str) -> str:
    """A relative address of a file beside the page."""
    return "./" + quote(path.encode("utf-8", "replace"))


@cache
def _page() -> Page:
    more: dict[str, Callable[..., Any]] = {
        "pretty": pretty,
        "link": link,
        "shown": lambda text: shown(text) or "",
        "kinds": by_kind,
    }
    return load("portfolio.html.j2", "feedback.css", "portfolio.css", filters={**FILTERS, **more})
