"""Pages of every kind, as a reader may get them: full marks, partly, not graded, blank, hostile, with flags, and those of staff."""

from __future__ import annotations

import base64
import struct
import zlib
from decimal import Decimal

import msgspec
from page_reader import HOSTILE
from result_samples import failed, passed, performance_report

from graders.compilations import Compilation, CompiledProgram, CompileOutcome, Figures
from graders.findings import CheckFigures, ExerciseFigures, Finding, Gate, Level, Survivor
from graders.records import (
    CheckResult,
    ExerciseResult,
    Flag,
    Kind,
    Outcome,
    Picture,
    Place,
    Receipt,
    Report,
    Shown,
    Status,
)
from graders.results import feedback, gatepage, overviewpage, portfoliopage
from graders.results.classbook import Entry, Person
from graders.results.likeness import Group, together
from graders.results.marks import Mark, Marks
from graders.results.overview import build
from graders.results.portfolio import Portfolio, Statement, Work

replace = msgspec.structs.replace
WHY = "Filling the padding with zeros keeps the sum, but the mean then divides by $n$ and not by $\\sum_i m_i$."
RECEIPT = Receipt(
    "0.1.0", "3.11.9", "cpu", "sealed", "namespaces",
    (Place("candidate", "cpu", ("TFRT_CPU_0",), "namespaces", (), "3.11.9", "0.9.2", "0.9.2"),),
    "a" * 64, "b" * 64, "c" * 64, 0, "2026-11-12T14:06:00+00:00", 1.4, 1.2, {},
)  # fmt: skip


def mixed() -> Report:
    """Exercises, a written answer that waits, and two checkpoints, one of them not yet proven; checks of every outcome."""
    report = performance_report()
    ledger, masked, branch = report.exercises
    why = ExerciseResult(
        "why", "performance-02", Kind.exercise, None, Decimal(2), manual=True, answers=("why",), answer=WHY
    )
    ended = replace(
        masked,
        id="scan-totals-test",
        score=Decimal(0),
        checks=(
            failed("Running totals of five values", 1, "Write the five totals down by hand."),
            CheckResult("A second call compiles nothing", Outcome.not_run, Decimal(1), Decimal(0)),
            CheckResult("The dtype is kept", Outcome.broken, Decimal(1), Decimal(0)),
        ),
        max_score=Decimal(3),
        outcome="Carry a value through scan",
        advice="Your code uses the value of a traced array in a Python `if`. Use jax.lax.cond, or jnp.where for arrays.",
        answer="def totals(values):\n    return jax.lax.scan(step, 0.0, values)[1]",
    )  # fmt: skip
    exercises = (
        ledger,
        masked,
        ended,
        why,
        replace(branch, kind=Kind.checkpoint),
        replace(ledger, id="prove-padding-test", kind=Kind.checkpoint, outcome="Keep an objective while padding"),
    )
    return replace(report, exercises=exercises, score=Decimal(12), max_score=Decimal(21), receipt=RECEIPT, flags=(
        Flag("older_release", "Your notebook comes from an earlier release of this assignment. Everything in it was graded."),
        Flag("awaits_marking", "Some answers are read and marked by a person, who has not done so yet."),
    ))  # fmt: skip


def figures(**found: float) -> Figures:
    """What a compiler says of a program of eight numbers, or of another with these figures."""
    names = ("argument_bytes", "output_bytes", "temporary_bytes", "code_bytes")
    counts = dict.fromkeys((*names, "choices", "conditionals", "repetitions", "loops", "fusions", "masks"), 0)
    made = {"compile_s": 0.05, "flops": 31.0, "bytes_accessed": 1536.0, "intensity": 0.0202, "bound": 16.5e9}
    return Figures(**{"memory_bound": True} | made | counts | found)


def compiled() -> Report:
    """Two exercises whose functions were compiled for a TPU, one of them with shapes that only hidden tests use."""
    right = CompileOutcome.compiled
    programs = (
        CompiledProgram("masked-score-test", "masked_score", ("float32[8]", "bool[8]"), (), True, right, "", figures(masks=1)),
        CompiledProgram("branch-repair-test", "repaired", ("float32[77]",), ("grad",), False, right, "", figures(choices=1)),
    )  # fmt: skip
    made = Compilation("v5e:1x1", "TPU v5e", 197e12, 819e9, "libtpu 0.0.52", 0.2, programs)
    return replace(performance_report(), receipt=replace(RECEIPT, target="tpu-compile", compilation=made))


def full() -> Report:
    """Everything is right."""
    report = performance_report()
    right = tuple(
        replace(one, score=one.max_score, checks=tuple(passed(check.title, 1) for check in one.checks))
        for one in report.exercises
    )
    return replace(report, exercises=right, score=Decimal(12), flags=())


def unreadable() -> Report:
    """A file that cannot be read."""
    reason = "performance-02.ipynb is not complete JSON (Unterminated string); it was probably cut off while saving."
    return replace(
        performance_report(), status=Status.not_graded, score=None, exercises=(), reason=reason,
        arrived=("performance-02.ipynb, 14 kB", "notes.txt, 80 bytes"), flags=(),
    )  # fmt: skip


