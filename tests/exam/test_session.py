"""Laws of the examination: what a submission does to itself costs the exercise that did it, and nothing else."""

from __future__ import annotations

import gc
import os
import resource
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from written_cells import answer, assignment, handed_in, judge, locked

from graders.coursework import ReleasedCell
from graders.exam.pair import Conditions
from graders.exam.plan import seal
from graders.exam.session import examine
from graders.kernels.client import Kernel
from graders.kernels.nursery import Limits, Zygote, best_level
from graders.records import Outcome
from graders.run import pipeline
from graders.runs import CellRun, Ended, Run, TestRun

MIB = 2**20
OUTPUT_BYTES = 20_000


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """A zygote that knows candidates and examiners."""
    with pipeline.new_zygote() as started:
        yield started


@pytest.fixture(scope="module")
def conditions() -> Conditions:
    """Small limits behind the best walls of this machine."""
    return Conditions(
        best_level(),
        Limits(memory_bytes=600 * MIB),
        cell_timeout_s=2.0,
        submission_timeout_s=60.0,
        output_bytes=OUTPUT_BYTES,
    )


@pytest.fixture
def run(zygote: Zygote, conditions: Conditions) -> Examine:
    """Examine a notebook of the author in which a student wrote these answers."""
    return Examine(zygote, conditions)


class Examine:
    """Runs one examination. Keyword arguments are other conditions."""

    def __init__(self, zygote: Zygote, conditions: Conditions) -> None:
        self._zygote = zygote
        self._conditions = conditions

    def __call__(self, cells: Sequence[ReleasedCell], answers: dict[str, str], **conditions: object) -> Run:
        given = assignment(cells)
        held = msgspec.structs.replace(self._conditions, **conditions)
        return examine(seal(given, handed_in(given, answers)), held, self._zygote)


def exercises(*ids: str) -> list[ReleasedCell]:
    """For each id an answer, `id = 1` by the author, and a test of it."""
    return [cell for id in ids for cell in (answer(id, f"{id} = 1"), judge(f"{id}-test", f"assert {id} == 1"))]


def right(*ids: str) -> dict[str, str]:
    """Right answers to `exercises`."""
    return {id: f"{id} = 1" for id in ids}


def cell_of(found: Run, id: str) -> CellRun:
    """The run of the cell with this id."""
    return next(cell for cell in found.cells if cell.id == id)


def test_of(found: Run, id: str) -> TestRun:
    """The run of the test of this exercise."""
    return next(test for test in found.tests if test.id == f"{id}-test")


test_of.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest's


def passed(found: Run) -> set[str]:
    """The exercises whose tests passed."""
    good = (one for one in found.tests if one.ended is Ended.ok and one.problem is None)
    return {
        one.id.removesuffix("-test") for one in good if all(check.outcome is Outcome.passed for check in one.checks)
    }


def text_of(cell: CellRun) -> str:
    """All that the cell printed."""
    return "".join(str(one.get("text", "")) for one in cell.outputs)


DEATHS = {
    "leaves": "import os\nos._exit(0)",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "kills": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\nos._exit(9)",
    "grows": "held = []\nwhile True: held.append(b'x' * 2**26)",
}


def test_a_death_costs_the_exercise_that_did_it(run: Examine) -> None:
    """os._exit, a crash, SIGKILL and a memory bomb: each loses its own exercise, and those between lose nothing."""
    names = [name for death in DEATHS for name in (f"before_{death}", death)]
    found = run(exercises(*names, "last"), right(*names, "last") | DEATHS, cell_timeout_s=5.0)
    assert {name: cell_of(found, name).ended for name in DEATHS} == {
        "leaves": Ended.died,
        "crashes": Ended.died,
        "kills": Ended.died,
        "grows": Ended.memory,
    }
    assert passed(found) == {*(f"before_{death}" for death in DEATHS), "last"}
    assert found.restarts == len(DEATHS)
    assert 600 * MIB < found.peak_bytes < 750 * MIB  # spent by the greediest
    assert all(cell_of(found, name).reason for name in DEATHS)
    assert "600 MiB" in (cell_of(found, "grows").reason or "")
    assert all(cell.reason is None for cell in found.cells if cell.id not in DEATHS)


HANGS = {
    "loops": "while True: pass",
    "swallows": "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass",
    "compiled": "import jax\njax.lax.while_loop(lambda v: v < 7, lambda v: (v + 1) % 5, 1).block_until_ready()",
    "sleeps": "import time\ntime.sleep(600)",
}


