"""What a student wrote between code cells, so that nothing of it loads or runs where a notebook is shown.

Comes in: Markdown or raw text. Goes out: the same text to a reader's eyes; emphasis, tables and formulas are still rendered.
Must not: parse Markdown, of which every renderer has its own, or change the answer that a report holds.

Formgrader and nbconvert render HTML inside Markdown as it is, and links to `javascript:`. A word joiner, which nobody sees, goes
where HTML, a picture, a formula with an address or a link to anything but a web page would begin; a picture then is a link.
"""

from __future__ import annotations

import re

_JOINER = "\u2060"
_HTML = r"<(?=[A-Za-z/!?])"  # what begins a tag, a comment or an instruction (HTML, 13.2.5.6)
_PICTURE = r"!(?=\[)"
_FORMULA = r"\\(?=(?:href|url|style|class|cssId|bbox|require|includegraphics|unicode)(?![A-Za-z]))"  # MathJax's, with an address or CSS
_LINK = r"\](?=[(:]\s*(?!https?://|#))"  # an address may be written in many ways; one that begins like this can only be of the web
_BEGINNINGS = re.compile(f"{_HTML}|{_PICTURE}|{_FORMULA}|{_LINK}")


def inert(text: str) -> str:
    """The text with a word joiner after whatever would begin something that loads or runs."""
    return _BEGINNINGS.sub(lambda found: found[0] + _JOINER, text)
