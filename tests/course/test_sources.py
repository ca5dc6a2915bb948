"""Laws of answer files on arrival: the file is found by what it defines, and read whatever its encoding."""

from __future__ import annotations

import pytest

from graders.course.decoding import decode
from graders.course.sources import with_answer_files
from graders.coursework import Assignment, ReleasedCell, Role

TEXT = "# Größe – naïve\ndef add(one, other):\n    return one + other\n\n\nclass Twice:\n    pass\n"
STUB = "def add(one, other):\n    raise NotImplementedError()\n\n\nclass Twice:\n    pass\n"
MODEL = ReleasedCell("nb", -1, "model.py", Role.answer, "file", TEXT, STUB)
GIVEN = Assignment("ps1", {"nb": ()}, {"model.py": STUB.encode(), "given.py": TEXT.encode()}, "", {"model.py": MODEL})


def found(files: dict[str, bytes]) -> tuple[str | None, list[str]]:
    """The text that Python would read as model.py, and the flags."""
    after, flags = with_answer_files(files, GIVEN)
    data = after.get("model.py")
    return data and data.decode(), [flag.name for flag in flags]


@pytest.mark.parametrize("name", ["model (1).py", "Model.PY", "model.py.txt", "x/model.py", "work.py"])
def test_a_renamed_file_is_known_by_what_it_defines(name: str) -> None:
    """F5: the only other file that defines what the stub defines is the answer file, and the student is told."""
    assert found({name: TEXT.encode(), "other.py": b"x = 1\n"}) == (TEXT, ["file_renamed"])


def test_what_is_not_certain_is_left_alone() -> None:
    """Two candidates, one that lacks a definition, or the instructor's own copy are not taken for the answer."""
    assert found({"a.py": TEXT.encode(), "b.py": TEXT.encode()}) == (None, [])
    assert found({"a.py": b"def add(one, other):\n    return 3\n"}) == (None, [])
    assert found({"given.py": TEXT.encode()}) == (None, [])
    assert found({"model.py": b"broken(", "work.py": TEXT.encode()}) == ("broken(", [])


@pytest.mark.parametrize(
    ("data", "flags"),
    [
        (TEXT.encode(), []),
        (TEXT.encode("utf-16"), ["encoding_changed"]),
        (TEXT.encode("utf-16-le"), ["encoding_changed"]),
        (TEXT.encode("cp1252"), ["encoding_guessed"]),
    ],
)
def test_a_file_is_read_whatever_its_encoding(data: bytes, flags: list[str]) -> None:
    """F1: what Python would not read is converted to UTF-8, with a flag that says whether it was guessed."""
    assert found({"model.py": data}) == (TEXT, flags)


def test_what_python_reads_is_not_touched() -> None:
    """A byte order mark, a declared encoding and CRLF are Python's own business: the bytes stay as they are."""
    for data in (
        b"\xef\xbb\xbf" + TEXT.encode(),
        b"# coding: latin-1\n" + TEXT.replace("–", "-").encode("latin-1"),
        TEXT.replace("\n", "\r\n").encode(),
    ):
        assert with_answer_files({"model.py": data}, GIVEN) == ({"model.py": data}, [])


LADDER = {
    "UTF-8 with a mark": ("é".encode("utf-8-sig"), "é", False),
    "UTF-16 with a mark": (b"\xfe\xff" + "é–".encode("utf-16-be"), "é–", False),
    "UTF-16 without one": ("{é–}".encode("utf-16-be"), "{é–}", False),
    "UTF-32 with a mark": ("é–".encode("utf-32"), "é–", False),
    "UTF-32 without one": ("{é–}".encode("utf-32-le"), "{é–}", False),
    "declared": (b"# vim: set fileencoding=koi8-r :\n\xc1", "# vim: set fileencoding=koi8-r :\nа", False),
    "declared in JSON": (
        b'{"encoding": "shift_jis", "text": "\x83n"}',
        '{"encoding": "shift_jis", "text": "ハ"}',
        False,
    ),
    "UTF-8 goes before what is declared": ("# coding: cp1251\né".encode(), "# coding: cp1251\né", False),
    "a codec that is none of text": (b"# coding: rot13\n\xe9", "# coding: rot13\né", True),
    "a codec that could be abused": (b"# coding: unicode_escape\n\xe9\\x41", "# coding: unicode_escape\né\\x41", True),
    "an unknown name": (b"# coding: klingon\n\xe9", "# coding: klingon\né", True),
    "Windows-1252": (b"\x93quoted\x94 \x80", "“quoted” €", True),
    "a byte that is in neither": (b"\x81", "\ufffd", True),
    "UTF-8 with a stray byte": (b"\xc3\xa9\xe9", "éé", True),
    "UTF-16 cut in a character": (b"\xff\xfe" + "ab".encode("utf-16-le")[:-1], "a\ufffd", False),
    "line ends": (b"a\r\nb\rc\n", "a\nb\nc\n", False),
}


@pytest.mark.parametrize("name", LADDER)
def test_the_ladder(name: str) -> None:
    """Each rung reads what it should, and only what was guessed is flagged."""
    data, wanted, guessed = LADDER[name]
    text, flags = decode(data, "nb.ipynb")
    assert (text, [flag.name for flag in flags]) == (wanted, ["encoding_guessed"] * guessed)
