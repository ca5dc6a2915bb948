"""Hands for JupyterLab and nbgrader's pages in a browser: what a person clicks, and what they wait for before they go on.

Comes in: the address of a server. Goes out: clicks, keys, pictures. Must not: wait for a time instead of for what can be seen.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect, sync_playwright

PATIENCE_MS = 60_000.0
VIEW = {"width": 1200, "height": 760}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window. Where there is none, this says what to install."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for name in names if (found := shutil.which(name))), None)
    assert program, "There is no Chromium here. On Debian: apt install chromium"
    expect.set_options(timeout=PATIENCE_MS)
    unprivileged = os.geteuid() != 0  # Chromium's own sandbox refuses root
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, chromium_sandbox=unprivileged)
        try:
            yield browser
        except BaseException as error:
            _keep_screens(browser, error)
            raise
        finally:
            browser.close()


def _keep_screens(browser: Browser, error: BaseException) -> None:
    """Keep what everybody saw when something went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="graders-screens-"))
    pages = [page for context in browser.contexts for page in context.pages]
    for number, page in enumerate(pages):
        page.screenshot(path=folder / f"{number}.png")
    error.add_note(f"What {len(pages)} people saw then: {folder}")


class Lab:
    """One person's JupyterLab, in a browser that shares nothing with anybody else's."""

    def __init__(self, browser: Browser, address: str, pictures: Path | None = None) -> None:
        self.pictures = pictures
        self.page: Page = browser.new_context(viewport=VIEW).new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.goto(address)
        self.current("Launcher")

    def current(self, label: str) -> None:
        """Wait until the tab of this name is the one in front."""
        front = self.page.locator("#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current")
        expect(front.filter(has_text=label)).to_have_count(1)

    def menu(self, name: str, command: str) -> None:
        """Open a menu and choose the entry of a command."""
        self.page.locator("#jp-menu-panel .lm-MenuBar-itemLabel", has_text=re.compile(f"^{name}$")).click()
        self.page.locator(f'.lm-Menu li[data-command="{command}"]').first.click()

    def picture(self, name: str) -> None:
        """Keep what is seen now, if somebody asked for pictures."""
        if self.pictures is not None:
            self.page.mouse.move(0, 0)
            self.page.screenshot(path=self.pictures / f"{name}.png", animations="disabled", caret="hide")

    # What a student does

    def assignments(self) -> None:
        """Open nbgrader's list of assignments, or go back to it."""
        self.menu("Nbgrader", "nbgrader:open-assignment-list")
        self.current("Assignments")

    def listed(self, what: str, assignment: str) -> Locator:
        """The row of an assignment in one of the lists `released`, `fetched`, `submitted`."""
        return self.page.locator(f"#{what}_assignments_list > .list_item", has_text=assignment)

    def open_fetched(self, assignment: str, notebook: str) -> None:
        """Open a notebook from the list and wait for its kernel."""
        self.listed("fetched", assignment).locator("a.assignment-notebooks-link").click()
        self.page.locator(".nested_list_item a", has_text=notebook).click()
        self.current(f"{notebook}.ipynb")
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text("| Idle")

    def write(self, part: str, text: str) -> None:
        """Write into the cell that holds `part`, in the place of what is there."""
        cell = self.page.locator(".jp-Notebook .jp-Cell", has_text=part)
        if rendered := cell.locator(".jp-MarkdownOutput:visible").count():
            cell.locator(".jp-MarkdownOutput").dblclick()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)
        if rendered:
            self.page.keyboard.press("Control+Enter")

    def run_all(self) -> None:
        """Run all cells, wait until each has its number, and save."""
        self.menu("Run", "runmenu:run-all")
        cells = self.page.locator(".jp-Notebook .jp-CodeCell")
        numbered = self.page.locator(".jp-Notebook .jp-InputPrompt", has_text=re.compile(r"\[\d+\]"))
        expect(numbered).to_have_count(cells.count())
        self.page.keyboard.press("Control+S")
        expect(self.page.locator("#jp-main-dock-panel .lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)

    def validate(self) -> str:
        """Press nbgrader's button of that name, and return what it says."""
        self.page.locator("jp-button.validate-button:visible").click()
        dialog = self.page.locator(".nbgrader-SuccessDialog, .nbgrader-ErrorDialog")
        expect(dialog).to_be_visible()
        return dialog.inner_text()

    def close_dialog(self) -> None:
        """Say OK."""
        self.page.locator("button.jp-Dialog-button.jp-mod-accept").click()
        expect(self.page.locator(".jp-Dialog")).to_have_count(0)

    def open_file(self, name: str) -> FrameLocator:
        """Open a page from the file browser; what is in it."""
        self.page.locator(".jp-DirListing-item", has_text=name).dblclick()
        self.current(name)
        return self.page.frame_locator(".jp-HTMLViewer iframe")

    # What instructors and TAs do

    def formgrader(self) -> FrameLocator:
        """Open nbgrader's pages for staff."""
        if self.page.locator("#jp-left-stack").is_visible():
            self.page.keyboard.press("Control+B")  # they are wide
            expect(self.page.locator("#jp-left-stack")).to_be_hidden()
        self.menu("Nbgrader", "nbgrader:open-formgrader")
        self.current("Formgrader")
        return self.page.frame_locator("#jp-main-dock-panel iframe").first


def press(frame: FrameLocator, button: Locator, said: str) -> str:
    """Press one of formgrader's buttons and wait for its answer, which has to say `said`. Returns the answer with its log."""
    button.click()
    modal = frame.locator(".modal.in")
    expect(modal).to_contain_text(said)
    text = modal.inner_text()
    modal.locator(".modal-footer button").click()
    expect(frame.locator(".modal")).to_have_count(0)
    return text
