"""The files of a folder, as an opaque set.

Comes in: a folder that somebody else filled. Goes out: its files by relative name, and a flag for each that was not read.
Must not: follow a link, open what is no regular file, or read anything whose size was not looked at before.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from pathlib import Path

from graders.coursework import DEEPEST_FOLDER, LARGEST_FILE_BYTES, LARGEST_SUBMISSION_BYTES
from graders.errors import SubmissionError
from graders.records import Flag

MOST_FILES = 2_000
# What lies beside a submission: two notes of nbgrader's, and a student's wish for a second look
STAMP, SECRET, SECOND_LOOK = NOTES = ("timestamp.txt", "submission_secret.txt", "second-look.txt")
LONGEST_NOTE = 2_000  # bytes
_IGNORED = {".DS_Store", "desktop.ini", "Thumbs.db", *NOTES, ".directory", "Icon\r", ".nbgrader.log"}
_IGNORED_FOLDERS = {
    ".ipynb_checkpoints", "__pycache__", "__MACOSX", ".git", ".venv", "venv", "node_modules", ".vscode", ".idea",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", "$RECYCLE.BIN",
}  # fmt: skip
_KINDS = {stat.S_ISFIFO: "a named pipe", stat.S_ISSOCK: "a socket", stat.S_ISCHR: "a device", stat.S_ISBLK: "a device"}

_Found = tuple[str, Path, os.stat_result]


def read_files(folder: Path, left_out: list[Flag] | None = None) -> dict[str, bytes]:
    """The regular files below a folder by relative name.

    `left_out` is given for a student's folder: it receives a flag for each file that was not read, and why. A folder of
    the instructor's has no limits but the size of a file.

    Raises:
        SubmissionError: a file of the instructor's is larger than 64 MiB.
    """
    found = _walk(folder, left_out)
    if left_out is not None:
        found = _acceptable(found, left_out)
    files = {}
    for relative, path, status in found:
        if status.st_size > LARGEST_FILE_BYTES:
            raise SubmissionError(too_large(relative, status.st_size))
        data = read_regular(path, status.st_size)
        if data is not None:
            files[relative] = data
        elif left_out is not None:
            left_out.append(Flag("file_unreadable", f"{relative} could not be read and was left out."))
    return dict(sorted(files.items()))


def read_handed_in(folder: Path, left_out: list[Flag]) -> dict[str, bytes]:
    """All that is taken of a submission: the files that are read, and the notes that lie beside them."""
    notes = {name: read_regular(folder / name, LONGEST_NOTE) for name in NOTES}
    return read_files(folder, left_out) | {name: data for name, data in notes.items() if data is not None}


def read_note(path: Path) -> str:
    """A short text such as a time, without the white space around it; empty when there is none."""
    return (read_regular(path, LONGEST_NOTE) or b"").decode(errors="replace").strip()


def read_regular(path: Path, size: int) -> bytes | None:
    """At most `size` bytes of a regular file; None when it is none, or may not be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as stream:
        # looked at again: another process may have changed what the name stands for
        return stream.read(size) if stat.S_ISREG(os.fstat(handle).st_mode) else None


def too_large(relative: str, size: int) -> str:
    """The sentence about a file that is not read because of its size."""
    return f"{relative} has {size:,} bytes; at most {LARGEST_FILE_BYTES:,} are accepted. It was not read."


def is_leftover(path: str) -> bool:
    """Whether an editor or a desktop left a file behind, by its name or by a folder that it lies in."""
    *folders, name = path.split("/")
    return name in _IGNORED or name.startswith("._") or not _IGNORED_FOLDERS.isdisjoint(folders)


def _walk(folder: Path, left_out: list[Flag] | None) -> list[_Found]:
    """Regular files, by name; folders that editors and desktops leave behind are passed over."""
    found: list[_Found] = []
    waiting = [(folder, "", 0)]
    while waiting:
        where, prefix, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(where), key=lambda entry: entry.name)
        except OSError as error:
            text = f"The folder {prefix or where.name} could not be read: {error.strerror}."
            _tell(left_out, Flag("file_unreadable", text))
            continue
        for entry in entries:
            relative = prefix + entry.name
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if is_leftover(f"{relative}/"):
                    continue
                if depth < DEEPEST_FOLDER:
                    waiting.append((where / entry.name, f"{relative}/", depth + 1))
                else:
                    _tell(left_out, Flag("file_left_out", f"The folder {relative} lies too deep and was not opened."))
            elif not is_leftover(relative):
                if stat.S_ISREG(status.st_mode):
                    found.append((relative, where / entry.name, status))
                else:
                    _tell(left_out, Flag("link_ignored", _special(relative, status.st_mode)))
    return found


def _tell(left_out: list[Flag] | None, flag: Flag) -> None:
    if left_out is not None:
        left_out.append(flag)


def _special(relative: str, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return f"{relative} is a link and was not followed. Hand in the file itself."
    kind = next((word for is_kind, word in _KINDS.items() if is_kind(mode)), "a special file")
    return f"{relative} is {kind}, not a file, and was not opened."


def _acceptable(found: list[_Found], left_out: list[Flag]) -> list[_Found]:
    """The files of a student that are read, notebooks first so that nothing else takes their place."""
    names = Counter((status.st_dev, status.st_ino) for _, _, status in found)
    kept: list[_Found] = []
    refused: list[str] = []
    total = 0
    for relative, path, status in sorted(found, key=lambda one: (".ipynb" not in one[0].lower(), one[0])):
        if status.st_nlink > names[status.st_dev, status.st_ino]:
            text = f"{relative} is a hard link: the file has another name outside your folder. It was not read; hand in a copy."
            left_out.append(Flag("link_ignored", text))
        elif status.st_size > LARGEST_FILE_BYTES:
            left_out.append(Flag("file_too_large", too_large(relative, status.st_size)))
        elif len(kept) >= MOST_FILES or total + status.st_size > LARGEST_SUBMISSION_BYTES:
            refused.append(relative)
        else:
            kept.append((relative, path, status))
            total += status.st_size
    if refused:
        text = (
            f"{refused[0]} and {len(refused) - 1:,} more files were not read: a submission may have {MOST_FILES:,} files "
            f"and {LARGEST_SUBMISSION_BYTES:,} bytes."
        )
        left_out.append(Flag("file_left_out", text))
    return kept
