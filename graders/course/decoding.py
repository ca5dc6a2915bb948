"""The bytes of a text file to text, by a ladder of rungs that is the same for everyone.

Comes in: bytes and the name they had. Goes out: text that can be stored as UTF-8, with a flag where it was guessed. Must
not: lose a file because one character of it is wrong.

The rungs, the first that holds: a byte order mark (UTF-8, UTF-16, UTF-32); UTF-16 and UTF-32 without one, known by the
zero bytes around the first character (RFC 4627, section 3); UTF-8; the encoding that the file itself declares, as Python
files (PEP 263) and some editors do; at last UTF-8 in which each byte that is none is read as Windows-1252, with a flag.
"""

from __future__ import annotations

import codecs
import json
import re

from graders.records import Flag

_DECLARED = re.compile(rb"""coding["']?[ \t]*[:=][ \t]*["']?([A-Za-z][-\w.]{1,30})""")
_HEAD = 20_000  # bytes in which a declaration is looked for
# A name is a student's choice, so it must be one of these: other codecs of Python are no encodings of text, or are slow
_ALLOWED = re.compile(
    r"(iso8859|cp\d|mac-|koi8|latin|big5|gb|shift_jis|euc_|iso2022|utf-(8|16|32)|hz$|tis-620|ptcp154|kz1048)"
)


def decode(data: bytes, name: str) -> tuple[str, list[Flag]]:
    """The text of a file; half an emoji becomes a question mark, and CRLF and CR become the newline that they mean."""
    text = _marked(data)
    flags = []
    if text is None:
        text = _declared(data)
    if text is None:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "graders-windows-1252")
        told = f"{name} is not UTF-8; it was read as Windows-1252 (cp1252), and special characters may be wrong."
        flags.append(Flag("encoding_guessed", told))
    return plain_text(text), flags


def plain_text(text: str) -> str:
    """Text with newlines alone between lines, and without lone surrogates, which no file can hold."""
    return text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()


def _marked(data: bytes) -> str | None:
    """What a byte order mark or the zero bytes say, or plain UTF-8."""
    found = json.detect_encoding(data)
    try:
        return data.decode(found)
    except UnicodeDecodeError:
        # a file in UTF-16 that was cut in the middle of a character is still UTF-16
        return data.decode(found, "replace") if found.startswith(("utf-16", "utf-32")) else None


def _declared(data: bytes) -> str | None:
    said = _DECLARED.search(data[:_HEAD])
    if said is None:
        return None
    try:
        codec = codecs.lookup(said[1].decode())
        return data.decode(codec.name) if _ALLOWED.match(codec.name) else None
    except (LookupError, UnicodeError):
        return None


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """An error handler: the bytes that are no UTF-8 are read as Windows-1252."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("graders-windows-1252", _as_windows_1252)
