"""Release an assignment: the quick part of the gate must hold, then students receive what nbgrader writes.

Comes in: settings and a name. Goes out: `Released`. Must not: print, or leave a release that the gate refuses.
"""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders.config import Settings
from graders.course.assignments import read_assignment
from graders.course.lint import lint
from graders.course.release import generate
from graders.coursework import Assignment, Reference
from graders.errors import CourseError
from graders.findings import Finding, Level
from graders.records import Record
from graders.results import journal, standings
from graders.run import gating, grading, locks, pipeline, recording


class Released(Record):
    """What a release made. `reference` is None when it was forced although the solution fails; such a release cannot be graded."""

    folder: Path
    reference: Reference | None
    findings: tuple[Finding, ...] = ()
    sha256: str = ""


class Affected(Record):
    """Whom a new version of an assignment concerns: who has handed in, and of these, whose points are of `version`."""

    version: str
    handed_in: tuple[str, ...]
    graded: tuple[str, ...]


def affected(settings: Settings, name: str) -> Affected | None:
    """Whom it would concern to release `name` as its source is now; None when nobody, or when that source was released last."""
    handed_in = tuple(grading.students(settings.course, name))
    before = _last(settings.course, name)
    author = read_assignment(settings.course, name, released=False).sha256
    if not handed_in or author == before.get("source_sha256"):
        return None
    graded = tuple(one.student for one, _ in grading.stored(settings.course, name) if one.student in handed_in)
    return Affected(str(before.get("assignment_sha256", "")), handed_in, graded)


def _last(course: Path, name: str) -> dict[str, Any]:
    """The hashes of the version that was released last; empty when none was."""
    released = (one.new for one in reversed(journal.lines(course)) if (one.act, one.assignment) == ("release", name))
    return next(released, {})


def release(settings: Settings, name: str, isolation: str | None = None, force: str | None = None) -> Released:
    """Release one assignment. `force` is the reason why it is released although the gate refuses it; that is logged.

    Raises:
        CourseError: the gate refuses it, or nbgrader does. What was released before stays.
    """
    conditions = pipeline.conditions_of(settings, name, isolation)
    source, target = settings.course / "source" / name, settings.course / "release" / name
    author = read_assignment(settings.course, name, released=False)
    standings.statuses(
        settings.course, settings.db_url
    )  # a gradebook that does not answer is told before anything is done
    with locks.holding(settings.course, name, "release"), pipeline.new_zygote() as zygote:
        wrong = gating.reference(author, conditions, zygote, 1, 1, kernel=False)
        found = lint(author, conditions.sealed) + wrong
        _refuse(name, found, force)
        kept = _keep(target, settings.course / ".graders" / "gate" / f"{name}.before")
        try:
            generate(settings.course, settings.course_id, name)
            assignment = read_assignment(settings.course, name)
            after, known = gating.released(settings.course, source, assignment, conditions, zygote, not wrong)
            found += [one for one in after if one not in found]
            _refuse(name, found, force)
            recording.keep(kept, settings.course, assignment)
            _note(settings.course, author, assignment)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            if kept:
                kept.rename(target)  # for which a full disk has room
            raise
    refused = [one for one in found if one.level is Level.error]
    if refused and force:
        log(settings.course, name, force, refused)
    return Released(target, known, tuple(found), assignment.sha256)


def _note(course: Path, author: Assignment, made: Assignment) -> None:
    """Every version that students received stands in the journal."""
    before = _last(course, made.name)
    new = {"assignment_sha256": made.sha256, "source_sha256": author.sha256}
    if new != before:
        journal.note(course, "release", made.name, "", "", before, new)


def log(course: Path, name: str, reason: str, refused: list[Finding]) -> None:
    """Note that an assignment was released against the gate: when, why, and what was refused."""
    path = course / ".graders" / "gate" / "log.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = [f"[{one.rule}] {one.where}: {one.text}" for one in refused]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with path.open("a") as stream:
        line = {"time": now, "assignment": name, "reason": reason, "refused": told}
        stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def _refuse(name: str, found: list[Finding], force: str | None) -> None:
    told = gating.refusals(found)
    if told and not force:
        raise CourseError(
            f"{name!r} was not released:\n  {told}\n"
            f"Next step: mend this, then release again; graders gate {name} tries everything. "
            "To release it all the same: --force-gate REASON, which is logged."
        )


def _keep(target: Path, aside: Path) -> Path | None:
    """A copy of what was released before."""
    shutil.rmtree(aside, ignore_errors=True)
    if not target.is_dir():
        return None
    aside.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(target, aside)
    return aside
