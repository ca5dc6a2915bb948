"""Laws of receipts: one changed byte is noticed, and the private key stays where it belongs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sysconfig
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import distributions
from multiprocessing import get_context
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_samples import performance_report

from graders.errors import VerifyError
from graders.records import Receipt
from graders.results import receipts, report

SUBMITTED = {"performance-02.ipynb": b'{"cells": []}', "data/x.csv": b"1,2\n"}


@pytest.fixture
def signed(tmp_path):
    """A course with one signed report and the submission that it covers: (course, report path, submission folder)."""
    key = tmp_path / "home" / "signing-key"
    course = tmp_path / "course"
    folder = course / "submitted" / "student-01" / "performance-02"
    for name, data in SUBMITTED.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    receipt = Receipt(
        graders="0.1.0",
        python="3.11",
        target="cpu",
        examine="sealed",
        isolation="namespaces",
        places=(),
        submission_sha256=receipts.hash_files(SUBMITTED),
        assignment_sha256="0" * 64,
        environment_sha256=receipts.environment_sha256(),
        seed=0,
        started="2026-11-12T14:06:00Z",
        wall_s=1.0,
        cpu_s=0.5,
        phases_s={},
    )
    receipts.publish(course, key)
    whole = msgspec.structs.replace(performance_report(), receipt=receipt)
    path = report.write(course, whole, {}, lambda data: receipts.sign(data, key))
    return course, path, folder


def test_what_was_signed_verifies(signed):
    """An untouched report verifies with the public key alone and says whose it is."""
    course, path, _ = signed
    verified = receipts.verify(path, course)
    assert (verified.student, verified.assignment, verified.status) == ("student-01", "performance-02", "graded")
    assert verified.submission_sha256 == receipts.hash_files(SUBMITTED)


@pytest.mark.parametrize("name", ["report.json", "report.json.sig"])
def test_one_changed_byte_is_noticed(signed, name):
    """A bit changed anywhere in the report or in its signature makes verifying fail."""
    course, path, _ = signed
    file = path.with_name(name)
    data = file.read_bytes()
    for place in range(0, len(data), max(1, len(data) // 64)):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(VerifyError, match="Grade the submission again"):
            receipts.verify(path, course)
    for other in (data + b"\n", data[:-1], b""):
        file.write_bytes(other)
        with pytest.raises(VerifyError):
            receipts.verify(path, course)


def test_a_changed_submission_is_noticed(signed):
    """Each byte of each file that was handed in is covered, and so is every name."""
    course, path, folder = signed
    for name, data in SUBMITTED.items():
        for place in range(len(data)):
            (folder / name).write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            with pytest.raises(VerifyError, match="is not what was graded"):
                receipts.verify(path, course)
        (folder / name).write_bytes(data)
    (folder / "data" / "x.csv").rename(folder / "data" / "y.csv")
    with pytest.raises(VerifyError, match="is not what was graded"):
        receipts.verify(path, course)


def test_a_missing_part_is_named(signed):
    """Without signature, key or submission the message says which is missing and what to do."""
    course, path, folder = signed
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(VerifyError, match="Restore what was handed in"):
        receipts.verify(path, course)
    (course / receipts.PUBLIC_KEY).unlink()
    with pytest.raises(VerifyError, match=r"receipt-key\.pub cannot be read"):
        receipts.verify(path, course)


def test_a_strange_key_verifies_nothing(signed, tmp_path):
    """A report signed by a key that the course does not hold fails; once published, both keys count."""
    course, path, _ = signed
    other = tmp_path / "other" / "signing-key"
    path.with_name("report.json.sig").write_bytes(receipts.sign(path.read_bytes(), other))
    with pytest.raises(VerifyError):
        receipts.verify(path, course)
    receipts.publish(course, other)
    receipts.publish(course, other)
    assert receipts.verify(path, course).student == "student-01"
    assert (course / receipts.PUBLIC_KEY).read_bytes().count(b"BEGIN PUBLIC KEY") == 2


def test_the_private_key_is_private(tmp_path, monkeypatch):
    """The key lies in the user's data folder, readable by its owner alone, and is the same the second time."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    first = receipts.sign(b"report")
    path = tmp_path / "graders" / "signing-key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert receipts.sign(b"report") == first


def _sign(key: Path) -> bytes:
    return receipts.sign(b"report", key)


def test_processes_that_race_make_one_key(tmp_path):
    """Four processes that all come first sign with one key and leave nothing else behind."""
    key = tmp_path / "keys" / "signing-key"
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        signatures = set(pool.map(_sign, [key] * 16))
    assert len(signatures) == 1
    assert os.listdir(key.parent) == ["signing-key"]  # noqa: PTH208 - names alone


names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=4)
files = st.dictionaries(names, st.binary(max_size=6), max_size=4)


@given(files, files)
def test_different_files_have_different_hashes(one, other):
    """Two sets of files share a hash only when names and contents are the same, wherever the bytes are cut."""
    assert (receipts.hash_files(one) == receipts.hash_files(other)) == (one == other)


def test_a_folder_hashes_like_its_files(tmp_path):
    """Reading a folder gives the hash of its files; a link counts as a link, and a FIFO is not waited for."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.py").write_bytes(b"x = 1\n")
    plain = receipts.hash_submission(tmp_path)
    assert plain == receipts.hash_files({"sub/x.py": b"x = 1\n"})
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_bytes(b"one")
    (tmp_path / "link").symlink_to(secret)
    linked = receipts.hash_submission(tmp_path)
    secret.write_bytes(b"two")
    assert plain != linked == receipts.hash_submission(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert receipts.hash_submission(tmp_path) not in (plain, linked)


def test_the_environment_is_the_same_whatever_was_imported(tmp_path, monkeypatch):
    """A library that puts its own copies of others on sys.path does not make another environment."""
    before = receipts.environment_sha256()
    (tmp_path / "copied-9.dist-info").mkdir()
    (tmp_path / "copied-9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: copied\nVersion: 9\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    receipts.environment_sha256.cache_clear()
    assert before == receipts.environment_sha256()


def test_the_environment_is_what_is_installed():
    """The hash is that of every distribution, by name and version, as the standard library reads them from their metadata."""
    where = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    found = {f"{re.sub('[-_.]+', '-', one.name).lower()}=={one.version}" for one in distributions(path=where)}
    assert hashlib.sha256(json.dumps(sorted(found)).encode()).hexdigest() == receipts.environment_sha256()
