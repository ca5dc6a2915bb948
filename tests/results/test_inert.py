"""The law of written text in notebooks: it reads the same, and nothing in it begins that loads or runs."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graders.results.inert import inert

JOINER = "\u2060"
MARKUP = st.text(st.sampled_from(list("<>![](): \n\\#/?abhp$`\"'")), max_size=40)


@given(MARKUP | st.text())
@example("![a](http://a.example/pixel)")
@example("<http://a.example>")
def test_only_joiners_are_added(text: str) -> None:
    """A reader sees what was written: nothing but word joiners is added, and nothing is taken away."""
    assert inert(text).replace(JOINER, "") == text.replace(JOINER, "")


@given(MARKUP)
def test_nothing_begins(text: str) -> None:
    """No tag, comment, instruction or picture begins, and no link but to a web page or within the page."""
    shown = inert(text)
    assert re.search(r"<[A-Za-z/!?]|!\[", shown) is None
    assert [to for to in re.findall(r"\][(:]\s*(\S*)", shown) if not re.match("https?://|#", to)] == []


@pytest.mark.parametrize(
    "text",
    [
        "**bold**, _soft_, `a < b`, [a page](https://a.example/x), [below](#here)",
        "| a | b |\n|---|---|\n| 1 < 2 | $x_1 \\leq \\frac{1}{2}$ |",
        "$$\\begin{aligned} f(x) &= 3x \\\\ g_i(t) \\end{aligned}$$",
        "1. so!\n2. a[0] <- 3 & 4",
    ],
)
def test_words_tables_and_formulas_stay(text: str) -> None:
    """What an honest answer is made of is not touched."""
    assert inert(text) == text


@pytest.mark.parametrize("name", ["href", "style", "class", "cssId", "require", "bbox"])
def test_a_formula_has_no_address(name: str) -> None:
    """Commands of MathJax that take an address or a style are no commands any more; longer names are others."""
    assert inert(f"$\\{name}{{x}}{{y}}$") == f"$\\{JOINER}{name}{{x}}{{y}}$"
    assert inert(f"$\\{name}x$") == f"$\\{name}x$"
