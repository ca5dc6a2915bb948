"""The command line: its options, its messages, its exit status. Nothing imports it.

Exit status: 0 done; 1 something needs a person; 2 we failed, with a message that says what, where, wanted and next step.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from graders.commands import authoring, classes, grading, handins, machine, reviewing, watching
from graders.commands.terminal import err
from graders.errors import GradersError
from graders.results.folders import is_full, no_room

_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "release": authoring.release,
    "gate": authoring.gate,
    "record": authoring.record,
    "simulate": authoring.simulate,
    "submit": handins.submit,
    "collect": handins.collect,
    "grade": grading.grade,
    "regrade": grading.regrade,
    "watch": watching.watch,
    "feedback": handins.feedback,
    "overview": classes.overview,
    "review": reviewing.review,
    "export": classes.export,
    "forget": classes.forget,
    "evidence": grading.evidence,
    "doctor": machine.doctor,
    "verify": grading.verify,
    "demo": machine.demo,
    "bench": machine.bench,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(argv)
    try:
        status = int(_COMMANDS[options.command](options))
        sys.stdout.flush()  # what cannot be written is told
        return status
    except (Exception, KeyboardInterrupt) as error:
        err.print(_message(options, error), markup=False)
        if options.debug:
            traceback.print_exception(error)
    return 2


def _message(options: argparse.Namespace, error: BaseException) -> str:
    command = options.command
    if isinstance(error, GradersError):
        return f"graders {command}: {error}"
    if isinstance(error, OSError) and is_full(error):
        return f"graders {command}: {no_room(error, Path(error.filename)) if error.filename else _lost_output(error)}"
    if isinstance(error, KeyboardInterrupt):
        return "graders: interrupted; what was stored is whole, and the same command goes on from there."
    return (
        f"graders {command}: {type(error).__name__}: {error}. This is our fault.\n"
        "Next step: run it again with --debug and report the traceback."
    )


def _lost_output(error: OSError) -> str:
    """What is written to a file names the file, so this was printed. From now on nothing is, or Python would complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return f"standard output could not be written: {error.strerror}. Next step: send it elsewhere, and run it again."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="graders", description="Grade notebooks from outside.")
    parser.add_argument("--course", type=Path, default=Path(), metavar="DIR", help="the course folder (default: here)")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_authoring(commands)
    _add_handins(commands)
    _add_grading(commands)
    _add_machine(commands)
    return parser


