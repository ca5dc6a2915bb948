"""Hand in as a student would, without a student: what nbgrader's `submit` leaves in the exchange."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graders.config import Settings
from graders.run import exchange


def put(path: Path, data: bytes) -> None:
    """A file and the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def open_exchange(settings: Settings) -> None:
    """The course's folder in the exchange, as `nbgrader release_assignment` makes it."""
    inbound = exchange.inbound_folder(settings)
    for room in (inbound, inbound.parent / "feedback"):
        room.mkdir(parents=True)
        room.chmod(0o777)


def deliver(settings: Settings, student: str, files: Mapping[str, bytes], when: str, secret: str) -> None:
    """A submission of the one assignment of a course; the folder is opened when all is in it."""
    place = exchange.inbound_folder(settings) / f"{student}+{assignment(settings)}+{when}"
    for name, data in files.items():
        put(place / name, data)
    put(place / "timestamp.txt", when.encode())
    put(place / "submission_secret.txt", secret.encode())
    place.chmod(0o777)


def assignment(settings: Settings) -> str:
    """The one assignment of a course."""
    [found] = (settings.course / "release").iterdir()
    return found.name
