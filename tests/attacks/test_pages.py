"""The law of pages: what a student hands in does nothing in a reader's browser, on our pages or on nbgrader's of our notebooks."""

from __future__ import annotations

import json

import bait
import browser
import corpus
import ours
import pytest
from assignment import plain_cell
from ours import Outcome

pytestmark = pytest.mark.system
ATTACKS = [one for one in corpus.read() if browser.SIGN in one.seen]
LOUD = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The attacks on pages, graded."""
    return ours.run(tmp_path_factory.mktemp("ours"), ATTACKS, workers=2)


@pytest.fixture(scope="module")
def visiting():
    """A browser. Where there is none, these tests fail and say what to install."""
    program = browser.chromium()
    assert program, "There is no Chromium here. On Debian: apt install chromium"
    with browser.visitor(program) as one:
        yield one


def test_no_page_does_anything(outcome: Outcome, visiting: browser.Visitor) -> None:
    """Every page and every notebook of the attack class opens without a script, a request, a dialog or a link that is a script."""
    honest = ours.notebook(outcome.course, bait.VICTIM)
    assert browser.look(visiting, ATTACKS, outcome.pages, outcome.notebooks, honest) == {}


@pytest.mark.parametrize("template", browser.TEMPLATES)
def test_a_script_would_be_seen(template: str, outcome: Outcome, visiting: browser.Visitor) -> None:
    """The same markup in a cell that nobody made inert opens a dialog, so a page on which none opens is a page without it."""
    notebook = json.loads(ours.notebook(outcome.course, bait.VICTIM))
    notebook["cells"].append(plain_cell("loud", LOUD, "markdown"))
    seen = visiting.open(browser.rendered([json.dumps(notebook)], template))
    assert "dialog 1" in seen


def test_a_page_without_its_escaping_would_be_seen(outcome: Outcome, visiting: browser.Visitor) -> None:
    """On a page of ours that held markup, the policy would stop the script, and that is noted."""
    page = outcome.pages["code-answer"]["feedback"]
    assert visiting.open(page) == []
    assert any(one.startswith("policy") for one in visiting.open(page.replace("<main", f"{LOUD}<main", 1)))