def test_a_hang_costs_the_exercise_that_did_it(run: Examine) -> None:
    """Endless loops, interruptible or not, are stopped at the budget of a cell, and the others lose nothing."""
    begun = time.monotonic()
    names = [name for hang in HANGS for name in (f"before_{hang}", hang)]
    found = run(exercises(*names, "last"), right(*names, "last") | HANGS)
    assert {name: cell_of(found, name).ended for name in HANGS} == dict.fromkeys(HANGS, Ended.timeout)
    assert all("2 s" in (cell_of(found, name).reason or "") for name in HANGS)
    assert passed(found) == {*(f"before_{hang}" for hang in HANGS), "last"}
    assert all(2.0 <= cell_of(found, name).seconds < 7.0 for name in HANGS)
    assert time.monotonic() - begun < 30


def test_a_function_that_dies_or_hangs_when_a_test_calls_it_costs_that_test(run: Examine) -> None:
    """Death, hang and a memory bomb inside a call are told at the test, and other tests of other answers go on."""
    calls = {
        "dies": "def dies():\n    import os\n    os._exit(3)",
        "hangs": "def hangs():\n    while True: pass",
        "stubborn": "def stubborn():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        "grows": "def grows():\n    held = []\n    while True: held.append(b'x' * 2**26)",
    }
    cells = [one for name in calls for one in (answer(name, ""), judge(f"{name}-test", f"assert {name}() == 1"))]
    found = run([*cells, *exercises("last")], right("last") | calls, cell_timeout_s=3.0)
    assert {name: test_of(found, name).ended for name in calls} == {
        "dies": Ended.died,
        "hangs": Ended.timeout,
        "stubborn": Ended.timeout,
        "grows": Ended.memory,
    }
    assert all("called by a test" in (test_of(found, name).reason or "") for name in calls)
    assert passed(found) == {"last"}
    assert all(cell.ended is Ended.ok for cell in found.cells)


def test_what_would_leave_or_ask_is_an_error_of_its_cell(run: Examine) -> None:
    """sys.exit, quit, exit, input, breakpoint and %debug end their cell, not the notebook, and ask nobody."""
    odd = {
        "leaves": "import sys\nsys.exit(3)",
        "raises": "raise SystemExit",
        "quits": "quit()",
        "exits": "exit()",
        "asks": "input('a? ')",
        "secret": "import getpass\ngetpass.getpass()",
        "stops": "breakpoint()",
        "inspects": "try:\n    1 / 0\nexcept ZeroDivisionError: pass\n%debug",
        "broken": "1 / 0",
        "debugs": "%debug",
        "unknown": "%no_such_magic",
        "syntax": "def (",
        "interrupts": "raise KeyboardInterrupt",
        "exits_group": "raise BaseExceptionGroup('g', [SystemExit()])",
    }
    found = run(exercises(*odd, "last"), right("last") | odd)
    assert all(cell_of(found, name).ended in (Ended.ok, Ended.error) for name in odd)
    assert found.restarts == 0
    names = {id: getattr(cell_of(found, id).problem, "name", None) for id in odd}
    assert names["leaves"] == names["raises"] == names["quits"] == names["exits"] == "SystemExit"
    assert names["asks"] == names["secret"] == "StdinNotImplementedError"
    assert names["broken"] == "ZeroDivisionError"
    assert names["syntax"] == "SyntaxError"
    assert names["interrupts"] == "KeyboardInterrupt"
    assert passed(found) == {"last"}


def test_output_is_cut_with_head_and_tail_kept(run: Examine) -> None:
    """200,000 lines, one line of 30 MB, and many results: each is cut near the limit and the next cell is whole."""
    floods = {
        "lines": "for i in range(200_000): print(i)",
        "line": "print('<' + 'x' * 30_000_000 + '>')",
        "both": "import sys\nfor i in range(20_000): print('out', i); print('err', i, file=sys.stderr)",
        "shows": "for i in range(300): display('x' * 1000)",
        "huge": "'y' * 30_000_000",
        "traceback": "raise ValueError('z' * 3_000_000)",
    }
    answers = right(*floods, "last") | {id: f"{id} = 1\n{text}" for id, text in floods.items()}
    found = run(exercises(*floods, "last"), answers, cell_timeout_s=30.0)
    assert passed(found) == {*floods, "last"}
    for name in floods:
        size = len(msgspec.json.encode(cell_of(found, name).outputs))
        assert size < 6 * OUTPUT_BYTES, name
    lines = text_of(cell_of(found, "lines")).splitlines()
    assert (lines[0], lines[-1]) == ("0", "199999")
    line = text_of(cell_of(found, "line"))
    assert line.startswith("<x")
    assert line.rstrip().endswith("x>")
    assert "cut" in line
    assert cell_of(found, "last").outputs == ()


