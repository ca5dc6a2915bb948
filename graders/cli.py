"""The command line: the only module that prints. Nothing imports it.

Exit status: 0 done; 1 something needs a person; 2 we failed, with a message that says what, where, wanted and next step.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from graders import config
from graders.errors import GradersError
from graders.findings import Finding, Gate
from graders.records import Flag, Report, Status

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(argv)
    try:
        return int(_COMMANDS[options.command](options))
    except (Exception, KeyboardInterrupt) as error:
        err.print(_message(options.command, error), markup=False)
        if options.debug:
            traceback.print_exception(error)
    return 2


def _message(command: str, error: BaseException) -> str:
    if isinstance(error, GradersError):
        return f"graders {command}: {error}"
    if isinstance(error, KeyboardInterrupt):
        return "graders: interrupted; what was stored is whole, and the same command goes on from there."
    return (
        f"graders {command}: {type(error).__name__}: {error}. This is our fault.\n"
        "Next step: run it again with --debug and report the traceback."
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="graders", description="Grade notebooks from outside.")
    parser.add_argument("--course", type=Path, default=Path(), metavar="DIR", help="the course folder (default: here)")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(dest="command", required=True)
    release = commands.add_parser("release", help="source/ -> release/ and the gradebook")
    release.add_argument("assignments", nargs="+", metavar="A")
    release.add_argument("--force-gate", metavar="REASON", help="release what the gate refuses; the reason is logged")
    gate = commands.add_parser("gate", help="prove that an assignment grades well; writes .graders/gate/A.html")
    gate.add_argument("assignments", nargs="+", metavar="A")
    gate.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    simulate = commands.add_parser("simulate", help="a synthetic class into submitted/")
    simulate.add_argument("assignment", metavar="A")
    simulate.add_argument("--students", type=int, default=24, metavar="N")
    simulate.add_argument("--seed", type=int, default=0, metavar="S")
    grade = commands.add_parser("grade", help="examine submissions and store their scores")
    grade.add_argument("assignment", metavar="A")
    grade.add_argument("--student", action="append", metavar="ID", help="this student only; may be repeated")
    grade.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    grade.add_argument("--again", action="store_true", help="also what is graded and unchanged")
    grade.add_argument("--json", action="store_true", help="one object a line on stdout, nothing else")
    feedback = commands.add_parser("feedback", help="feedback/STUDENT/A/*.html")
    feedback.add_argument("assignment", metavar="A")
    commands.add_parser("doctor", help="try each forbidden thing from inside and say which wall holds")
    verify = commands.add_parser("verify", help="check a report against its signature and its submission")
    verify.add_argument("file", type=Path, metavar="FILE")
    bench = commands.add_parser("bench", help="cost per submission, beside nbgrader autograde in the same run")
    bench.add_argument(
        "--students", type=int, default=54, metavar="N", help="of which a quarter is hostile and left out"
    )
    commands.add_parser("demo", help="a class of 24 on performance-02, simulated and graded")
    return parser


def _release(options: argparse.Namespace) -> int:
    from graders.run import releasing

    settings = config.load(options.course)
    for name in options.assignments:
        found = releasing.release(settings, name, force=options.force_gate)
        _print_findings(found.findings)
        if found.reference is None:
            out.print(f"{name}: released, but its solution fails, so nothing handed in for it can be graded.")
            continue
        checks = sum(len(one) for one in found.reference.checks.values())
        out.print(f"{name}: released; its solution passes all {checks} checks. Students receive {found.folder}.")
        out.print(f"This was the quick part of the gate; all of it is: graders gate {name}")
    return 0


def _gate(options: argparse.Namespace) -> int:
    from graders.results import gatepage
    from graders.run import gating

    settings = config.load(options.course)
    refused = 0
    for name in options.assignments:
        with err.status(f"{name}: …") as status:
            made = gating.gate(
                settings, name, options.jobs, tell=lambda step, name=name: status.update(f"{name}: {step} …")
            )
        page = gatepage.write(settings.course, made)
        _print_gate(made)
        verdict = f"refused for {len(made.refused)} reasons" if made.refused else "the gate is open"
        out.print(f"{name}: {verdict}, {len(made.warnings)} warnings. The page: {page}", markup=False)
        refused += bool(made.refused)
    return 1 if refused else 0


def _print_gate(made: Gate) -> None:
    _print_findings(made.findings)
    table = Table("group", "looked at", "refused", "warnings", title=f"Gate of {made.assignment}", title_justify="left")
    for group, what in made.ran.items():
        own = [one for one in made.findings if one.group == group]
        refused = sum(one in made.refused for one in own)
        table.add_row(group, what, str(refused), str(len(own) - refused))
    out.print(table)
    if made.score is None:
        return
    table = Table("exercise", "check", "notices", "alone", title="Wrong answers", title_justify="left")
    for one in made.checks:
        table.add_row(one.exercise, one.title, str(one.killed), str(one.alone))
    out.print(table)
    for figures in made.exercises:
        left = figures.tried - figures.killed - figures.equivalent
        out.print(
            f"{figures.exercise}: {figures.tried} wrong answers, {figures.killed} noticed, {left} got full marks, "
            f"{figures.equivalent} explained as right."
        )
    for survivor in made.survivors:
        if not survivor.reason:
            told = "\n".join(f"    {line}" for line in survivor.diff.splitlines())
            out.print(f"Not noticed in {survivor.cell}: {survivor.what}\n{told}", markup=False)
    out.print(f"Mutation score: {made.score:.1%}")


def _print_findings(findings: Sequence[Finding]) -> None:
    for one in findings:
        where = f"{one.where}: " if one.where else ""
        out.print(f"{one.level.value}: [{one.rule}] {where}{one.text}", markup=False)


def _simulate(options: argparse.Namespace) -> int:
    from graders.course.notebooks import read_assignment
    from graders.course.simulate import simulate

    settings = config.load(options.course)
    assignment = read_assignment(settings.course, options.assignment)
    made = simulate(settings.course, assignment, settings.answers, options.students, options.seed)
    hostile = sum(not one.honest for one in made)
    out.print(
        f"{len(made)} submissions of {assignment.name} are in {settings.course / 'submitted'}; {hostile} are hostile."
    )
    return 0


def _grade(options: argparse.Namespace) -> int:
    settings = config.load(options.course)
    reports = grade(settings, options.assignment, options.student, options.jobs, options.again, options.json)
    if not options.json:
        _print_reports(reports)
    return _needs_person(reports)


def grade(
    settings: config.Settings,
    assignment: str,
    chosen: Sequence[str] | None,
    jobs: int,
    again: bool,
    json: bool,
    isolation: str | None = None,
) -> list[Report]:
    """Grade a class with a progress bar on a terminal, or one JSON line a report."""
    from graders.results.report import json_line
    from graders.run import grading

    found = grading.students(settings.course, assignment)
    for student in chosen or ():
        if student not in found:
            raise GradersError(
                f"{student!r} has handed in nothing for {assignment!r} below {settings.course / 'submitted'}. "
                f"Name one who has: {_some(found)}."
            )
    course = grading.prepare(settings, assignment, isolation)
    reports: list[Report] = []
    with _progress(len(chosen or found), hidden=json) as step:

        def done(report: Report) -> None:
            reports.append(report)
            step()
            if json:
                sys.stdout.write(json_line(report).decode() + "\n")
                sys.stdout.flush()

        grading.grade_class(settings, course, chosen or found, jobs, again, done)
    return sorted(reports, key=lambda one: one.student)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") or "nobody yet"


def _feedback(options: argparse.Namespace) -> int:
    settings = config.load(options.course)
    pages = write_feedback(settings.course, options.assignment)
    out.print(f"{len(pages)} pages are below {settings.course / 'feedback'}; the first is {pages[0]}.")
    return 0


def write_feedback(course: Path, assignment: str) -> list[Path]:
    """A page for every stored report of an assignment."""
    from graders.results import feedback
    from graders.run import grading

    reports = grading.stored(course, assignment)
    if not reports:
        raise GradersError(f"Nothing of {assignment!r} is graded in {course}. Next step: graders grade {assignment}.")
    return [page for report, notebooks in reports for page in feedback.write(course, report, notebooks)]


def _doctor(options: argparse.Namespace) -> int:
    from graders.kernels.nursery import LEVELS, best_level
    from graders.kernels.probes import doctor

    wanted = config.load(options.course).isolation if (options.course / "course_config.py").is_file() else "namespaces"
    best = best_level()
    failed = 0
    for level in reversed(LEVELS):
        if LEVELS.index(level) > LEVELS.index(best):
            out.print(f"Level {level}: cannot be put up on this machine.")
            continue
        table = Table("wall", "tried from inside", "", "seen", title=f"Level {level}", title_justify="left")
        for probe in doctor(level):
            failed += not probe.held
            table.add_row(probe.wall, probe.name, "holds" if probe.held else "OPEN", probe.detail)
        out.print(table)
    enough = LEVELS.index(best) >= LEVELS.index(wanted)
    verdict = "grading runs" if enough else "grading refuses to run"
    out.print(f"course_config.py demands {wanted!r}; the best level here is {best!r}: {verdict}.")
    return 0 if enough and not failed else 1


def _verify(options: argparse.Namespace) -> int:
    from graders.results.receipts import verify

    found = verify(options.file, options.course.resolve())
    out.print(
        f"{options.file}: {found.assignment} of {found.student}, {found.status}, is what was signed at grading "
        f"({found.started}), and so is the submission. Key {found.key[:16]}…"
    )
    return 0


def _demo(options: argparse.Namespace) -> int:
    from graders.kernels.nursery import best_level
    from graders.run import demo

    level = best_level()
    err.print("Making a course of its own with a class of 24 …")
    settings, made = demo.prepare(config.load(options.course), level)
    if level != "namespaces":
        err.print(
            f"The walls of level 'namespaces' cannot be put up here; the class is our own, so it runs with {level!r}."
        )
    reports = grade(settings, demo.ASSIGNMENT, None, os.cpu_count() or 1, True, False, isolation=level)
    pages = write_feedback(settings.course, demo.ASSIGNMENT)
    _print_reports(reports, {one.student: one.what for one in made})
    expected = {one.student: one.total for one in made}
    wrong = [one.student for one in reports if one.score != expected[one.student]]
    out.print(f"Walls: {level}. {len(reports) - len(wrong)} of {len(reports)} scores are the known ones.")
    if wrong:
        out.print(f"Not as known: {', '.join(wrong)}.")
    out.print(f"Pages to open, one a student, such as:\n  {pages[0]}\n  {pages[-1]}")
    return 1 if wrong else 0


def _bench(options: argparse.Namespace) -> int:
    from graders.kernels.nursery import best_level
    from graders.run import bench

    level = best_level()
    costs, honest = bench.measure(config.load(options.course), level, options.students)
    table = Table(
        "command", "CPU-s a submission", "wall-s a submission", title=f"{honest} honest submissions, walls: {level}"
    )
    for one in costs:
        table.add_row(one.what, f"{one.cpu_s:.2f}", f"{one.wall_s:.2f}")
    out.print(table)
    ours, theirs = bench.medians(costs).values()
    out.print(
        f"Medians: {theirs.cpu_s / ours.cpu_s:.1f} times fewer CPU-seconds, {theirs.wall_s / ours.wall_s:.1f} times the throughput."
    )
    return 0


def _print_reports(reports: Sequence[Report], what: dict[str, str] | None = None) -> None:
    table = Table("student", "status", "score", "exercises", "to look at", *(["what was handed in"] if what else []))
    for report in reports:
        exercises = " ".join("·" if one.score is None else f"{one.score:g}" for one in report.exercises)
        score = "" if report.score is None else f"{report.score:g} of {report.max_score:g}"
        row = [report.student, report.status.value, score, exercises, _to_look_at(report)]
        table.add_row(*row, *([what[report.student]] if what else []))
    out.print(table)


def _to_look_at(report: Report) -> str:
    if report.reason:
        return report.reason
    reasons = [one.reason for one in report.exercises if one.reason]
    return "; ".join([*reasons, *(flag.name for flag in report.flags)])


def _needs_person(reports: Sequence[Report]) -> int:
    calm = {"not_attempted"}
    return int(any(one.status is not Status.graded or any(_serious(f, calm) for f in one.flags) for one in reports))


def _serious(flag: Flag, calm: set[str]) -> bool:
    return flag.name not in calm


@contextmanager
def _progress(total: int, hidden: bool) -> Iterator[Callable[[], None]]:
    columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, disable=hidden or not err.is_terminal, transient=True) as bar:
        task = bar.add_task("grading", total=total)
        yield lambda: bar.advance(task)


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "release": _release,
    "gate": _gate,
    "simulate": _simulate,
    "grade": _grade,
    "feedback": _feedback,
    "doctor": _doctor,
    "verify": _verify,
    "demo": _demo,
    "bench": _bench,
}

if __name__ == "__main__":
    sys.exit(main())
