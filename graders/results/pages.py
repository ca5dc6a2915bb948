"""How a page is made: a template that escapes, a style sheet inside the page, and a policy that allows nothing else.

Comes in: names of files in templates/. Goes out: what a page needs to be filled. Must not: let a script, a form, or anything from
outside the page in.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


class Page(NamedTuple):
    """A template, and the two things that it puts into its head."""

    template: Template
    style: str
    policy: str

    def fill(self, **values: object) -> str:
        """The page with these values."""
        return self.template.render(style=self.style, policy=self.policy, **values)


def load(
    template: str, *styles: str, filters: Mapping[str, Callable[..., Any]] | None = None, pictures: bool = False
) -> Page:
    """A page whose Content-Security-Policy allows its style sheet, by hash, and nothing else but, if asked for, pictures that lie in it.

    `styles` are joined to one.
    """
    environment = Environment(
        loader=PackageLoader("graders.results"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= dict(filters or {})
    folder = Path(__file__).parent / "templates"
    style = "".join((folder / name).read_text(encoding="utf-8") for name in styles)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    policy += "; img-src data:" if pictures else ""
    return Page(environment.get_template(template), style, policy)