def resident_bytes() -> int:
    """What this process holds in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "flood",
    [
        "while True: print('x' * 1000)",
        "import os\nwhile True: os.write(1, b'x' * 65536)",
        "while True: display('x' * 1000)",
        "send = get_ipython().kernel.iopub_socket.send_multipart\nwhile True: send([b'x' * 2**20] * 4)",
    ],
    ids=["print", "descriptor", "display", "forged"],
)
def test_endless_output_leaves_our_memory_flat(run: Examine, flood: str) -> None:
    """A cell that prints until it is stopped costs this process less than 50 MB, at any moment."""
    run(exercises("warm"), {})
    resource_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    before = resident_bytes()
    found = run(exercises("flood", "last"), {"flood": flood} | right("last"))
    assert resident_bytes() - before < 50 * MIB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert peak <= resource_before or peak - before < 50 * MIB
    assert cell_of(found, "flood").ended in (Ended.timeout, Ended.memory)
    assert passed(found) == {"last"}


def test_budget_of_the_submission_ends_what_is_left(run: Examine) -> None:
    """When the time for the whole submission is used up, the rest is told so and not run, and what was judged stays."""
    hang = "import time\ntime.sleep(600)"
    found = run(
        exercises("good", "one", "two", "three", "late"),
        right("good", "late") | dict.fromkeys(("one", "two", "three"), hang),
        submission_timeout_s=5.0,
    )
    assert passed(found) == {"good"}
    assert cell_of(found, "one").ended is Ended.timeout
    assert cell_of(found, "three").ended is Ended.budget
    assert cell_of(found, "late").ended is test_of(found, "late").ended is Ended.budget
    assert "5 s" in (test_of(found, "late").reason or "")


def test_the_last_cell_is_stopped_by_the_budget_and_told_so(run: Examine) -> None:
    """A cell or a call that the submission's budget stops is told that budget, not the one of a cell."""
    found = run(exercises("one"), {"one": "while True: pass"}, cell_timeout_s=60.0, submission_timeout_s=2.5)
    assert cell_of(found, "one").ended is Ended.budget
    assert "2.5 s" in (cell_of(found, "one").reason or "")
    cells = [answer("f", ""), judge("f-test", "f()")]
    found = run(cells, {"f": "def f():\n    while True: pass"}, cell_timeout_s=60.0, submission_timeout_s=2.5)
    assert test_of(found, "f").ended is Ended.budget
    assert "2.5 s" in (test_of(found, "f").reason or "")


LATER = """
import os, threading, time

def later():
    time.sleep(1)
    os._exit(1)

threading.Thread(target=later, daemon=True).start()
"""


def test_a_death_in_a_locked_cell_is_blamed_on_the_answer_before_it(run: Examine) -> None:
    """The instructor's cells do not kill: it was the last answer before, and the locked cell runs again."""
    cells = [
        *exercises("early"),
        answer("a", "a = 1"),
        locked("slow", "import time\ntime.sleep(1.5)\nslow = 1"),
        judge("a-test", "assert a == slow == 1"),
        *exercises("last"),
    ]
    found = run(cells, right("early", "last") | {"a": "a = 1" + LATER})
    assert cell_of(found, "a").ended is Ended.died
    assert cell_of(found, "a").reason
    assert cell_of(found, "slow").ended is Ended.ok
    assert passed(found) == {"early", "last"}


LATE = {
    "thread": "thread = 1" + LATER,
    "watchdog": "import faulthandler\nfaulthandler.dump_traceback_later(1, exit=True)\nwatchdog = 1",
    "loop": "import asyncio\nasyncio.get_event_loop().stop()\nloop = 1",
}


@pytest.mark.parametrize("name", LATE)
def test_what_kills_a_while_later_costs_its_own_exercise(run: Examine, name: str) -> None:
    """A thread, timer, child or callback that ends the process during an honest cell or test costs that one nothing."""
    slow = "import time\ntime.sleep(1.3)\nslow = 1"
    lazy = "import time\ndef lazy():\n    time.sleep(1.3)\n    return 1"
    cells = [
        *exercises("before", name),
        answer("lazy", ""),
        judge("lazy-test", "assert lazy() == 1"),
        *exercises("slow", "last"),
    ]
    answers = right("before", "last") | {name: LATE[name], "slow": slow, "lazy": lazy}
    found = run(cells, answers, cell_timeout_s=10.0)
    assert {"before", "lazy", "slow", "last"} <= passed(found)
    assert cell_of(found, name).ended is Ended.died
    assert all(cell.reason is None for cell in found.cells if cell.id != name)


