"""Opens pages in headless Chromium and notes what students' text does there. It should do nothing.

Comes in: pages as HTML, notebooks as JSON. Goes out: evidence by attack or family. Must not: let any request leave the browser; each is answered
from here or refused.

A page of ours may ask for nothing and must not even break its own policy. A page that nbgrader makes of a notebook has scripts
of its own; there everything counts that the page of an honest notebook does not do too.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from corpus import SIGNS, Attack
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import handlers
from ours import Evidence
from playwright.sync_api import ConsoleMessage, Dialog, Page, Route, sync_playwright
from traitlets.config import Config

SITE = "http://pages.test"
SIGN = SIGNS[-1]
TEMPLATES = ("formgrade", "lab")
Pages = Mapping[str, Mapping[str, str]]  # attack: title: HTML
_STATIC = Path(handlers.static_path)
_SETTLE_MS = 30
_SCRIPT_LINKS = """() => [...document.querySelectorAll("a, area, form, iframe, base, object, embed, link, [ping]")]
    .flatMap(one => ["href", "action", "src", "srcdoc", "data", "xlink:href", "ping"].map(name => one.getAttribute(name) || ""))
    .map(address => address.replace(/[\\s\\x00-\\x1f]/g, ""))
    .map(address => { try { return decodeURIComponent(address) } catch { return address } })
    .filter(address => /^\\s*(j\\s*a\\s*v\\s*a|vbscript|data:text)/i.test(address))"""
_HANDLERS = """() => [...document.querySelectorAll("*")].flatMap(one => [...one.attributes])
    .filter(one => one.name.startsWith("on")).map(one => one.name + "=" + one.value)"""


def chromium() -> str | None:
    """The browser of this machine, or None."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


class Visitor:
    """One browser page that opens what it is given and notes what happens."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._html = ""
        self._noted: list[str] = []
        page.route("**/*", self._answer)
        page.on("dialog", self._dialog)
        page.on("console", self._console)

    def open(self, html: str) -> list[str]:
        """Everything that the page did and could be made to do: requests, dialogs, broken policies, links and handlers that are scripts."""
        self._html, self._noted = html, []
        self._page.goto(f"{SITE}/page", wait_until="load")
        self._page.wait_for_timeout(_SETTLE_MS)
        found = [f"link {one}" for one in self._page.evaluate(_SCRIPT_LINKS)]
        found += [f"handler {one}" for one in self._page.evaluate(_HANDLERS)]
        return [*self._noted, *found]

    def _answer(self, route: Route) -> None:
        address = urlsplit(route.request.url)
        static = _STATIC / address.path.partition("/formgrader/static/")[2]
        if route.request.url == f"{SITE}/page":
            route.fulfill(body=self._html, content_type="text/html; charset=utf-8")
        elif address.netloc == urlsplit(SITE).netloc and "/formgrader/static/" in address.path and static.is_file():
            route.fulfill(path=static)
        else:
            self._noted.append(f"request {route.request.url[:200]}")
            route.abort()

    def _dialog(self, dialog: Dialog) -> None:
        self._noted.append(f"dialog {dialog.message[:200]}")
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self._noted.append(f"policy {message.text[:200]}")


@contextmanager
def visitor(program: str) -> Iterator[Visitor]:
    """A browser, closed afterwards."""
    unprivileged = os.geteuid() != 0  # Chromium's own sandbox refuses root
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, chromium_sandbox=unprivileged)
        try:
            yield Visitor(browser.new_page())
        finally:
            browser.close()


def look(
    visiting: Visitor, attacks: Iterable[Attack], pages: Pages, notebooks: Mapping[str, str], honest: str
) -> Evidence:
    """What happened on the pages and notebooks of each attack. `honest` is the notebook of somebody who attacks nothing.

    Notebooks of attacks that go for something else than pages are opened as one, by family: a page takes half a second.
    """
    found: Evidence = {}
    together: dict[str, list[str]] = {}
    for one in attacks:
        for title, html in pages.get(one.name, {}).items():
            _note(found, one.name, [f"{title}: {seen}" for seen in visiting.open(html)])
        if notebooks.get(one.name):
            together.setdefault(one.name if SIGN in one.seen else one.family, []).append(notebooks[one.name])
    for template in TEMPLATES:
        usual = set(visiting.open(rendered([honest], template)))
        for name, texts in together.items():
            try:
                seen = [one for one in visiting.open(rendered(texts, template)) if one not in usual]
            except Exception as error:  # whatever a notebook makes a renderer raise, somebody cannot open the page
                seen = [f"cannot be shown: {type(error).__name__}: {str(error)[:200]}"]
            _note(found, name, [f"{template}: {one}" for one in seen])
    return found


def _note(found: Evidence, name: str, seen: list[str]) -> None:
    if seen:
        found.setdefault(name, {}).setdefault(SIGN, []).extend(seen)


@functools.cache
def _exporter(template: str) -> HTMLExporter:
    basedirs = [str(Path(handlers.template_path))]
    return HTMLExporter(
        config=Config({"HTMLExporter": {"template_name": template, "extra_template_basedirs": basedirs}})
    )


def rendered(notebooks: Sequence[str], template: str) -> str:
    """The cells of notebooks, as formgrader or plain nbconvert shows them."""
    resources = {
        "assignment_id": "ps1", "notebook_id": "nb", "submission_id": "0", "index": 0, "total": 1, "base_url": "", "student": "student-01",
        "last_name": "", "first_name": "", "notebook_path": "nb.ipynb",
    }  # fmt: skip
    made, *more = [nbformat.reads(one, as_version=4) for one in notebooks]
    made.cells += [cell for one in more for cell in one.cells]
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
    html, _ = _exporter(template).from_notebook_node(made, resources=resources)
    return str(html)
