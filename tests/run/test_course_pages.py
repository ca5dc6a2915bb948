"""Laws of collecting from a course page's download: real archives and folders, hostile ones among them."""

from __future__ import annotations

import sqlite3
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from graders import config
from graders.config import Settings
from graders.errors import CourseError
from graders.run import attempts, collecting

# The columns of nbgrader's list of students that are read
LIST = "create table student (id, last_name, first_name, email, lms_user_id); create table grade (id);"


def course(folder: Path, *people: tuple[str, ...]) -> Settings:
    """A course with a list of students: id, last name, first name, email and the course page's number."""
    (folder / "course_config.py").write_text('c.CourseDirectory.course_id = "small"')
    with sqlite3.connect(folder / "gradebook.db") as book:
        book.executescript(LIST)
        book.executemany("insert into student values (?, ?, ?, ?, ?)", people)
    return config.load(folder)


def packed(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """A zip archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def collected(folder: Path) -> dict[str, str]:
    """What lies in `submitted/`, by name."""
    root = folder / "submitted"
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


PEOPLE = [
    ("student-01", "Student", "One", "one@school.example", "11"),
    ("student-02", "Student", "Two", "", ""),
    ("student-03", "Student", "Three", "", ""),
    ("student-04", "Student", "Three", "", ""),
]


@pytest.mark.parametrize("as_folder", [False, True])
def test_who_is_meant_is_read_from_the_courses_list(tmp_path: Path, as_folder: bool) -> None:
    """By the page's number, by an address or by the name; who could be two people, or nobody, is listed and not collected."""
    settings = course(tmp_path, *PEOPLE)
    download = packed(
        tmp_path / "subs.zip",
        {
            "whatever_11_1_ps1.ipynb": "by number",
            "studenttwo_99_2_ps1.ipynb": "by name",
            "studentthree_98_3_ps1.ipynb": "two people",
            "stranger_97_4_ps1.ipynb": "nobody",
        },
    )
    if as_folder:
        with zipfile.ZipFile(download) as archive:
            archive.extractall(tmp_path / "subs")
        download = tmp_path / "subs"
    found = collecting.collect(settings, "ps1", download)
    assert collected(tmp_path) == {"student-01/ps1/ps1.ipynb": "by number", "student-02/ps1/ps1.ipynb": "by name"}
    assert [one.partition(" (")[0] for one in found.unknown] == ["stranger, number 97", "studentthree, number 98"]
    assert {one.source for one in attempts.read(tmp_path, "student-01", "ps1")} == {"Canvas"}


def test_without_a_list_people_are_called_as_the_page_calls_them(tmp_path: Path) -> None:
    """A course that lists no names takes the page's; two people of one name are told, and neither is taken for the other."""
    settings = course(tmp_path, ("auto", "", "", "", ""))
    names = ("One Student_7", "Two Student_8", "Two Student_9")
    download = packed(tmp_path / "m.zip", {f"{name}_assignsubmission_file/ps1.ipynb": name for name in names})
    found = collecting.collect(settings, "ps1", download)
    assert collected(tmp_path) == {"One Student/ps1/ps1.ipynb": "One Student_7"}
    assert len(found.unknown) == 2


def test_a_time_that_the_page_tells_is_the_time_of_hand_in(tmp_path: Path) -> None:
    """Gradescope's time is what lateness is computed from, and decides which of two is newer."""
    settings = course(tmp_path, *PEOPLE)
    text = (
        "submission_1:\n  :submitters:\n  - :email: ONE@school.example\n  :created_at: 2026-10-20 {hour}:00:00 +02:00\n"
    )
    for hour, answer in ((14, "first"), (15, "second"), (13, "late export of an early one")):
        listed = text.replace("{hour}", str(hour))
        download = packed(tmp_path / "g.zip", {"e/submission_metadata.yml": listed, "e/submission_1/ps1.ipynb": answer})
        collecting.collect(settings, "ps1", download)
    assert collected(tmp_path) == {
        "student-01/ps1/ps1.ipynb": "second",
        "student-01/ps1/timestamp.txt": "2026-10-20 13:00:00.000000 UTC",
    }


def test_an_archive_writes_nothing_outside_and_no_more_than_a_submission(tmp_path: Path) -> None:
    """Names that lead out, links and bombs are left out with a reason; the rest of that student and all others are collected."""
    settings = course(tmp_path, *PEOPLE)
    bomb = tmp_path / "zeros"
    with bomb.open("wb") as file:
        file.truncate(65 * 2**20)
    link = zipfile.ZipInfo("One Student_1_assignsubmission_file/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    download = tmp_path / "hostile.zip"
    with zipfile.ZipFile(download, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("One Student_1_assignsubmission_file/ps1.ipynb", "good")
        archive.writestr("One Student_1_assignsubmission_file/../../out", "bad")
        archive.writestr("../../Two Student_2_assignsubmission_file/out", "bad")
        archive.writestr(link, "/etc/passwd")
        archive.write(bomb, "One Student_1_assignsubmission_file/bomb")
        archive.writestr("Two Student_2_assignsubmission_file/ps1.ipynb", "good")
    found = collecting.collect(settings, "ps1", download)
    assert collected(tmp_path) == {"student-01/ps1/ps1.ipynb": "good", "student-02/ps1/ps1.ipynb": "good"}
    assert found.unknown == ("../../Two Student_2_assignsubmission_file/out",)
    told = " ".join(one.text for one in attempts.read(tmp_path, "student-01", "ps1")[0].flags)
    for why in ("leads out of the archive", "is a link", "at most 67,108,864 are accepted"):
        assert why in told


@pytest.mark.parametrize("names", [["x" * 300], ["a", "a/b"]])
def test_what_cannot_be_stored_takes_the_place_of_nothing(tmp_path: Path, names: list[str]) -> None:
    """Names that no disk holds cost that student this submission, told, and nobody else anything."""
    settings = course(tmp_path, *PEOPLE)
    collecting.collect(
        settings, "ps1", packed(tmp_path / "1.zip", {"One Student_1_assignsubmission_file/ps1.ipynb": "old"})
    )
    bad = {f"One Student_1_assignsubmission_file/{name}": "new" for name in names}
    good = {"Two Student_2_assignsubmission_file/ps1.ipynb": "good"}
    found = collecting.collect(settings, "ps1", packed(tmp_path / "2.zip", bad | good))
    assert [(one.student, one.taken, one.problem) for one in found.students] == [
        ("student-01", False, True),
        ("student-02", True, False),
    ]
    assert collected(tmp_path) == {"student-01/ps1/ps1.ipynb": "old", "student-02/ps1/ps1.ipynb": "good"}


@pytest.mark.parametrize("data", [b"", b"PK\3\4 no archive", b"<html>log in</html>"])
def test_what_is_no_download_is_told(tmp_path: Path, data: bytes) -> None:
    """A file that is no archive, such as the page of a log-in, is an error that says so."""
    (tmp_path / "subs.zip").write_bytes(data)
    with pytest.raises(CourseError, match="cannot be read as a folder or a zip archive"):
        collecting.collect(course(tmp_path), "ps1", tmp_path / "subs.zip")
