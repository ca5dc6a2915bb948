"""Submissions from a course page's download: a folder or a zip of Canvas, Moodle or Gradescope.

Comes in: a path and the course's list of students. Goes out: an `Arrived` for each of its students, and what was not understood.
Must not: unpack anything outside, or more than a submission may have; or guess whose a file is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from graders.config import Settings
from graders.course.archives import gathered, opened
from graders.course.files import STAMP
from graders.course.portals import Parcel, parcels
from graders.records import Flag
from graders.results.classbook import Person, people
from graders.results.times import utc
from graders.run.arrivals import Arrived


def arrivals(settings: Settings, download: Path, unknown: list[str]) -> Iterator[Arrived]:
    """The submissions of a download, one by one. `unknown` receives every name that no student could be read from.

    Raises:
        CourseError: it is neither a folder nor a zip archive, or cannot be read.
    """
    listed = people(settings.course, settings.db_url)
    with opened(download) as source:
        found, strangers = parcels(source.names(), source.read)
        unknown += [_readable(name) for name in strangers]
        whose = [_student(one, listed) for one in found]
        often = Counter(student for student in whose if student)
        for parcel, student in zip(found, whose, strict=True):
            if student is None or often[student] > 1:
                why = "as another one is" if student else "which the course's list does not tell"
                who = student or "somebody"
                unknown.append(f"{_called(parcel)} ({parcel.portal}): this is {who}, {why}.")
                continue
            left_out: list[Flag] = []
            files = gathered(source, parcel.files, left_out)
            when = utc(parcel.submitted)
            stamp = f"{when:%Y-%m-%d %H:%M:%S.%f} UTC" if when else None  # as nbgrader writes it
            if stamp:
                files[STAMP] = stamp.encode()
            if parcel.late and when is None:
                text = f"{parcel.portal} says that this is late, and not by how much; no penalty was computed."
                left_out.append(Flag("late_unknown", text))
            yield Arrived(student, files, stamp, parcel.portal, tuple(left_out), _empty(files, parcel))


def _empty(files: dict[str, bytes], parcel: Parcel) -> str | None:
    if set(files) - {STAMP}:
        return None
    return f"{parcel.portal}'s download has no file of theirs that could be read."


def _student(parcel: Parcel, listed: Sequence[Person]) -> str | None:
    """Who of the course's list this is; where the list knows no names, who the page says it is."""
    exact = [
        one.student
        for one in listed
        if one.student in {parcel.login, parcel.email, parcel.name} - {""}
        or (one.lms_user_id and one.lms_user_id in {parcel.login, _canvas_number(parcel)})
        or (one.email and one.email.casefold() == parcel.email.casefold())
    ]
    name = _squeezed(parcel.name)
    alike = [
        one.student
        for one in listed
        if name and name in {_squeezed(one.first_name + one.last_name), _squeezed(one.last_name + one.first_name)}
    ]
    for fitting in (exact, alike):
        if fitting:
            return fitting[0] if len(set(fitting)) == 1 else None
    bare = all(one == Person(one.student) for one in listed)
    return (parcel.login or parcel.email or parcel.name) if bare else None


def _canvas_number(parcel: Parcel) -> str:
    """The page's number of a person; Moodle's is another one for each assignment."""
    return parcel.number if parcel.portal == "Canvas" else ""


def _squeezed(name: str) -> str:
    return "".join(one for one in name.casefold() if one.isalnum())


def _called(parcel: Parcel) -> str:
    number = f", number {parcel.number}" if parcel.number else ""
    return _readable(f"{parcel.name or parcel.email or parcel.login}{number}")


def _readable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()
