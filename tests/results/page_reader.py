"""A page as tests look at it, and what a student may write to break one."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}
# fmt: off
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "p", "h1", "h2", "h3", "h4", "main", "section", "span", "div",
    "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "svg", "rect", "article", "pre", "strong", "code", "dl", "dt",
    "dd", "footer",
}
# fmt: on


class Page(HTMLParser):
    """A page as its elements, ids and text; it fails on what is not well nested."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """Note an element."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        """Each end belongs to the last start."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Text outside the style sheet."""
        if "style" not in self.open:
            self.text += data

    @property
    def words(self) -> str:
        """The text with single spaces."""
        return " ".join(self.text.split())


HOSTILE = [
    "<script>alert(1)</script>",
    "</pre><script>alert(1)</script>",
    "<iframe src=//x>",
    "<svg onload=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "{{ 7 * 7 }}{% include 'x' %}",
    "$\\href{javascript:alert(1)}{x}$",
    "--><!-- ]]>",
    '" onmouseover="alert(1)',
]
