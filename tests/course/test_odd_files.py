"""Laws of files that no clone carries: links, pipes, sparse and deep folders, archives, strange names; each is made here."""

from __future__ import annotations

import io
import os
import socket
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from graders.course import files as reading
from graders.course.archives import unpack
from graders.course.files import read_files
from graders.coursework import DEEPEST_FOLDER, LARGEST_FILE_BYTES
from graders.records import Flag, Status
from graders.results import feedback, report
from graders.results.folders import hash_files, hash_submission
from graders.run import grading, pipeline
from graders.run.submissions import read_job

SUBMISSIONS = Path(__file__).resolve().parents[1] / "submissions"
GOOD = (SUBMISSIONS / "F6-extra-files" / "files" / "lesson.ipynb").read_bytes()
IDS = [
    "a b",
    "o'neil",
    'say "hi"',
    "[x]*?",
    "zoé",
    "-rf",
    "%2e%2e",
    "me@home",
    "$(id)",
    "{a,b}",
    "..hidden",
    "\\d+",
    "=1+1",
]


def hand_in(course: Path, student: str = "student-01") -> Path:
    """A folder with a good notebook, handed in."""
    where = course / "submitted" / student / "ps1"
    where.mkdir(parents=True)
    (where / "lesson.ipynb").write_bytes(GOOD)
    return where


def told(left_out: list[Flag]) -> list[tuple[str, str]]:
    """Rule and first word of each flag."""
    return sorted((flag.name, flag.text.split(" ")[0]) for flag in left_out)


def test_nothing_is_followed_and_everything_is_named(tmp_path: Path, small_lesson, shared_zygote) -> None:
    """F9: links, hard links, pipes, sockets and a sparse file of terabytes cost nothing but themselves."""
    where = hand_in(tmp_path)
    outside = tmp_path / "gradebook.db"
    outside.write_bytes(b"secret")
    (where / "link.db").symlink_to(outside)
    (where / "folder").symlink_to(tmp_path)
    os.link(outside, where / "hard.db")
    (where / "own.txt").write_text("mine")
    os.link(where / "own.txt", where / "own-again.txt")
    os.mkfifo(where / "pipe.ipynb")
    here = socket.socket(socket.AF_UNIX)
    here.bind(str(where / "socket"))
    here.close()
    with (where / "sparse.bin").open("wb") as stream:
        stream.truncate(4 * 2**40)
    started = time.monotonic()
    job = read_job(tmp_path, "student-01", small_lesson.assignment)
    assert time.monotonic() - started < 5
    assert set(job.files) == {"lesson.ipynb", "own.txt", "own-again.txt"}
    assert told(list(job.left_out)) == [
        ("file_too_large", "sparse.bin"),
        *(("link_ignored", name) for name in ("folder", "hard.db", "link.db", "pipe.ipynb", "socket")),
    ]
    found = pipeline.grade(job, small_lesson, shared_zygote).report
    assert (found.status, found.score) == (Status.graded, 5)
    assert set(job.left_out) <= set(found.flags)


def test_a_notebook_that_is_too_large_is_told_by_its_size(tmp_path: Path, small_lesson, shared_zygote) -> None:
    """F9: without any other notebook there is no score, and the page names the file and its size."""
    where = hand_in(tmp_path)
    with (where / "lesson.ipynb").open("wb") as stream:
        stream.truncate(5 * 2**30)
    job = read_job(tmp_path, "student-01", small_lesson.assignment)
    found = pipeline.grade(job, small_lesson, shared_zygote).report
    assert (found.status, found.score) == (Status.not_graded, None)
    assert f"lesson.ipynb has {5 * 2**30:,} bytes; at most {LARGEST_FILE_BYTES:,}" in found.reason
    assert "What arrived" in feedback.render(found, ["lesson"])


def test_a_folder_that_is_a_link_is_not_entered(tmp_path: Path, small_lesson, shared_zygote) -> None:
    """F9: a hand-in folder that leads to another student's is not graded, and says why; so is one that leads nowhere."""
    hand_in(tmp_path, "student-02")
    for student, goal in (
        ("student-01", tmp_path / "submitted" / "student-02" / "ps1"),
        ("student-03", tmp_path / "x"),
    ):
        (tmp_path / "submitted" / student).mkdir()
        (tmp_path / "submitted" / student / "ps1").symlink_to(goal)
    assert grading.students(tmp_path, "ps1") == ["student-01", "student-02", "student-03"]
    for student in ("student-01", "student-03"):
        job = read_job(tmp_path, student, small_lesson.assignment)
        found = pipeline.grade(job, small_lesson, shared_zygote).report
        assert (found.status, job.files) == (Status.not_graded, {})
        assert "is a link and was not followed" in found.reason


def test_deep_and_crowded_folders_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder inside a folder, again and again, and too many files are left out by name; the notebook is read first."""
    where = hand_in(tmp_path)
    monkeypatch.setattr(reading, "MOST_FILES", 4)
    for number in range(9):
        (where / f"a{number}.txt").write_text("x")
    deeper = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')"
    subprocess.run([sys.executable, "-c", deeper], cwd=where, check=True)
    left_out: list[Flag] = []
    assert set(read_files(where, left_out)) == {"lesson.ipynb", "a0.txt", "a1.txt", "a2.txt"}
    assert told(left_out) == [("file_left_out", "The"), ("file_left_out", "a3.txt")]
    assert "/".join(["d"] * (DEEPEST_FOLDER + 1)) in left_out[0].text
    assert len(hash_submission(where)) == 64
    subprocess.run(["rm", "-r", where / "d"], check=True)


def test_what_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or folder whose permissions forbid reading is left out and named. Root may read all, so opening fails here."""
    where = hand_in(tmp_path)
    (where / "closed.txt").write_text("x")
    monkeypatch.setattr(reading, "read_regular", lambda path, size: None if path.name == "closed.txt" else b"read")
    left_out: list[Flag] = []
    assert read_files(where, left_out) == {"lesson.ipynb": b"read"}
    assert told(left_out) == [("file_unreadable", "closed.txt")]


