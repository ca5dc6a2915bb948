"""A zip archive that was handed in instead of a notebook.

Comes in: its bytes. Goes out: the files in it by name, and a flag for each that was not read. Must not: write anything,
follow a link or a name that leaves the archive, or unpack more than a submission may have.
"""

from __future__ import annotations

import io
import stat
import zipfile

from graders.course.files import MOST_FILES, is_leftover, too_large
from graders.coursework import LARGEST_FILE_BYTES, LARGEST_SUBMISSION_BYTES
from graders.records import Flag


def is_archive(path: str, data: bytes) -> bool:
    """Whether a file is a zip archive by its name and its first bytes."""
    return path.lower().endswith((".zip", ".zip.txt")) and data.startswith(b"PK")


def unpack(name: str, data: bytes) -> tuple[dict[str, bytes], list[Flag]]:
    """The files of one archive. Sizes are counted while reading, whatever the archive says about itself."""
    files: dict[str, bytes] = {}
    flags: list[Flag] = []
    left = LARGEST_SUBMISSION_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for one in archive.infolist()[:MOST_FILES]:
                path = one.filename.replace("\\", "/")
                why = _refused(one, path)
                if one.is_dir() or is_leftover(path):
                    continue
                if why is None:
                    with archive.open(one) as stream:
                        found = stream.read(min(LARGEST_FILE_BYTES, left) + 1)
                    if len(found) > min(LARGEST_FILE_BYTES, left):
                        why = too_large(path, len(found))
                    else:
                        files[path] = found
                        left -= len(found)
                if why is not None:
                    flags.append(Flag("file_left_out", f"In {name}: {why}"))
    except Exception as error:  # zipfile and its decompressors raise a dozen classes for a damaged archive
        told = f"{name} could not be read to its end ({type(error).__name__}: {error})."
        flags.append(Flag("archive_damaged", told))
    return files, flags


def _refused(one: zipfile.ZipInfo, path: str) -> str | None:
    if path.startswith("/") or ":" in path.split("/")[0] or ".." in path.split("/"):
        return f"the name {path!r} leads out of the archive; it was not read."
    if stat.S_ISLNK(one.external_attr >> 16):
        return f"{path} is a link and was not followed."
    if one.flag_bits & 1:
        return f"{path} is locked by a password and was not read."
    if one.file_size > LARGEST_FILE_BYTES:
        return too_large(path, one.file_size)
    return None
