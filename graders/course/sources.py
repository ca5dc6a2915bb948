"""The Python files that students complete, whatever they are called and however they are encoded.

Comes in: the files that were handed in, and those that were expected. Goes out: the same files, each expected one under its
name and in an encoding that Python reads, and flags. Must not: change a file that Python can read.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping

from graders.course.alignment import binds
from graders.course.decoding import decode
from graders.coursework import Assignment
from graders.records import Flag

_ENDINGS = (".py", ".py.txt", ".txt")


def with_answer_files(files: Mapping[str, bytes], assignment: Assignment) -> tuple[dict[str, bytes], list[Flag]]:
    """The files with the answer files found and readable."""
    found, flags = dict(files), []
    for path, cell in assignment.answer_files.items():
        if path not in found and (other := _by_names(binds(cell.released), files, assignment)):
            found[path] = found.pop(other)
            flags.append(
                Flag("file_renamed", f"Your file is called {other!r}; {path} was expected. It was graded.", path)
            )
        if path in found and not _readable(found[path]):
            text, notes = decode(found[path], path)
            found[path] = text.encode()
            flags += notes or [
                Flag("encoding_changed", f"{path} is not in UTF-8, which Python expects; it was converted.")
            ]
    return found, flags


def _by_names(wanted: set[str], files: Mapping[str, bytes], assignment: Assignment) -> str | None:
    """The only other file that defines all that the expected one was handed out with."""
    fitting = [
        path
        for path, data in files.items()
        if wanted
        and path not in assignment.files
        and path.lower().endswith(_ENDINGS)
        and wanted <= binds(decode(data, path)[0])
    ]
    return fitting[0] if len(fitting) == 1 else None


def _readable(data: bytes) -> bool:
    """Whether Python reads these bytes as text, by its own rules: UTF-8, or what the first lines declare (PEP 263)."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return False
    return b"\0" not in data
