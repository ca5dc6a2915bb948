"""What is packed together: a zip archive that was handed in instead of a notebook, or a download of a whole class.

Comes in: bytes of an archive, or the path of an archive or a folder. Goes out: the files in it by name, and a flag for each that was
not read. Must not: write anything, follow a link or a name that leads out, or unpack more than a submission may have.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from graders.course.files import MOST_FILES, is_leftover, read_regular, too_large
from graders.coursework import LARGEST_FILE_BYTES, LARGEST_SUBMISSION_BYTES
from graders.errors import CourseError
from graders.records import Flag


class Archive:
    """A zip archive, read file by file. Sizes are counted while reading, whatever the archive says about itself."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._infos = {one.filename.replace("\\", "/"): one for one in archive.infolist() if not one.is_dir()}

    def names(self) -> list[str]:
        """The names of its files."""
        return list(self._infos)

    def read(self, name: str, most: int = LARGEST_FILE_BYTES) -> bytes | str:
        """A file of at most so many bytes, or the sentence why it is not read."""
        one = self._infos[name]
        if why := _refused(one, name):
            return why
        try:
            with self._archive.open(one) as stream:
                found = stream.read(most + 1)
        except Exception as error:  # zipfile and its decompressors raise a dozen classes for a damaged archive
            return f"{name} could not be read ({type(error).__name__}: {error})."
        return found if len(found) <= most else too_large(name, len(found))


class Folder:
    """A folder on disk, read file by file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """The names of all that lies in it, at any depth; links are not entered."""
        walked = os.walk(self._folder)
        return sorted(
            (Path(where) / name).relative_to(self._folder).as_posix() for where, _, files in walked for name in files
        )

    def read(self, name: str, most: int = LARGEST_FILE_BYTES) -> bytes | str:
        """A file of at most so many bytes, or the sentence why it is not read."""
        found = read_regular(self._folder / name, most + 1)
        if found is None:
            return f"{name} is a link or no file, or may not be read; it was left out."
        return found if len(found) <= most else too_large(name, (self._folder / name).stat().st_size)


@contextmanager
def opened(path: Path) -> Iterator[Archive | Folder]:
    """A download as it lies on disk. Raises `CourseError` when it is neither a folder nor a zip archive."""
    if path.is_dir():
        yield Folder(path)
        return
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise CourseError(f"{path} cannot be read as a folder or a zip archive: {error}. Download it again.") from None
    with archive:
        yield Archive(archive)


def gathered(source: Archive | Folder, wanted: Mapping[str, str], left_out: list[Flag]) -> dict[str, bytes]:
    """Some files of a download under the names that `wanted` gives them, no more than one submission may have."""
    files: dict[str, bytes] = {}
    left = LARGEST_SUBMISSION_BYTES
    for name, path in list(wanted.items())[:MOST_FILES]:
        found: bytes | str = f"the name {path!r} leads out of the archive; it was not read."
        if not _leads_out(path):
            found = source.read(name, min(LARGEST_FILE_BYTES, left))
        if isinstance(found, str):
            left_out.append(Flag("file_left_out", found))
        else:
            files[path] = found
            left -= len(found)
    if (more := len(wanted) - MOST_FILES) > 0:
        left_out.append(Flag("file_left_out", f"{more:,} more files were not read."))
    return files


def is_archive(path: str, data: bytes) -> bool:
    """Whether a file is a zip archive by its name and its first bytes."""
    return path.lower().endswith((".zip", ".zip.txt")) and data.startswith(b"PK")


def unpack(name: str, data: bytes) -> tuple[dict[str, bytes], list[Flag]]:
    """The files of one archive that a student handed in."""
    left_out: list[Flag] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            source = Archive(archive)
            wanted = {path: path for path in source.names() if not is_leftover(path)}
            files = gathered(source, wanted, left_out)
    except Exception as error:  # as above
        told = f"{name} could not be read to its end ({type(error).__name__}: {error})."
        return {}, [Flag("archive_damaged", told)]
    return files, [msgspec.structs.replace(one, text=f"In {name}: {one.text}") for one in left_out]


def _leads_out(path: str) -> bool:
    return path.startswith("/") or ":" in path.split("/")[0] or ".." in path.split("/") or "\0" in path


def _refused(one: zipfile.ZipInfo, path: str) -> str | None:
    if stat.S_ISLNK(one.external_attr >> 16):
        return f"{path} is a link and was not followed."
    if one.flag_bits & 1:
        return f"{path} is locked by a password and was not read."
    if one.file_size > LARGEST_FILE_BYTES:
        return too_large(path, one.file_size)
    return None
