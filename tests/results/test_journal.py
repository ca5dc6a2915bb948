"""Laws of the journal: it only grows, one whole line a change, and a student who is forgotten is in it no more."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

from graders.results import journal


def written(course: Path, student: str, score: int = 1) -> journal.Line:
    """A line about a student whose score went from 0 to `score`."""
    return journal.note(course, "regrade", "ps1", student, "a test was mended", {"score": 0}, {"score": score})


def many(course: Path, student: str) -> None:
    """What one of several processes does."""
    for number in range(20):
        written(course, student, number)


def test_a_change_is_one_line_with_who_when_old_and_new(tmp_path):
    """A change is one line of JSON that a person can read, and comes back as it was."""
    first, second = written(tmp_path, "student-01"), written(tmp_path, "student-02", 3)
    raw = (tmp_path / journal.JOURNAL).read_text().splitlines()
    assert [json.loads(one)["student"] for one in raw] == ["student-01", "student-02"]
    assert {"time", "who", "act", "why"} <= set(json.loads(raw[0]))
    assert journal.lines(tmp_path) == [first, second]
    assert (second.old, second.new) == ({"score": 0}, {"score": 3})


def test_lines_of_many_processes_stay_whole(tmp_path):
    """Processes that write at once lose no line and tear none."""
    context = multiprocessing.get_context("spawn")
    names = ["student-01", "student-02", "student-03"]
    running = [context.Process(target=many, args=(tmp_path, name)) for name in names]
    for one in running:
        one.start()
    for one in running:
        one.join()
    found = [(one.student, one.new["score"]) for one in journal.lines(tmp_path)]
    assert sorted(found) == sorted((name, number) for name in names for number in range(20))


def test_a_line_that_a_crash_cut_off_swallows_no_other(tmp_path):
    """After half a line, the next one is read as it was written."""
    first = written(tmp_path, "student-01")
    with (tmp_path / journal.JOURNAL).open("ab") as file:
        file.write(b'{"time": "2026-')
    second = written(tmp_path, "student-02")
    assert journal.lines(tmp_path) == [first, second]


def test_a_forgotten_student_is_in_no_line(tmp_path):
    """Lines of that very id go, others stay as they are, and one says without a name that somebody was forgotten."""
    hostile = 'student-01"],"x":["*'
    kept = [written(tmp_path, "student-01"), written(tmp_path, hostile[:12])]
    written(tmp_path, hostile)
    with (tmp_path / journal.JOURNAL).open("ab") as file:
        file.write(b'{"student": "student-01\\"],')
    assert journal.forget(tmp_path, hostile) == 1
    *before, last = journal.lines(tmp_path)
    assert before == kept
    assert (last.act, last.student[:10], last.old, last.new) == (journal.FORGET, "forgotten-", {}, {})
    assert b'"],' not in (tmp_path / journal.JOURNAL).read_bytes().replace(json.dumps(hostile).encode(), b"")
    assert json.dumps(hostile).encode() not in (tmp_path / journal.JOURNAL).read_bytes()
