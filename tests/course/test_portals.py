"""Laws of the names in a course page's download: whose a file is, is read from what the page wrote and from nothing else."""

from __future__ import annotations

import pytest

from graders.course.portals import Parcel, parcels
from graders.errors import CourseError


def sort(*names: str, listed: bytes = b"") -> tuple[list[Parcel], list[str]]:
    """The parcels of a download with these files."""
    return parcels(names, lambda _: listed)


@pytest.mark.parametrize(
    ("name", "portal", "who", "number", "handed_in"),
    [
        ("onestudent_340934_208490284_ps1.ipynb", "Canvas", "onestudent", "340934", "ps1.ipynb"),
        ("onestudent_LATE_340934_208490284_ps1-2.ipynb", "Canvas", "onestudent", "340934", "ps1-2.ipynb"),
        ("one_student_34_20_week_3_4_ps1.ipynb", "Canvas", "one_student", "34", "week_3_4_ps1.ipynb"),
        ("One Student_657737_assignsubmission_file/ps1.ipynb", "Moodle", "One Student", "657737", "ps1.ipynb"),
        ("One Student_657737_assignsubmission_file_/sub/a.py", "Moodle", "One Student", "657737", "sub/a.py"),
        ("One Student_657737_assignsubmission_file_ps1.ipynb", "Moodle", "One Student", "657737", "ps1.ipynb"),
        ("Ö'Student-One_7_assignsubmission_file_/a_1_2_b", "Moodle", "Ö'Student-One", "7", "a_1_2_b"),
    ],
)
def test_each_page_writes_names_its_own_way(name: str, portal: str, who: str, number: str, handed_in: str) -> None:
    """Canvas and Moodle, with folders and without, late and not, as their source code makes the names."""
    found, unknown = sort(name)
    assert unknown == []
    assert [(one.portal, one.name, one.number, one.files) for one in found] == [
        (portal, who, number, {name: handed_in})
    ]
    assert found[0].late == ("LATE" in name)


def test_what_a_student_calls_a_file_makes_nobody_else_its_owner() -> None:
    """The first place that the page wrote decides, whatever follows in the file's own name."""
    names = (
        "onestudent_11_21_twostudent_12_22_ps1.ipynb",
        "One Student_11_assignsubmission_file_Two Student_12_assignsubmission_file_ps1.ipynb",
    )
    found, unknown = sort(*names)
    assert ({one.number for one in found}, unknown) == ({"11"}, [])


def test_the_time_and_the_secret_of_a_hand_in_are_not_a_students_to_upload() -> None:
    """A file that passes for nbgrader's own notes is left out, so that nobody hands in earlier than they did."""
    found, _ = sort(
        *(f"onestudent_1_{n}_{name}" for n, name in enumerate(["timestamp.txt", "submission_secret.txt", "a"]))
    )
    assert list(found[0].files.values()) == ["a"]


def test_a_folder_around_everything_is_looked_through() -> None:
    """A download that was unpacked into a folder of its own reads like the archive; what desktops leave is passed over."""
    names = ("subs/onestudent_1_2_ps1.ipynb", "subs/twostudent_3_4_ps1.ipynb", "__MACOSX/x", "subs/.DS_Store")
    assert sort(*names)[1] == []
    assert [one.name for one in sort(*names)[0]] == ["onestudent", "twostudent"]


def test_what_is_nobodys_is_named() -> None:
    """Text entries, anonymous names and other files are listed, not guessed at."""
    names = [
        "onestudent_1_text.html",
        "anon_x7_5_ps1.ipynb",
        "One_2_assignsubmission_onlinetext_/t.html",
        "read me.txt",
    ]
    assert sort(*names) == ([], names)


LIST = b"""\
submission_1:
  :submitters:
  - :name: One Student
    :sid: '100'
    :email: one@school.example
  :created_at: 2026-10-20 13:00:00.5 +02:00
submission_2:
  :submitters:
  - :name: Two Student
    :sid: '200'
  - :name: Three Student
    :email: three@school.example
  :created_at: 2026-10-20 11:00:00
"""


def test_gradescope_says_who_handed_in_what_and_when() -> None:
    """Its list names the people of each folder, a group's all with the same files, and the time."""
    names = ("assignment_9_export/submission_metadata.yml",)
    names += tuple(f"assignment_9_export/{name}" for name in ("submission_1/a", "submission_2/b/c", "submission_3/d"))
    found, unknown = sort(*names, listed=LIST)
    assert unknown == ["assignment_9_export/submission_3/d"]
    assert [(one.name, one.login, one.email, *one.files.values(), one.submitted) for one in found] == [
        ("One Student", "100", "one@school.example", "a", "2026-10-20T13:00:00.500000+02:00"),
        ("Two Student", "200", "", "b/c", "2026-10-20T11:00:00+00:00"),
        ("Three Student", "", "three@school.example", "b/c", "2026-10-20T11:00:00+00:00"),
    ]


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"a: 1", b"a: {b: [}", b"!!python/object/apply:os.system ['false']", b"[" * 9_000, b"\xff\xfe\xfa"],
)
def test_a_damaged_list_is_told(text: bytes) -> None:
    """What is no list of submissions is an error that says so, and runs nothing."""
    with pytest.raises(CourseError, match="Gradescope's list"):
        sort("submission_metadata.yml", "submission_1/a", listed=text)
