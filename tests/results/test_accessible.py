"""The law of every page: axe-core finds nothing, in light and in dark, on a phone and on a desk, and a phone scrolls it one way only."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import page_samples
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

pytestmark = pytest.mark.system
PAGES = page_samples.pages()
PHONE, DESK = 360, 1280
WIDE = """() => [...document.querySelectorAll("body *")]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 200))"""
FOCUSED = "() => document.activeElement === document.body ? null : document.activeElement.outerHTML.slice(0, 200)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium. Where there is none, these tests fail and say what to install."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    assert program, "There is no Chromium here. On Debian: apt install chromium"
    unprivileged = os.geteuid() != 0  # Chromium's own sandbox refuses root
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=program, chromium_sandbox=unprivileged)
        yield opened
        opened.close()


def show(browser: Browser, html: str, width: int, scheme: str) -> Page:
    """The page as a reader with this screen has it; only the driver's own script gets past the page's policy."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True, bypass_csp=True
    )
    page = context.new_page()
    page.set_content(html)
    return page


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (DESK, "light"), (DESK, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(browser: Browser, name: str, width: int, scheme: str) -> None:
    """Everything that axe-core checks (WCAG 2 A and AA, and its best practices) holds, also of what is folded in."""
    page = show(browser, PAGES[name], width, scheme)
    page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["help"], one["nodes"][0]["html"][:200]) for one in found] == []
    page.context.close()


def test_what_axe_should_find_is_found(browser: Browser) -> None:
    """A page without its language, or with grey text on grey, is not passed: an empty list of findings means something."""
    for whole, broken, rule in (
        (' lang="en"', "", "html-has-lang"),
        ("--soft: #56606a", "--soft: #b0b0b0", "color-contrast"),
    ):
        assert whole in PAGES["full"]
        page = show(browser, PAGES["full"].replace(whole, broken), DESK, "light")
        assert rule in [one["id"] for one in Axe().run(page).response["violations"]]
        page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_scrolls_a_page_one_way_only(browser: Browser, name: str) -> None:
    """At 360 pixels nothing makes the page wider than the screen."""
    page = show(browser, PAGES[name], PHONE, "light")
    page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE, page.evaluate(WIDE)
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_every_link_and_sees_where_it_is(browser: Browser, name: str) -> None:
    """The first key leads past the head of the page, and whatever gets the focus shows it by an outline."""
    page = show(browser, PAGES[name], DESK, "light")
    wanted = page.locator("a, summary, [tabindex='0']").count()
    for number in range(min(wanted, 30)):
        page.keyboard.press("Tab")
        assert page.evaluate(FOCUSED), number
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.context.close()