def test_a_candidate_that_ends_right_after_its_answer_died(run: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is gone when its answer is read is a death, told at the cell that caused it."""
    collect = Kernel._collect

    def late(kernel: Kernel, *args: Any) -> Any:
        found = collect(kernel, *args)
        kernel.exit(0.5)
        return found

    monkeypatch.setattr(Kernel, "_collect", late)
    stop = "import asyncio\nasyncio.get_event_loop().stop()\nstop = 1"
    found = run(exercises("before", "stop", "last"), right("before", "last") | {"stop": stop})
    assert {"before", "last"} <= passed(found)
    assert [cell_of(found, id).ended for id in ("before", "stop", "last")] == [Ended.ok, Ended.died, Ended.ok]
    assert cell_of(found, "stop").reason


def test_a_death_while_cells_are_run_again_is_told_at_its_cell(run: Examine) -> None:
    """A cell that ended well the first time and kills the candidate when it is run again is told so as well."""
    turn = time.time() + 3
    moody = f"import os, time\na = 1\nif time.time() > {turn}: os._exit(1)"
    deadly = f"import os, time\ntime.sleep(max(0.1, {turn} + 0.1 - time.time()))\nos._exit(1)"
    found = run(exercises("a", "b", "c"), {"a": moody, "b": deadly, "c": "c = 1"}, cell_timeout_s=10.0)
    assert [cell_of(found, id).ended for id in "abc"] == [Ended.died, Ended.died, Ended.ok]
    assert cell_of(found, "a").reason
    assert passed(found) == {"a", "c"}


def hidden(visible: str, secret: str) -> str:
    """The text of a test with a hidden region."""
    return f"{visible}\n### BEGIN HIDDEN TESTS\n{secret}\n### END HIDDEN TESTS\n"


def test_only_what_follows_a_hidden_call_is_for_staff(run: Examine) -> None:
    """A cell is marked once a hidden test has called student code; reading a value or a visible call marks nothing."""
    cells = [
        answer("one", "one = 1"),
        judge("one-test", hidden("", "assert one == 1")),
        answer("two", "def two(): return 2"),
        judge("two-test", "assert two() == 2"),
        answer("three", "def three(): return 3"),
        judge("three-test", hidden("", "assert three() == 3")),
        answer("four", "four = 4"),
    ]
    found = run(
        cells, {cell.id: cell.source for cell in cells if cell.id and cell.id in ("one", "two", "three", "four")}
    )
    assert passed(found) == {"one", "two", "three"}
    assert [cell.after_hidden for cell in found.cells] == [False, False, False, True]


SHOWS = """
from IPython.display import HTML, SVG, Javascript, Latex, Markdown, display
import numpy as np
for kind in (HTML, Markdown, Latex, Javascript): display(kind("<b>marked</b>"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg'/>"))
display({"text/html": "<script>marked</script>", "text/plain": "plain"}, raw=True)
display({"application/vnd.jupyter.widget-view+json": {}, "application/javascript": "marked"}, raw=True)
display({"application/x-graders-checks+json": "[]", "text/plain": "marked"}, raw=True)
display({"image/png": '" onerror="marked'}, raw=True)
display({"image/png": "aGVsbG8=", "text/plain": "picture"}, raw=True, metadata={"image/png": {"width": "marked"}})
display({"image/svg+xml": "<svg onload='marked'/>", "image/jpeg": ["marked"]}, raw=True)
shows = 1
"""


def test_only_text_and_pictures_are_kept(run: Examine) -> None:
    """HTML, SVG, Markdown, LaTeX, scripts and widgets are dropped; plain text and real pictures stay, without metadata."""
    found = run(exercises("shows"), {"shows": SHOWS})
    outputs = cell_of(found, "shows").outputs
    data = [one["data"] for one in outputs]
    assert {kind for one in data for kind in one} <= {"text/plain", "image/png", "image/jpeg"}  # type: ignore[attr-defined]
    assert {"text/plain": "plain"} in data
    assert {"image/png": "aGVsbG8=", "text/plain": "picture"} in data
    assert b"marked" not in msgspec.json.encode(outputs)
    assert passed(found) == {"shows"}


def test_a_changed_surrounding_changes_no_test(run: Examine) -> None:
    """Another folder, an attempt to install, hidden functions of Python and changed warnings do not reach the tests."""
    odd = {
        "moves": "%cd /\nmoves = 1",
        "installs": "!pip install -U jax\n%pip install -U numpy\ninstalls = 1",
        "hides": "sum = 0; len = 3; print = None; range = str; hides = 1",
        "warns": "import os, warnings\nwarnings.simplefilter('error')\nos.environ.clear()\nwarns = 1",
    }
    tests = [judge(f"{name}-test", f"assert {name} == sum(range(2)) and len('ab') == 2") for name in odd]
    cells = [one for name, test in zip(odd, tests, strict=True) for one in (answer(name, ""), test)]
    found = run([*cells, *exercises("last")], odd | right("last"), cell_timeout_s=20.0)
    assert passed(found) == {*odd, "last"}
    assert found.restarts == 0


NOISE = """
import sys, threading, time

def noise():
    while True:
        print("FAILED 0.0")
        print("Traceback: Error", file=sys.stderr)
        time.sleep(0.001)

threading.Thread(target=noise, daemon=True).start()
a = 1
"""
WARNS = """
import logging, sys, warnings

def b():
    warnings.warn("from a call")
    logging.getLogger("x").error("from a call")
    print("from a call", file=sys.stderr)
    return 1

b()
"""


@pytest.mark.parametrize("sealed", [True, False])
def test_noise_and_warnings_cost_nothing(run: Examine, sealed: bool) -> None:
    """What a thread prints, and what goes to stderr in a cell or in a call, never changes a score."""
    cells = [*exercises("a"), answer("b", ""), judge("b-test", "for _ in range(20): assert b() == 1"), *exercises("c")]
    found = run(cells, {"a": NOISE, "b": WARNS} | right("c"), sealed=sealed)
    assert passed(found) == {"a", "b", "c"}


def test_an_examiner_that_dies_costs_its_test_and_those_that_need_its_names(run: Examine) -> None:
    """A fresh examiner goes on; a test that needs a name of the lost one is not judged, unless a later test binds it."""
    cells = [
        *exercises("before"),
        answer("a", "a = 1"),
        judge("a-test", "helper = 3\nif a == 2: import os; os._exit(1)"),
        answer("b", "b = 1"),
        judge("b-test", "assert helper * b == 3"),
        answer("c", "c = 1"),
        judge("c-test", "helper = 4\nassert c == 1"),
        answer("d", "d = 1"),
        judge("d-test", "assert helper * d == 4"),
    ]
    honest = right("before", "a", "b", "c", "d")
    assert passed(run(cells, honest)) == {"before", "a", "b", "c", "d"}
    found = run(cells, honest | {"a": "a = 2"})
    assert passed(found) == {"before", "c", "d"}
    assert {one.id: one.ended for one in found.tests if one.ended is not Ended.ok} == {
        "a-test": Ended.examiner_lost,
        "b-test": Ended.names_lost,
    }
    assert test_of(found, "b").reason
    assert all(cell.ended is Ended.ok for cell in found.cells)


def test_an_examiner_that_dies_between_tests_is_replaced(run: Examine) -> None:
    """When an examiner is found dead, the next test that needs none of its names runs in a fresh one."""
    late = "import os, threading\nthreading.Timer(0.2, os._exit, (1,)).start()\nassert a == 1"
    cells = [answer("a", "a = 1"), judge("a-test", late), *exercises("b", "c")]
    found = run(cells, {"a": "a = 1", "b": "import time\ntime.sleep(0.6)\nb = 1", "c": "c = 1"})
    assert passed(found) == {"a", "b", "c"}


SET_UP = "import jax\nimport jax.numpy as jnp\nimport numpy as np"
JUDGED = """
from graders.checks import check, expect
x = jnp.array([1.0, 2.0, np.nan], jnp.float32)
keep = jnp.array([True, True, False])
with check("value"): expect(masked(x, keep), 5.0)
with check("jit"): expect(jax.jit(masked)(x, keep), 5.0)
with check("grad"): expect(jax.grad(masked)(x[:2], keep[:2]), np.array([2.0, 4.0], np.float32))
with check("constant"): expect(constant, np.arange(3, dtype=np.float32), dtype=np.float32)
with check("loop"): expect(jax.jit(doubled)(np.float32(3.0)), 24.0)
with check("refused"):
    try: jax.jit(branch)(np.float32(1.0))
    except jax.errors.TracerBoolConversionError: pass
    else: raise AssertionError
with check("mixed"): expect(mixed(np.ones((2, 3), np.float32), np.arange(3)), np.float32([[0, 1, 2], [0, 1, 2]]))
with check("own dtype"): assert jnp.ones(2).dtype == np.float32
"""
HONEST = """
masked = lambda v, k: jnp.where(k, v * v, 0).sum()
constant = jnp.arange(3, dtype=jnp.float32)
mixed = lambda m, i: jnp.asarray(m) * jnp.asarray(i)
doubled = lambda v: jax.lax.fori_loop(0, 3, lambda i, s: s * 2, v)
def branch(v):
    return v if v > 0 else -v
"""


@pytest.mark.parametrize(
    "change",
    [
        "jax.config.update('jax_enable_x64', True)",
        "jax.config.update('jax_disable_jit', True)",
        "jax.config.update('jax_debug_nans', True); jax.config.update('jax_debug_infs', True)",
        "jax.config.update('jax_default_matmul_precision', 'bfloat16'); np.seterr(all='raise')",
        "jax.config.update('jax_default_device', jax.devices('cpu')[-1])",
        "jax.config.update('jax_numpy_rank_promotion', 'raise'); jax.config.update('jax_numpy_dtype_promotion', 'strict')",
        "jax.config.update('jax_transfer_guard', 'disallow')",
        "jax.config.update('jax_check_tracer_leaks', True)",
        "import warnings; warnings.simplefilter('error'); jax.config.update('jax_debug_key_reuse', True)",
    ],
    ids=["x64", "no jit", "nans", "precision", "device", "promotion", "transfer", "leaks", "warnings"],
)
def test_a_configuration_left_changed_does_not_change_how_tests_judge(run: Examine, change: str) -> None:
    """J1: values, jit, grad, loops and refusals of an honest answer are judged as if nothing had been changed."""
    cells = [locked("set-up", SET_UP), answer("odd", ""), answer("f", HONEST), judge("f-test", JUDGED, 8)]
    found = run(cells, {"odd": change, "f": HONEST}, cell_timeout_s=20.0)
    outcomes = {check.title: check.outcome.value for check in test_of(found, "f").checks}
    titles = ("value", "jit", "grad", "constant", "loop", "refused", "mixed", "own dtype")
    assert outcomes == dict.fromkeys(titles, "passed"), test_of(found, "f")


def test_the_same_submission_twice_gives_the_same_run(run: Examine) -> None:
    """Random numbers, hashes, sets, errors and deaths come out alike; only times differ."""
    cells = [locked("set-up", "import random\nimport numpy as np"), *exercises("a", "b", "c")]
    drawn = "a = 1\nprint(random.random(), np.random.rand(), hash('text'), {'x', 'y', 'z'})"
    answers = {"a": drawn, "b": "import os\nos._exit(1)", "c": "print(random.random())\n1 / 0"}
    first, second = (_timeless(run(cells, answers)) for _ in range(2))
    assert first == second
    assert text_of(cell_of(first, "a"))


def _timeless(found: Run) -> Run:
    cells = tuple(msgspec.structs.replace(cell, seconds=0.0) for cell in found.cells)
    tests = tuple(msgspec.structs.replace(test, seconds=0.0) for test in found.tests)
    return msgspec.structs.replace(found, cells=cells, tests=tests, phases_s={}, compile_s={}, cpu_s=0.0, peak_bytes=0)


CHECKED = """
from graders.checks import check, expect
with check("small", points=1): expect(square(2), 4)
with check("large", points=2, hint="Think of negative numbers."): expect(square(-3), 9)
"""


def test_tests_in_the_kernel_find_the_same(run: Examine) -> None:
    """For honest answers, right and wrong, the checks come out alike whether tests run in the examiner or the kernel."""
    cells = [
        answer("square", ""),
        judge("square-test", hidden("helper = 2\nassert square(1) == 1", CHECKED), 3),
        *exercises("a", "dead", "b"),
        answer("c", "c = 1"),
        judge("c-test", "assert helper * c == 2"),
    ]
    for text in ("def square(v): return v * v", "def square(v): return v * abs(v)", "def square(v): pass"):
        answers = {"square": text, "dead": "import os\nos._exit(1)"} | right("a", "b", "c")
        sealed, inside = (run(cells, answers, sealed=one) for one in (True, False))
        titles = [[(c.title, c.points, c.outcome) for c in test_of(one, "square").checks] for one in (sealed, inside)]
        assert titles[0] == titles[1] or not titles[1]
        assert passed(sealed) - {"square"} == passed(inside) - {"square"} == {"a", "b", "c"}


def test_a_call_that_dies_in_the_kernel_costs_its_test(run: Examine) -> None:
    """Without an examiner too, a death during a test is told at that test, and its answer's cell ended well."""
    cells = [answer("f", ""), judge("f-test", "assert f() == 1"), *exercises("last")]
    found = run(cells, {"f": "def f():\n    import os\n    os._exit(1)"} | right("last"), sealed=False)
    assert test_of(found, "f").ended is Ended.died
    assert "called by a test" in (test_of(found, "f").reason or "")
    assert cell_of(found, "f").ended is Ended.ok
    assert passed(found) == {"last"}


def everyone_below(pid: int) -> set[int]:
    """Every process that descends from this one."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for thread in _listed(f"/proc/{waiting.pop()}/task"):
            try:
                children = {int(one) for one in (thread / "children").read_text().split()}
            except OSError:
                continue
            found |= children
            waiting += children
    return found


def _listed(folder: str) -> list[Path]:
    try:
        return list(Path(folder).iterdir())
    except OSError:
        return []


def gone_in(seconds: float, left: Callable[[], Collection[object]]) -> bool:
    """Whether nothing is left within so many seconds."""
    end = time.monotonic() + seconds
    while left() and time.monotonic() < end:
        time.sleep(0.05)
    return not left()


LEAVES_MUCH = """
import os, pathlib, signal, subprocess, sys, tempfile, threading, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0: time.sleep(600)
        os._exit(0)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
kept = tempfile.mkdtemp()
pathlib.Path("left").write_text("left")
threading.Thread(target=time.sleep, args=(600,)).start()
leaves = 1
"""


def test_nothing_of_a_candidate_survives(run: Examine, zygote: Zygote) -> None:
    """Daemons, children, threads, private folders and sockets are gone when the examination has ended."""
    run(exercises("warm"), {})
    folders, processes = set(Path("/tmp").glob("gk-*")), everyone_below(zygote._process.pid)
    found = run(
        exercises("leaves", "dies", "last"), right("last") | {"leaves": LEAVES_MUCH, "dies": "import os\nos._exit(1)"}
    )
    assert passed(found) == {"leaves", "last"}
    left = set(Path("/tmp").glob("gk-*")) - folders  # those of other examinations at the same time go soon, too
    assert gone_in(5, lambda: everyone_below(zygote._process.pid) - processes)
    assert gone_in(60, lambda: [one for one in left if one.exists()])


def test_ten_examinations_leave_this_process_as_it_was(run: Examine) -> None:
    """Descriptors, threads and children are as many after ten examinations with deaths as after the first."""

    def held() -> tuple[int, int, int]:
        gc.collect()
        children = _children()
        return len(_listed("/proc/self/fd")), threading.active_count(), len(children)

    def one() -> None:
        found = run(
            [*exercises("dies", "last"), *exercises("b")], right("last", "b") | {"dies": "import os\nos._exit(1)"}
        )
        assert passed(found) == {"last", "b"}

    one()
    before = held()
    for _ in range(10):
        one()
    assert held() == before
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in _children()]
    assert "Z" not in states


def _children() -> list[str]:
    return [pid for task in _listed("/proc/self/task") for pid in (task / "children").read_text().split()]


def test_what_a_called_function_prints_arrives_whole(run: Examine) -> None:
    """Of what a function prints while a test calls it nothing is late, however soon the test ends afterwards."""
    cells = [answer("f", "def f(): print('a' * 50)"), judge("f-test", "f()\nassert False")]
    for _ in range(5):
        found = run(cells, {"f": "def f():\n    for n in range(100): print('line', n)"})
        assert test_of(found, "f").output == "".join(f"line {n}\n" for n in range(100))


HEAVY = """\
import jax, jax.numpy as jnp
heavy = jax.jit(lambda x: jax.lax.fori_loop(0, 40, lambda i, c: c @ c / jnp.linalg.norm(c), x))
same = jax.ShapeDtypeStruct((400, 400), jnp.float32)
def refuse(x):
    raise ValueError("no")
"""
FAILING = {
    "pure_callback": "late = jax.jit(lambda x: jax.pure_callback(refuse, same, x))",
    "io_callback": "from jax.experimental import io_callback\nlate = jax.jit(lambda x: io_callback(refuse, same, x))",
    "debug.callback": "late = jax.jit(lambda x: (jax.debug.callback(refuse, x), x)[1])",
    "kept nowhere": "late = jax.jit(lambda x: (jax.debug.callback(refuse, x, ordered=True), x)[1])",
}


@pytest.mark.parametrize("name", FAILING)
def test_what_goes_wrong_in_a_computation_is_told_at_the_cell_that_started_it(run: Examine, name: str) -> None:
    """J4: a computation fails where it was started, also when it would still be running at the end of the cell."""
    started = "one = 1\n" + (
        "late(heavy(jnp.ones((400, 400))))" if "kept" in name else "y = late(heavy(jnp.ones((400, 400))))"
    )
    cells = [locked("setup", HEAVY + FAILING[name]), *exercises("one", "two")]
    found = run(
        cells, {"one": started, "two": "two = 1\nz = jnp.ones(3).sum()\njax.effects_barrier()"}, cell_timeout_s=20.0
    )
    assert [cell_of(found, id).ended for id in ("one", "two")] == [Ended.error, Ended.ok]
    assert cell_of(found, "one").problem.name == "JaxRuntimeError"
    assert passed(found) == {"one", "two"}


def test_a_computation_without_end_is_told_at_the_cell_that_started_it(run: Examine) -> None:
    """J4: what runs in XLA takes the time of the cell that started it, not of the one that first reads the result."""
    endless = (
        "one = 1\nimport jax\nx = jax.jit(lambda x: jax.lax.while_loop(lambda c: c < 2, lambda c: c * 0.5, x))(1.0)"
    )
    found = run(exercises("one", "two"), {"one": endless, "two": "two = 1"})
    assert [cell_of(found, id).ended for id in ("one", "two")] == [Ended.timeout, Ended.ok]
    assert "compiling" not in cell_of(found, "one").reason
    assert passed(found) == {"two"}


EXPLOSIONS = {
    "a loop written out": "def f(x):\n    for i in range(10**6): x = jnp.sin(x)\n    return x",
    "constants folded": "def f(x):\n    return x + jax.lax.reduce_window(jnp.ones(10**7), 0.0, jax.lax.add, (10**6,), (1,), 'SAME').sum()",
}


@pytest.mark.parametrize("where", ["in a cell", "called by a test"])
@pytest.mark.parametrize("name", EXPLOSIONS)
def test_time_that_goes_into_compiling_has_its_own_sentence(run: Examine, name: str, where: str) -> None:
    """J9: who was stopped while JAX traced or compiled is told so, and what helps."""
    source = "import jax, jax.numpy as jnp\n" + EXPLOSIONS[name] + "\ng = jax.jit(f)\n"
    cells = [answer("one", "def g(x): return x"), judge("one-test", "assert g(1.0) == 1"), *exercises("two")]
    found = run(cells, {"one": source + "g(1.0)" * (where == "in a cell"), "two": "two = 1"})
    stopped = cell_of(found, "one") if where == "in a cell" else test_of(found, "one")
    assert stopped.ended is Ended.timeout
    assert "JAX was still tracing and compiling" in stopped.reason
    assert passed(found) == {"two"}


def test_a_program_that_the_examiner_compiles_without_end_has_the_same_sentence(run: Examine) -> None:
    """J9: where a test transforms the function, its program is compiled beside the test; that takes the student's time, too."""
    folded = "import jax, jax.numpy as jnp\ndef f(x):\n    big = jax.lax.reduce_window(jnp.ones(10**7), 0.0, jax.lax.add, (10**6,), (1,), 'SAME')\n    return x + big.sum()"
    cells = [
        answer("one", "def f(x): return x"),
        judge("one-test", "import jax\nassert jax.jit(f)(1.0) == 1"),
        *exercises("two"),
    ]
    found = run(cells, {"one": folded, "two": "two = 1"}, cell_timeout_s=4.0)
    assert test_of(found, "one").ended is Ended.timeout
    assert "JAX was still tracing and compiling" in test_of(found, "one").reason
    assert passed(found) == {"two"}


def test_code_bears_the_name_of_its_cell(run: Examine) -> None:
    """Where JAX says in which file something was made, it names the cell, and a traceback still quotes the right lines."""
    source = "import jax\nkept = []\ndef f(x):\n    kept.append(x * 2)\n    return x\njax.jit(f)(1.0)\none = 1"
    found = run(
        exercises("one", "two"),
        {"one": source, "two": "import inspect\ntwo = inspect.getsource(f).count('x')\nkept[0] + 1"},
    )
    problem = cell_of(found, "two").problem
    assert problem.name == "UnexpectedTracerError"
    assert "created on line <cell 1>:4" in problem.message
    assert "kept[0] + 1" in problem.traceback


COMPILES = """
import jax
import jax.numpy as jnp

compiles = jax.jit(lambda x: jnp.sin(x) * 3 + jnp.cumsum(x))
compiles(jnp.ones(5)).block_until_ready()
"""
JUDGES = "import jax\nimport jax.numpy as jnp\nassert jax.jit(lambda x: x * 2 + 1)(jnp.ones(7))[0] == 3"


def test_the_time_of_compiling_is_told_apart(run: Examine) -> None:
    """Each process says how long it compiled: not at all without a program, and not longer than the examination took with one."""
    plain = run(exercises("plain"), right("plain"))
    found = run([answer("compiles", ""), judge("compiles-test", JUDGES)], {"compiles": COMPILES})
    assert plain.compile_s == {"candidate": 0.0, "examiner": 0.0}
    assert passed(found) == {"compiles"}
    assert found.compile_s.keys() == {"candidate", "examiner"}
    assert all(0.0 < one < sum(found.phases_s.values()) for one in found.compile_s.values())


def test_a_candidate_that_lies_about_itself_tells_nothing(run: Examine) -> None:
    """What is no number of seconds is left out, and costs nobody a point."""
    lie = "from graders.exam import compiletime\ncompiletime.seconds = lambda: float('nan')\nlies = 1"
    found = run(exercises("lies"), {"lies": lie})
    assert found.compile_s.keys() == {"examiner"}
