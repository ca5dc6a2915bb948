"""Laws of exports: a number is what counts and nothing else, and no cell is a formula."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_samples import performance_report
from test_overview import entry, lost, missing, written

from graders.records import Kind, Status
from graders.results.classbook import Entry, Person
from graders.results.exports import FORMATS, as_canvas, as_csv, as_json, as_moodle
from graders.results.spreadsheet import exact, harmless, table

replace = msgspec.structs.replace
A = "performance-02"
FORMULAS = ["=1+1", "x\r=1", "x\n=1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\uff1d1", "=cmd|' /C calc'!A0"]


def graded(student: str, **more: object) -> Entry:
    """Somebody whose work is all judged: 8 of 12."""
    return replace(entry(replace(performance_report(), student=student)), **more)


def waiting(student: str) -> Entry:
    """Somebody who waits for a person to read an answer of three points."""
    report = performance_report()
    return entry(replace(report, student=student, exercises=(*report.exercises, written(student, "Because."))))


def partly(student: str) -> Entry:
    """Somebody of whom a part was lost to a fault of ours."""
    report = performance_report()
    first = replace(report.exercises[0], score=None)
    lost = {"status": Status.partly_graded, "score": Decimal(4), "exercises": (first, *report.exercises[1:])}
    return entry(replace(report, student=student, **lost))


def the_class() -> dict[str, tuple[Entry, ...]]:
    """One of each."""
    return {
        A: (
            graded("s1", penalty=Decimal("0.5"), score=Decimal("7.5")),
            waiting("s2"),
            partly("s3"),
            lost("s4"),
            missing("s5"),
        )
    }


def rows(text: str) -> list[dict[str, str]]:
    """A CSV file as another program reads it."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_table_tells_what_is_judged_what_waits_and_what_is_missing():
    """CSV and JSON: the score so far with its status, the points that wait, and blank or null where there is none, never 0."""
    table = [
        (one["student"], one["status"], one["score"], one["waiting"], one["late_penalty"])
        for one in rows(as_csv(the_class()))
    ]
    assert table == [
        ("s1", "graded", "7.5", "0", "0.5"),
        ("s2", "graded", "8", "3", "0"),
        ("s3", "partly_graded", "4", "0", "0"),
        ("s4", "not_graded", "", "", ""),
        ("s5", "missing", "", "", ""),
    ]
    data = json.loads(as_json(the_class()))
    told = [(one["student"], one["status"], one["score"], one["waiting"], one["late_penalty"]) for one in data]
    assert told == [
        (student, status, *(float(cell) if cell else None for cell in cells)) for student, status, *cells in table
    ]
    assert data[3]["reason"] == rows(as_csv(the_class()))[3]["reason"] == "The file is cut off."


def test_scores_stand_by_outcome_and_by_kind():
    """Exercises and checkpoints apart, in all and of each outcome; what is not judged is in neither of the two numbers."""
    report = performance_report()
    mixed = replace(report, exercises=(replace(report.exercises[0], kind=Kind.checkpoint), *report.exercises[1:]))
    [row] = rows(as_csv({A: (entry(mixed),)}))
    assert (row["exercises"], row["exercises of"], row["checkpoints"], row["checkpoints of"]) == ("4", "8", "4", "4")
    assert (row["Keep a choice dynamic: exercises"], row["Keep a choice dynamic: exercises of"]) == ("3", "4")
    assert "Keep a choice dynamic: checkpoints" not in row
    [data] = json.loads(as_json({A: (entry(mixed),)}))
    assert data["checkpoints"] == {"score": 4, "max_score": 4}
    assert data["outcomes"]["Keep a choice dynamic"] == {"exercises": {"score": 3, "max_score": 4}, "checkpoints": None}
    row = rows(as_csv(the_class()))[2]
    assert (row["Record a call ledger: exercises"], row["exercises of"]) == ("", "8")


def test_canvas_reads_its_columns_and_only_what_is_judged():
    """The columns that Canvas names, points possible in the second row, and a blank for whoever is not judged to the end."""
    text = as_canvas(the_class() | {"other": (missing("s1"),)})
    header = text.splitlines()[0].split(",")
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", A, "other"]
    first, *people = rows(text)
    assert (first["Student"].strip(), first[A], first["other"]) == ("Points Possible", "12", "12")
    assert [(one["SIS Login ID"], one[A], one["other"]) for one in people] == [
        ("s1", "7.5", ""),
        ("s2", "", ""),
        ("s3", "", ""),
        ("s4", "", ""),
        ("s5", "", ""),
    ]
    ada = replace(graded("s1"), person=Person("s1", "Last", "First", "", "4711"))
    assert rows(as_canvas({A: (ada,)}))[1]["Student"] == "Last, First"
    assert rows(as_canvas({A: (ada,)}))[1]["ID"] == "4711"


def test_moodle_reads_a_dash_where_there_is_no_grade():
    """An empty cell would become 0 in a new grade item, so no grade is a dash; the status beside it says why."""
    found = rows(as_moodle(the_class()))
    assert [(one["Username"], one[A], one[f"{A} status"]) for one in found] == [
        ("s1", "7.5", "graded"),
        ("s2", "-", "awaits_marking"),
        ("s3", "-", "partly_graded"),
        ("s4", "-", "not_graded"),
        ("s5", "-", "missing"),
    ]
    two = rows(as_moodle({A: (graded("s1"),), "other": (graded("s2"),)}))
    assert [(one[A], one["other"], one["other status"]) for one in two] == [("8", "-", ""), ("-", "8", "graded")]


def test_moodle_gets_addresses_only_if_all_are_known():
    """Moodle gives a row without an address to the student of the row before it, so such a column is left out."""
    known = replace(graded("s1"), person=Person("s1", email="s1@example.org"))
    assert rows(as_moodle({A: (known,)}))[0]["Email address"] == "s1@example.org"
    assert "Email address" not in as_moodle({A: (known, graded("s2"))})


@pytest.mark.parametrize("format", sorted(FORMATS))
@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(text, format):
    """Names, ids, addresses, reasons, assignments and outcomes: what begins like a formula begins with an apostrophe instead."""
    report = performance_report()
    outcomes = tuple(replace(one, outcome=text) for one in report.exercises)
    person = Person(text, text, text, text, text)
    one = replace(entry(replace(report, exercises=outcomes)), person=person, reason=text, assignment=text)
    made = FORMATS[format]({text: (one,)})
    if format == "json":
        assert json.loads(made)[0]["last_name"] == text
        return
    cells = [cell for row in csv.reader(io.StringIO(made, newline="")) for cell in row]
    assert [
        cell for cell in cells if cell.lstrip(" ")[:1] in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20" and cell not in ("", "-")
    ] == []
    assert text[0] == "x" or any(cell.startswith("'" + re.sub(r"[\t\r]", " ", text)) for cell in cells)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**6), max_value=10**6))
def test_numbers_are_exact(number):
    """Every digit of a score is written, without an exponent, whatever form the number had."""
    text = exact(number)
    assert Fraction(text) == Fraction(number)
    assert not set(text) - set("-.0123456789")
    assert not text.endswith(".")


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=3))
def test_any_text_is_read_back(texts):
    """Commas, quotes and what not in a name stay in its cell, and a control in it becomes a space."""
    names = [f"c{number}" for number in range(len(texts))]
    [row] = rows(table(names, [dict(zip(names, texts, strict=True))]))
    assert [row[name] for name in names] == [harmless(text) for text in texts]
