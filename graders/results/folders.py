"""The folders of results and submissions: safe names, atomic writing, canonical hashes.

Comes in: names that students and instructors chose, bytes. Goes out: paths inside the course, files that are whole or
absent, hex SHA-256. Must not: follow a link, block on a FIFO, or build a path that leaves the course.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from graders.coursework import DEEPEST_FOLDER, LARGEST_FILE_BYTES, LARGEST_SUBMISSION_BYTES
from graders.errors import FullError, SubmissionError
from graders.kernels import syscalls

_CHUNK = 1 << 20
_DRAWN = 8  # letters that tempfile draws
_OLD = ".replaced-by-graders"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def handed_in(course: Path, student: str, assignment: str) -> Path:
    """The folder of one submission."""
    return folder(course, "submitted", student, assignment)


def subfolders(root: Path) -> list[str]:
    """Names of the folders right below one, links not among them; none if it is not there."""
    if not root.is_dir():
        return []
    with os.scandir(root) as entries:
        return sorted(one.name for one in entries if one.is_dir(follow_symlinks=False))


def folder(course: Path, room: str, student: str, assignment: str) -> Path:
    """`course/room/student/assignment`; ids are opaque, but each must be the name of one folder.

    Raises:
        SubmissionError: an id is empty, a dot name, or contains a path separator or a null character.
    """
    for name in (student, assignment):
        if name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
            raise SubmissionError(f"{name!r} cannot be the name of a folder, and every student and assignment has one.")
    return course / room / student / assignment


@contextmanager
def writing(path: Path, size: int = 0) -> Iterator[None]:
    """Tell when there is no room for what is written to `path`, of `size` bytes if that is known.

    Raises:
        FullError: the disk is full, or who writes has used up what they may.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise FullError(no_room(error, path, size)) from error
        raise


def is_full(error: OSError) -> bool:
    """Whether an error says that there is no room."""
    return error.errno in _FULL


def no_room(error: OSError, path: Path, size: int = 0) -> str:
    """What there is to say of it."""
    wanted = f"{size:,} bytes are to be written, and " if size else ""
    return (
        f"{path} could not be written: {error.strerror}. {wanted[:1].upper()}{wanted[1:]}{free_bytes(path):,} bytes are free there. "
        "What was stored before is whole. Next step: make room, then run the same command again; it goes on from there."
    )


def free_bytes(path: Path) -> int:
    """How much fits on the disk on which a path is, or will be."""
    there = next(one for one in (path, *path.absolute().parents) if one.exists())
    return shutil.disk_usage(there).free


def replace_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Put a folder with exactly these files in the place of `target`: all of them or none.

    A process killed meanwhile leaves the old folder or the new one, and another with a dot name, which `mend_folder` removes.

    Raises:
        FullError: there is no room for it.
    """
    with writing(target, sum(map(len, files.values()))):
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _fill(fresh, target, files)
            fresh.chmod(0o750)  # holds hidden tests: nothing for other users of the machine
            _take_place(fresh, target)
        finally:
            _clear(fresh, target)


def _fill(fresh: Path, target: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = fresh / name
        if fresh.resolve() not in path.resolve().parents:
            raise SubmissionError(f"{name!r} leaves the folder {target}. Name files inside it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _take_place(fresh: Path, target: Path) -> None:
    if not target.exists():
        fresh.rename(target)
        return
    try:
        syscalls.exchange(str(fresh), str(target))
    except OSError:  # a network file system, mostly: two renames, between which the old one has a dot name
        target.rename(fresh / _OLD)
        fresh.rename(target)
        shutil.rmtree(target / _OLD, ignore_errors=True)


def mend_folder(target: Path) -> None:
    """Remove what `replace_folder` left beside `target` when it failed or was killed; an old folder that has no successor comes back.

    Nobody else may be replacing it meanwhile.
    """
    prefix, length = f".{target.name}.", len(target.name) + 2 + _DRAWN
    for name in subfolders(target.parent):
        if name.startswith(prefix) and len(name) == length:
            _clear(target.parent / name, target)
    _clear(target / _OLD, target)


def _clear(leftover: Path, target: Path) -> None:
    if (leftover / _OLD).is_dir() and not target.exists():
        (leftover / _OLD).rename(target)
    shutil.rmtree(leftover, ignore_errors=True)


def write_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part. Raises `FullError` when there is no room."""
    with writing(path, len(data)):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def leftovers(path: Path) -> list[Path]:
    """What processes that were killed in `write_file` left beside `path`; or a part of what one writes now."""
    prefix, length = f".{path.name[:100]}.", len(path.name[:100]) + 2 + _DRAWN
    with os.scandir(path.parent) as entries:
        return [path.parent / one.name for one in entries if one.name.startswith(prefix) and len(one.name) == length]


def hash_files(files: Mapping[str, bytes]) -> str:
    """Canonical hash of a set of files: kind, name and content, each after its length, in the order of names."""
    return _digest((os.fsencode(name), b"file", len(data), iter((data,))) for name, data in files.items())


def hash_submission(folder: Path) -> str:
    """Canonical hash of a folder, equal to `hash_files` of its regular files.

    Links enter with where they point; other special files, what may not be read and folders below the 16th level by
    kind and name alone; a file beyond what is read of a submission by its size. Memory stays flat, and time bounded.
    """
    if folder.is_symlink():
        return _digest([_link(os.fsencode(folder), b"")])
    return _digest(_entries(folder))


_Entry = tuple[bytes, bytes, int, Iterator[bytes]]


def _digest(entries: Iterable[_Entry]) -> str:
    total = hashlib.sha256(b"graders files 1\n")
    left = LARGEST_SUBMISSION_BYTES
    for name, kind, size, chunks in sorted(entries, key=lambda entry: entry[0]):
        if kind == b"file" and size > min(LARGEST_FILE_BYTES, left):
            kind, chunks = b"large", iter(())
        elif kind == b"file":
            left -= size
        for part in (kind, name):
            total.update(len(part).to_bytes(8, "big") + part)
        total.update(size.to_bytes(8, "big"))
        for chunk in chunks:
            total.update(chunk)
    return total.hexdigest()


def _entries(folder: Path) -> Iterator[_Entry]:
    waiting = [(os.fsencode(folder), b"", 0)]
    while waiting:
        where, prefix, depth = waiting.pop()
        try:
            entries = list(os.scandir(where))
        except OSError:
            yield prefix, b"unreadable", 0, iter(())
            continue
        for entry in entries:
            name = prefix + entry.name
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode) and depth < DEEPEST_FOLDER:
                waiting.append((entry.path, name + b"/", depth + 1))
            elif stat.S_ISREG(info.st_mode):
                yield name, b"file", info.st_size, _chunks(entry.path, info.st_size)
            elif stat.S_ISLNK(info.st_mode):
                yield _link(entry.path, name)
            else:
                yield name, b"special", 0, iter(())


def _link(path: bytes, name: bytes) -> _Entry:
    goal = os.readlink(path)  # noqa: PTH115 - bytes in, bytes out
    return name, b"link", len(goal), iter((goal,))


def _chunks(path: bytes, size: int) -> Iterator[bytes]:
    """The content of a regular file, at most `size` bytes: the length was hashed before it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    with os.fdopen(handle, "rb") as file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK))):
            size -= len(chunk)
            yield chunk