def blank() -> Report:
    """As it was handed out."""
    report = performance_report()
    untouched = tuple(
        replace(one, score=Decimal(0), attempted=False, answer="raise NotImplementedError()", checks=tuple(
            CheckResult(check.title, Outcome.not_run, check.points, Decimal(0)) for check in one.checks
        ))
        for one in report.exercises
    )  # fmt: skip
    flags = (Flag("not_attempted", "Every answer is still as it was handed out."),)
    return replace(report, exercises=untouched, score=Decimal(0), flags=flags, submitted=None)


def hostile() -> Report:
    """Markup and endless words wherever a student or a course may put text."""
    text = "\n".join([*HOSTILE, "x" * 3000, "\u202e\x1b[31m"])
    check = CheckResult(text, Outcome.failed, Decimal(1), Decimal(0), hint=text)
    report = performance_report()
    exercises = tuple(
        replace(one, id=f"{number}-{text}", outcome=text, answer=text, reason=text, advice=text, checks=(check,))
        for number, one in enumerate(report.exercises)
    )
    return replace(report, student="x" * 200, exercises=exercises, flags=(Flag("older_release", text),))


def picture(width: int, height: int) -> bytes:
    """A PNG of one grey, as any encoder writes it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\x99" * width) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def outputs() -> dict[str, dict[str, Shown]]:
    """What two answers showed: text, and a figure wider than a phone."""
    png = base64.b64encode(picture(640, 300)).decode()
    ledger = Shown("Added ledger row: ('new length sixteen', (16,), 'float32', 1.0, 1)")
    return {"performance-02": {"ledger-x16": ledger, "masked-score": Shown("", (Picture(png, 640, 300),))}}


def marks() -> Marks:
    """What a person gave."""
    given = Mark(Decimal("1.5"), comment="Say where the factor comes from.", answer=WHY)
    changed = Mark(Decimal(2), answer="another text")
    name = "performance-02"
    return Marks({(name, "why"): given, (name, "masked-score-test"): changed}, Decimal(1))


def a_class(size: int = 24) -> list[Entry]:
    """A class in which something of everything happened."""
    flags = (Flag("protocol_broken", "Nothing that a notebook sends."), Flag("file_renamed", "It had another name."))
    texts = (WHY, WHY + " So it is too small.", "Because.", "<b>No idea</b>")
    found = []
    for number in range(size):
        report = replace([mixed, full, blank, performance_report][number % 4](), student=f"student-{number:02}")
        if number % 8 == 0:
            why = replace(report.exercises[3], answer=texts[number // 8 % 4])
            report = replace(report, exercises=(*report.exercises[:3], why, *report.exercises[4:]), flags=flags)
        found.append(
            Entry(
                Person(report.student),
                report.assignment,
                "graded",
                report.score,
                report.max_score,
                report=report,
                latest=report,
            )
        )
    lost = replace(unreadable(), student="student-90")
    found.append(
        Entry(Person("student-90"), lost.assignment, "not_graded", None, Decimal(12), reason=lost.reason, latest=lost)
    )
    found.append(Entry(Person("student-91"), lost.assignment, "missing", None, Decimal(12)))
    return found


def class_page() -> str:
    """The page of that class."""
    alike = Group("masked-score-test", ("student-00", "student-03"), 0.97)
    made = build("performance-02", a_class(), [alike], together)
    return overviewpage.render(made, "2026-11-20T08:00:00+00:00", lambda student: f"../feedback/{student}.html")


def portfolio() -> str:
    """A portfolio of three assignments."""
    works = (
        Work(
            mixed(),
            "d" * 64,
            ("performance-02/performance-02.ipynb",),
            (Statement("performance-02", {"calls": [1, 2]}),),
        ),
        Work(replace(full(), assignment="transforms-05"), note="It was not run again."),
        Work(replace(unreadable(), assignment="audit")),
    )
    return portfoliopage.render(Portfolio("student-01", "2026-11-20T08:00:00+00:00", works))


def gate() -> str:
    """A gate that refuses, with something in every table."""
    where = ("performance-02", "masked-score-test", 3, "The value 58 is tested alone; vary what you ask. " + "x" * 300)
    made = Gate(
        "performance-02", "e" * 64, "2026-11-20T08:00:00+00:00",
        {"reference": "5 seeds", "answers": "40 answers", "mutants": "60 wrong answers"},
        (Finding("leaks: shown", Level.error, *where), Finding("seal: number alone", Level.warning, *where)),
        (ExerciseFigures("masked-score-test", 60, 58, 1),),
        (CheckFigures("masked-score-test", "Five values padded to eight give the score of five", 40, 12),),
        (Survivor("masked-score-test", "masked-score", "a plus became a minus", "- a + b" + " + c" * 100 + "\n+ a - b"),),
    )  # fmt: skip
    return gatepage.render(made)


def pages() -> dict[str, str]:
    """Every page, by what it is."""
    standing = replace(unreadable(), flags=(Flag("earlier_stands", "What you handed in before stays graded."),))
    return {
        "full": feedback.render(full()),
        "compiled": feedback.render(compiled()),
        "partly": feedback.render(mixed(), outputs=outputs()),
        "marked": feedback.render(mixed(), marks=marks()),
        "unreadable": feedback.render(unreadable()),
        "standing": feedback.render(standing, before=mixed()),
        "blank": feedback.render(blank()),
        "hostile": feedback.render(hostile()),
        "class": class_page(),
        "portfolio": portfolio(),
        "gate": gate(),
    }
