"""A course and one student who hands in, again and again, without any exchange."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from graders import config
from graders.config import Settings
from graders.run import attempts
from graders.run.arrivals import Arrived
from graders.run.collecting import Collected, take

NOON = datetime(2026, 10, 20, 12, tzinfo=UTC)
WHO = "student-01"


def course(folder: Path, *lines: str) -> Settings:
    """A course with one assignment and these settings."""
    (folder / "source/ps1").mkdir(parents=True)
    text = "\n".join(['c.CourseDirectory.course_id = "small"', f"c.Exchange.root = {str(folder / 'ex')!r}", *lines])
    (folder / "course_config.py").write_text(text)
    return config.load(folder)


def at(minutes: int) -> datetime:
    """So long after noon."""
    return NOON + timedelta(minutes=minutes)


def work(text: str, minutes: int | None = 0, **more: str) -> Arrived:
    """A submission of one file, handed in so many minutes after noon."""
    stamp = None if minutes is None else f"{at(minutes):%Y-%m-%d %H:%M:%S.%f} UTC"
    notes = {"second-look.txt": more["query"].encode()} if "query" in more else {}
    notes |= {"timestamp.txt": stamp.encode()} if stamp else {}
    return Arrived(more.get("student", WHO), {"ps1.ipynb": text.encode(), **notes}, stamp)


def there(settings: Settings) -> str | None:
    """What lies in `submitted/`."""
    path = settings.course / f"submitted/{WHO}/ps1/ps1.ipynb"
    return path.read_text() if path.exists() else None


def kept(settings: Settings) -> set[str]:
    """What is kept aside."""
    return {path.read_text() for path in attempts.place(settings.course, WHO, "ps1").glob("*/ps1.ipynb")}


def hand_in(settings: Settings, *rows: tuple[Arrived, int]) -> list[Collected]:
    """Take submissions, each collected so many minutes after noon."""
    return [take(settings, "ps1", one, at(minutes)) for one, minutes in rows]
