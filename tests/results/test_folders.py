"""Laws of what is written: all of it or nothing, and a full disk is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fullness import room_for

from graders.errors import FullError, InfrastructureError
from graders.results import journal, receipts
from graders.results.database import default_url, engine_of, explained
from graders.results.folders import replace_folder, write_file

LIMIT_BYTES = 4096
LONG = bytes(3 * LIMIT_BYTES)
SENTENCE = r"could not be written: File too large\. 12,2\d\d bytes are to be written, and [\d,]+ bytes are free there\..*Next step: make room"


def below(folder: Path) -> dict[str, bytes]:
    """All files, the half-made ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_file_that_finds_no_room_takes_the_place_of_nothing(tmp_path):
    """The old file stands, nothing is left beside it, and the sentence says where, how much and what next."""
    write_file(tmp_path / "a", b"old")
    with room_for(LIMIT_BYTES), pytest.raises(FullError, match=SENTENCE):
        write_file(tmp_path / "a", LONG)
    assert below(tmp_path) == {"a": b"old"}


def test_a_folder_that_finds_no_room_takes_the_place_of_nothing(tmp_path):
    """The old folder stands whole, though some of the new files had room."""
    replace_folder(tmp_path / "f", {"a": b"old"})
    with room_for(LIMIT_BYTES), pytest.raises(FullError, match=SENTENCE):
        replace_folder(tmp_path / "f", {"a": b"new", "b": LONG})
    assert below(tmp_path) == {"f/a": b"old"}


def test_a_line_that_finds_no_room_is_not_in_the_journal(tmp_path):
    """A disk that takes the beginning of a line and no more leaves the journal as it was; later lines are whole."""
    journal.note(tmp_path, "grade", "ps1", "student-01", "first", {}, {})
    before = (tmp_path / journal.JOURNAL).read_bytes()
    with room_for(LIMIT_BYTES), pytest.raises(FullError, match="File too large"):
        journal.note(tmp_path, "grade", "ps1", "student-01", LONG.decode(), {}, {})
    assert (tmp_path / journal.JOURNAL).read_bytes() == before
    journal.note(tmp_path, "grade", "ps1", "student-01", "second", {}, {})
    assert [one.why for one in journal.lines(tmp_path)] == ["first", "second"]


def test_keys_that_find_no_room_leave_nothing(tmp_path):
    """Neither the private key nor the public one is half there."""
    key = tmp_path / "keys/key"
    with room_for(10), pytest.raises(FullError, match="keys/key could not be written"):
        receipts.signing_key(key)
    receipts.signing_key(key)
    with room_for(10), pytest.raises(FullError, match=r"receipt-key\.pub could not be written"):
        receipts.publish(tmp_path, key)
    assert set(below(tmp_path)) == {"keys/key"}


def test_a_gradebook_that_finds_no_room_says_how_much_there_is(tmp_path):
    """SQLite's own words, the file, what is free and what to do; not the statement."""
    engine = engine_of(default_url(tmp_path))
    with (
        room_for(LIMIT_BYTES),
        pytest.raises(
            InfrastructureError, match=r"gradebook\.db could not be written: .* bytes are free .*Next step"
        ) as raised,
        explained(default_url(tmp_path), "written"),
        engine.begin() as connection,
    ):
        connection.exec_driver_sql("create table a as select zeroblob(100000)")
    engine.dispose()
    assert "zeroblob" not in str(raised.value)


def test_what_cannot_be_printed_is_told(tmp_path):
    """Standard output on a full disk ends a command with 2 and one sentence, and Python does not complain on top."""
    (tmp_path / "course_config.py").touch()
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "graders.cli", "export", "--format", "csv"],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "graders export: standard output could not be written: No space left on device. "
        "Next step: send it elsewhere, and run it again.\n"
    )