def _add_authoring(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    release = commands.add_parser("release", help="source/ -> release/ and the gradebook")
    release.add_argument("assignments", nargs="+", metavar="A")
    release.add_argument("--force-gate", metavar="REASON", help="release what the gate refuses; the reason is logged")
    gate = commands.add_parser("gate", help="prove that an assignment grades well; writes .graders/gate/A.html")
    gate.add_argument("assignments", nargs="+", metavar="A")
    gate.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    record = commands.add_parser("record", help="our own run of a released assignment, kept beside its release")
    record.add_argument("assignments", nargs="+", metavar="A")
    record.add_argument("--target", default="cpu", metavar="NAME", help="where it runs: docs/tpu.md")
    simulate = commands.add_parser("simulate", help="a synthetic class into submitted/")
    simulate.add_argument("assignment", metavar="A")
    simulate.add_argument("--students", type=int, default=24, metavar="N")
    simulate.add_argument("--seed", type=int, default=0, metavar="S")


def _add_handins(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    submit = commands.add_parser("submit", help="hand in the folder A, with a receipt of what was found in it")
    submit.add_argument("assignment", metavar="A")
    submit.add_argument("--course-id", metavar="NAME", help="the course, where no settings file names it")
    submit.add_argument("--query", metavar="TEXT", help="ask a person for a second look")
    collect = commands.add_parser("collect", help="what was handed in, from nbgrader's exchange into submitted/")
    collect.add_argument("assignment", metavar="A")
    source = "instead from a download of Canvas, Moodle or Gradescope"
    collect.add_argument("--from", dest="download", type=Path, metavar="ZIP_OR_DIR", help=source)
    feedback = commands.add_parser("feedback", help="feedback/STUDENT/A/*.html")
    feedback.add_argument("assignment", metavar="A")
    feedback.add_argument("--release", action="store_true", help="also into nbgrader's exchange, each to its student")


def _add_grading(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    grade = commands.add_parser("grade", help="examine submissions and store their scores")
    regrade = commands.add_parser("regrade", help="examine again and show who would change and why")
    for command in (grade, regrade):
        command.add_argument("assignment", metavar="A")
        command.add_argument("--student", action="append", metavar="ID", help="this student only; may be repeated")
        command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    grade.add_argument(
        "--target", default="cpu", metavar="NAME", help="cpu, tpu, tpu-export or tpu-compile: docs/tpu.md"
    )
    grade.add_argument("--executor", choices=("local", "dask"), default="local", help="where examinations run")
    grade.add_argument("--scheduler", metavar="ADDR", help="of the Dask cluster, such as tcp://host:8786")
    grade.add_argument("--again", action="store_true", help="also what is graded and unchanged")
    grade.add_argument("--json", action="store_true", help="one object a line on stdout, nothing else")
    regrade.add_argument("--apply", action="store_true", help="then grade those again and store it")
    overview = commands.add_parser("overview", help="one page for the class, for staff: autograded/A.html")
    overview.add_argument("assignment", metavar="A")
    _add_review(commands)
    export = commands.add_parser("export", help="scores as CSV or JSON, or as Canvas and Moodle import them")
    export.add_argument("assignments", nargs="*", metavar="A", help="all, if none is named")
    export.add_argument("--format", choices=("csv", "json", "canvas", "moodle"), required=True)
    export.add_argument("--output", type=Path, metavar="FILE", help="instead of standard output")
    watch = commands.add_parser("watch", help="collect, grade and return feedback, as submissions arrive")
    watch.add_argument("assignment", metavar="A")
    watch.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    forget = commands.add_parser("forget", help="delete a student's data everywhere, and say what was deleted")
    forget.add_argument("student", metavar="STUDENT", help="the id; after --, if it begins with a dash")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    evidence = commands.add_parser("evidence", help="a student's portfolio: evidence/STUDENT/portfolio.html")
    evidence.add_argument("student", metavar="STUDENT")


def _add_review(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    review = commands.add_parser("review", help="the queue of flags; every change is noted in the journal")
    review.add_argument("assignment", metavar="A")
    act = review.add_mutually_exclusive_group()
    act.add_argument("--accept", nargs=2, metavar=("STUDENT", "FLAG"), help="seen, and nothing is to be done")
    act.add_argument(
        "--override", nargs=3, metavar=("STUDENT", "EXERCISE", "POINTS"), help="a person's points; needs --reason"
    )
    act.add_argument("--rerun", metavar="STUDENT", help="examine once more what was handed in")
    review.add_argument("--reason", metavar="TEXT", help="goes into the journal, for staff")


def _add_machine(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="try each forbidden thing from inside and say which wall holds")
    doctor.add_argument(
        "--target", metavar="NAME", help="instead say what this machine has of that target, in milliseconds"
    )
    verify = commands.add_parser("verify", help="check a report against its signature, or an execution record")
    verify.add_argument("file", type=Path, metavar="FILE")
    bench = commands.add_parser(
        "bench", help="cost per submission, beside nbgrader, otter-grader and a floor in one run"
    )
    bench.add_argument("--students", type=int, default=32, metavar="N", help="of which six are hostile and left out")
    bench.add_argument("--rounds", type=int, default=3, metavar="N", help="of every contender, in turn")
    commands.add_parser("demo", help="a class of 24 on performance-02, simulated and graded")


if __name__ == "__main__":
    sys.exit(main())
