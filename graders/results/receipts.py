"""Signatures of reports, and the hashes that they stand for.

Comes in: bytes of a report, a submission folder. Goes out: Ed25519 signatures (RFC 8032) and hex SHA-256. Must not: put
the private key anywhere below a course, follow a link out of a submission, or need the private key to verify.

A signature is the 64 raw bytes, not text, so that no byte of the file can change without notice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

import msgspec
import platformdirs
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from graders.errors import VerifyError
from graders.records import Record, report_from_json
from graders.results.folders import handed_in, hash_files, hash_submission, write_file, writing

__all__ = [
    "Verified",
    "environment_sha256",
    "hash_files",
    "hash_submission",
    "publish",
    "sign",
    "signing_key",
    "verify",
]

PUBLIC_KEY = Path(".graders", "receipt-key.pub")
_END = b"-----END PUBLIC KEY-----\n"
_SEPARATORS = re.compile(r"[-_.]+")  # all the same in the name of a distribution


class Verified(Record, frozen=True):
    """What a good signature says. `key` is the SHA-256 of the public key that made it."""

    student: str
    assignment: str
    status: str
    report_sha256: str
    submission_sha256: str | None
    started: str | None
    key: str


def key_path() -> Path:
    """Where this user's private key is kept."""
    return Path(platformdirs.user_data_dir("graders")) / "signing-key"


def signing_key(path: Path | None = None) -> Ed25519PrivateKey:
    """Read this user's private key, making it (mode 0600) the first time.

    Two processes may come here at once: each writes a file of its own, and the one whose link comes first wins.
    """
    path = path or key_path()
    if not path.exists():
        fresh = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with writing(path, len(fresh)):
            _link_first(path, fresh)
    path.chmod(0o600)
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise VerifyError(
            f"{path} is not an Ed25519 key, and reports are signed with one. Move it away; a new one is made."
        )
    return key


def _link_first(path: Path, fresh: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)  # mkstemp makes it 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(fresh)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        pass
    finally:
        Path(name).unlink()


def sign(report_bytes: bytes, key: Path | None = None) -> bytes:
    """The 64 bytes of the signature of `report_bytes`."""
    return signing_key(key).sign(report_bytes)


def publish(course: Path, key: Path | None = None) -> Path:
    """Put the public key where `verify` looks for it. Keys of other instructors that stand there are kept."""
    public = signing_key(key).public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    path = course / PUBLIC_KEY
    while pem not in (old := path.read_bytes() if path.exists() else b""):
        write_file(path, old + pem)
    return path


def verify(report_path: Path, course: Path) -> Verified:
    """Check a report against its signature, and the submission folder against the hash in the report.

    Raises:
        VerifyError: one byte of report, signature or submission is not what was signed.
    """
    data, signature = _read(report_path), _read(report_path.with_name(report_path.name + ".sig"))
    key = next((key for key in _public_keys(course) if _good(key, signature, data)), None)
    if key is None:
        raise VerifyError(
            f"{report_path} is not what was signed: neither it nor {report_path.name}.sig may change after grading. "
            f"Grade the submission again, or get the report from whoever graded it."
        )
    try:
        report = report_from_json(data)
    except msgspec.DecodeError as error:
        raise VerifyError(
            f"{report_path} carries a good signature but is not a report of this version: {error}."
        ) from error
    expected = report.receipt.submission_sha256 if report.receipt else None
    if expected is not None:
        folder = handed_in(course, report.student, report.assignment)
        if not folder.is_dir():
            raise VerifyError(
                f"{folder} is gone, and the report covers it. Restore what was handed in and verify again."
            )
        try:
            found = hash_submission(folder)
        except OSError as error:
            raise VerifyError(
                f"{error.filename} cannot be read ({error.strerror}), and the report covers it."
            ) from error
        if found != expected:
            raise VerifyError(
                f"{folder} is not what was graded: its hash is {found}, the signed report says {expected}. "
                f"Restore the files that were handed in, or grade the new ones."
            )
    return Verified(
        student=report.student,
        assignment=report.assignment,
        status=report.status.value,
        report_sha256=hashlib.sha256(data).hexdigest(),
        submission_sha256=expected,
        started=report.receipt.started if report.receipt else None,
        key=hashlib.sha256(key.public_bytes_raw()).hexdigest(),
    )


@cache
def environment_sha256() -> str:
    """Hash of every installed distribution as `name==version`, so that two machines can be told apart."""
    # not all of sys.path: setuptools puts a folder of its own copies there once something imports it
    where = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    # the names of the folders say it, by the rules for installed packages; to read the METADATA of each takes 0.2 s
    folders = [path.name for folder in where for path in Path(folder).glob("*.dist-info")]
    installed = {f"{_SEPARATORS.sub('-', name).lower()}=={version}" for name, version in map(_parted, folders)}
    return hashlib.sha256(json.dumps(sorted(installed)).encode()).hexdigest()


def _parted(folder: str) -> tuple[str, str]:
    name, _, version = folder.removesuffix(".dist-info").partition("-")
    return name, version


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VerifyError(
            f"{path} cannot be read ({error.strerror}), and verifying needs a report and its .sig beside it. "
            f"Name a report.json below autograded/."
        ) from error


def _public_keys(course: Path) -> list[Ed25519PublicKey]:
    path = course / PUBLIC_KEY
    keys = []
    for block in _read(path).split(_END)[:-1]:
        try:
            key = serialization.load_pem_public_key(block + _END)
        except ValueError as error:
            raise VerifyError(
                f"{path} does not hold public keys: {error}. Restore it from where grading runs."
            ) from error
        if isinstance(key, Ed25519PublicKey):
            keys.append(key)
    return keys


def _good(key: Ed25519PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True
