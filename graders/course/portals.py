"""What a course page's download is called inside: whose each file is, as Canvas, Moodle and Gradescope write it.

Comes in: the names of all files of one download. Goes out: a `Parcel` for each person, and the names that are none of theirs. Must
not: read a file but Gradescope's list, or take a part of what a student called a file for a part of somebody's name.

Canvas (lib/content_zipper.rb): `lastfirst_LATE_USER_FILE_name.ipynb`, the name without any `_DIGITS_`, so that the first
such place is Canvas's own. Moodle (mod/assign/classes/downloader.php): `First Last_NUMBER_assignsubmission_file/name.ipynb`, or
one flat name with `_` for `/`; a person's name has no `_`. Gradescope: `submission_metadata.yml` beside folders `submission_NUMBER`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml

from graders.course.files import SECRET, STAMP, is_leftover
from graders.errors import CourseError
from graders.records import Record

METADATA = "submission_metadata.yml"
_CANVAS = re.compile(r"(?P<name>.+?)_(?P<late>LATE_)?(?P<number>\d+)_\d+_(?P<rest>.+)", re.DOTALL)
_MOODLE = re.compile(
    r"(?P<name>[^_/]+)_(?P<number>\d+)_assignsubmission_(?P<kind>file|onlinetext)_?/?(?P<rest>.+)", re.DOTALL
)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # thirty times as fast where it is built


class Parcel(Record):
    """The files of one person in a download: by their names there, the names under which they were handed in.

    What the page does not say is empty. `number` is the page's own for this person, `login` the one of their school.
    """

    portal: str
    name: str
    number: str = ""
    login: str = ""
    email: str = ""
    submitted: str | None = None
    late: bool = False
    files: dict[str, str] = {}  # noqa: RUF012  (msgspec copies defaults)


def parcels(names: Iterable[str], read: Callable[[str], bytes | str]) -> tuple[list[Parcel], list[str]]:
    """Sort the files of a download by person. `read` is asked for Gradescope's list alone.

    Raises:
        CourseError: Gradescope's list cannot be read.
    """
    names = [name for name in names if not is_leftover(name)]
    names_of = _without_top(names)
    lists = [name for name, short in names_of.items() if short == METADATA]
    if lists:
        return _gradescope(names_of, read(lists[0]))
    found: dict[tuple[str, str, str], Parcel] = {}
    unknown = []
    for name, short in names_of.items():
        one = _canvas_or_moodle(short)
        if one is None:
            unknown.append(name)
            continue
        parcel, rest = one
        key = (parcel.portal, parcel.name, parcel.number)
        before = found.get(key, parcel)
        found[key] = _with(before, name, rest)
    return list(found.values()), unknown


def _canvas_or_moodle(short: str) -> tuple[Parcel, str] | None:
    if match := _MOODLE.fullmatch(short):
        if match["kind"] == "file":
            return Parcel("Moodle", match["name"], match["number"]), match["rest"]
    elif "/" not in short and (match := _CANVAS.fullmatch(short)):
        return Parcel("Canvas", match["name"], match["number"], late=bool(match["late"])), match["rest"]
    return None


def _with(parcel: Parcel, name: str, rest: str) -> Parcel:
    """The parcel with one more file, unless it passes for what only the exchange may say: a time, a secret."""
    more = {} if rest in (STAMP, SECRET) else {name: rest}
    return msgspec.structs.replace(parcel, files=parcel.files | more)


def _without_top(names: list[str]) -> dict[str, str]:
    """Each name without the folder that all of them lie in, as when an archive was unpacked into one of its own."""
    tops = {name.partition("/")[0] for name in names if "/" in name}
    if len(tops) != 1 or not all("/" in name for name in names) or _MOODLE.match(f"{next(iter(tops))}/x"):
        return {name: name for name in names}
    return {name: name.partition("/")[2] for name in names}


def _gradescope(names: Mapping[str, str], data: bytes | str) -> tuple[list[Parcel], list[str]]:
    files: dict[str, dict[str, str]] = {}
    unknown = []
    listed = _listed(data)
    for name, short in names.items():
        folder, _, rest = short.partition("/")
        if rest and folder in listed:
            files.setdefault(folder, {})[name] = rest
        elif short != METADATA:
            unknown.append(name)
    found = []
    for folder, people in listed.items():
        for person in people:
            parcel = person
            for name, rest in files.get(folder, {}).items():
                parcel = _with(parcel, name, rest)
            found.append(parcel)
    return found, unknown


def _listed(data: bytes | str) -> dict[str, list[Parcel]]:
    """Gradescope's list: by folder, the people who handed it in together."""
    try:
        if isinstance(data, str):
            raise ValueError(data)
        made = yaml.load(data, _LOADER)
        return {str(folder): _submitters(one) for folder, one in made.items()}
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise CourseError(
            f"{METADATA} cannot be read as Gradescope's list of submissions: {error!r}. Export the submissions again."
        ) from None


def _submitters(one: Mapping[str, Any]) -> list[Parcel]:
    when = one.get(":created_at")
    if isinstance(when, datetime):
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
    text = when.isoformat() if isinstance(when, datetime) else None
    return [
        Parcel(
            "Gradescope",
            str(person.get(":name") or ""),
            login=str(person.get(":sid") or ""),
            email=str(person.get(":email") or ""),
            submitted=text,
        )
        for person in one[":submitters"]
    ]