def archive(*members: tuple[str, bytes, int], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of these names, contents and modes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as zipped:
        for name, data, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = method
            zipped.writestr(info, data)
    return made.getvalue()


def test_a_zip_is_read_without_leaving_it(tmp_path: Path, small_lesson, shared_zygote) -> None:
    """F9: a notebook in an archive is graded; names that lead out of it and links in it are refused by name."""
    link = stat.S_IFLNK | 0o777
    data = archive(
        ("ps1/lesson.ipynb", GOOD, 0o644),
        ("../../evil.py", b"x", 0o644),
        ("/etc/evil", b"x", 0o644),
        ("..\\evil.py", b"x", 0o644),
        ("C:/evil.py", b"x", 0o644),
        ("ps1/link", b"/etc/passwd", link),
        ("__MACOSX/ps1/._lesson.ipynb", b"x", 0o644),
    )
    files = {"work.zip": data}
    found = pipeline.grade(pipeline.Job("s", files, (), hash_files(files)), small_lesson, shared_zygote).report
    assert (found.status, found.score) == (Status.graded, 5)
    refused = [flag.text for flag in found.flags if flag.name == "file_left_out"]
    assert len(refused) == 5
    assert sum("leads out of the archive" in text for text in refused) == 4
    assert {"archive_read", "notebook_renamed"} < {flag.name for flag in found.flags}
    assert not (tmp_path / "evil.py").exists()


def test_a_bomb_is_stopped_by_what_comes_out(small_lesson, shared_zygote) -> None:
    """F9: an archive that unpacks to more than is accepted gives a sentence, however small it is or says it is."""
    bomb = archive(("lesson.ipynb", b" " * (LARGEST_FILE_BYTES + 1), 0o644), method=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 2**17
    lying = bomb.replace((LARGEST_FILE_BYTES + 1).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    for data in (bomb, lying, bomb[:-30], b"PK" + bytes(40)):
        inside, flags = unpack("work.zip", data)
        assert sum(map(len, inside.values())) <= LARGEST_FILE_BYTES
        assert flags
        files = {"work.zip": data}
        found = pipeline.grade(pipeline.Job("s", files, (), hash_files(files)), small_lesson, shared_zygote).report
        assert found.status is Status.not_graded


@pytest.mark.parametrize("student", IDS)
def test_an_id_is_only_a_name(student: str, tmp_path: Path, small_lesson, shared_zygote) -> None:
    """S14: whatever characters an id has, the submission found, the report and the page are those of this student."""
    hand_in(tmp_path, student)
    hand_in(tmp_path, "zz")
    assert set(grading.students(tmp_path, "ps1")) == {student, "zz"}
    job = read_job(tmp_path, student, small_lesson.assignment)
    graded = pipeline.grade(job, small_lesson, shared_zygote)
    path = report.write(tmp_path, graded.report, graded.notebooks, lambda data: b"signed")
    assert path == tmp_path / "autograded" / student / "ps1" / "report.json"
    [page] = feedback.write(tmp_path, graded.report)
    assert page == tmp_path / "feedback" / student / "ps1" / "lesson.html"
    assert [(one.student, one.score) for one, _ in grading.stored(tmp_path, "ps1")] == [(student, 5)]


def test_an_earlier_good_submission_stays_the_graded_one(tmp_path: Path, small_lesson, shared_zygote) -> None:
    """F2: what came later and cannot be graded says which score stands, and the page still shows the earlier results."""
    where = hand_in(tmp_path)

    def grade_now() -> report.Report:
        graded = pipeline.grade(read_job(tmp_path, "student-01", small_lesson.assignment), small_lesson, shared_zygote)
        found = report.standing(graded.report, report.earlier(tmp_path, "student-01", "ps1"))
        report.write(tmp_path, found, graded.notebooks, lambda data: b"signed")
        return found

    assert grade_now().score == 5
    for data in (b"", GOOD[:-100]):
        (where / "lesson.ipynb").write_bytes(data)
        later = grade_now()
        assert (later.status, later.score) == (Status.not_graded, None)
        [stands] = [flag.text for flag in later.flags if flag.name == "earlier_stands"]
        assert "stays graded, with 5 of 6 points" in stands
        [page] = feedback.write(tmp_path, later)
        html = page.read_text()
        assert html.index("Not graded yet") < html.index("What stands: an earlier hand-in") < html.index("Double")
        assert '<span class="big num">5</span>' in html
        assert page.name == "lesson.html"
    assert (tmp_path / "autograded" / "student-01" / "ps1" / "lesson.ipynb").is_file()
    (where / "lesson.ipynb").write_bytes(GOOD)
    assert [flag.name for flag in grade_now().flags] == ["awaits_marking"]
    assert report.earlier(tmp_path, "student-01", "ps1").status is Status.graded
