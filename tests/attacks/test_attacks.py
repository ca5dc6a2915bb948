"""Laws of forgery: what the attacks of the corpus gain under `nbgrader autograde` they do not gain here.

The corpus stands in `corpus/` and is graded by us as one class. A few of the attacks are graded by nbgrader as well, which
proves that the class can be attacked; `make attack NBGRADER=1` does that for all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from string import Template

import bait
import corpus
import ours
import pytest
import theirs
from assignment import POINTS
from ours import Outcome

from graders.kernels.nursery import best_level
from graders.records import Status

# These keep a processor busy until their time is up, 17 s together: `make attack` grades them, these tests do not.
BUSY = {"endless-program", "endless-questions", "many-nodes", "memory-of-the-examiner"}
ATTACKS = [one for one in corpus.read() if one.name not in BUSY]
BY_NAME = {one.name: one for one in ATTACKS}
# What is graded by nbgrader in these tests too: the exercises in which it makes points there
REAL = {
    "always-equal": {"double", "share"},
    "input-transformer": {"double", "share", "total", "wave"},
    "to-ten": {"double", "share", "total"},
    "without-asserts": {"double", "total", "wave"},
    "silent": {"share"},
    "paints-numbers": {"share"},
    "reads-solution": {"double", "share", "total", "wave"},
    "writes-gradebook": {"double", "share", "total", "wave"},
}
SHOWING = ("input-transformer", "reads-solution")  # these show hidden text there
SPEAKING = [one.name for one in ATTACKS if one.speaks]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The class of all attacks, graded by us."""
    return ours.run(tmp_path_factory.mktemp("ours"), ATTACKS, workers=2)


@pytest.fixture(scope="module")
def nbgraders(tmp_path_factory: pytest.TempPathFactory) -> theirs.Found:
    """A few of them, graded by nbgrader."""
    chosen = [BY_NAME[name] for name in REAL]
    return theirs.run(tmp_path_factory.mktemp("theirs"), chosen, walled=best_level() == "namespaces")


def cells_of(outcome: Outcome, name: str) -> list[dict]:
    """The cells of the autograded notebook."""
    return json.loads(outcome.notebooks[name])["cells"]


@pytest.mark.system
def test_nbgrader_gives_honest_work_its_points(nbgraders: theirs.Found) -> None:
    """In nbgrader the right answers earn all points and the wrong ones none, so what an attack earns there is forged."""
    assert nbgraders.scores[bait.VICTIM] == POINTS | {"why": 0}, nbgraders.ended
    assert nbgraders.scores["wrong"] == dict.fromkeys(POINTS, 0) | {"why": 0}


@pytest.mark.system
@pytest.mark.parametrize("name", REAL)
def test_the_attack_is_real(name: str, nbgraders: theirs.Found) -> None:
    """Under `nbgrader autograde` the attack makes points out of wrong answers."""
    assert {one for one, score in nbgraders.scores[name].items() if score > 0} - {"why"} == REAL[name]


@pytest.mark.system
@pytest.mark.parametrize("name", SHOWING)
def test_the_leak_is_real(name: str, nbgraders: theirs.Found) -> None:
    """Under `nbgrader autograde` the student's own cells show hidden tests."""
    assert nbgraders.evidence[name]["hidden text seen"]


def test_honest_work_earns_the_same_here(outcome: Outcome) -> None:
    """The right answers earn all points here too, and the wrong ones none."""
    right, wrong = (ours.report_of(outcome.course, name) for name in (bait.VICTIM, "wrong"))
    judged = {one.id.removesuffix("-test"): one.score for one in right.exercises if not one.manual}
    assert judged == POINTS
    assert (wrong.status, wrong.score) == (Status.graded, 0)


@pytest.mark.parametrize("name", BY_NAME)
def test_no_attack_succeeds(name: str, outcome: Outcome) -> None:
    """An attack makes no point, sees no hidden text, touches no file, reaches no network and leaves nothing running."""
    assert outcome.evidence[name] == {}


def test_no_trace_is_left_that_nobody_owns_up_to(outcome: Outcome) -> None:
    """Nothing was touched, reached or left running without saying by whom."""
    assert outcome.evidence.keys() <= BY_NAME.keys()


@pytest.mark.parametrize("name", BY_NAME)
def test_an_attack_is_answered(name: str, outcome: Outcome) -> None:
    """A submission that attacks is graded all the same; one that cannot be read is told why."""
    report = ours.report_of(outcome.course, BY_NAME[name].who())
    wanted = Status.not_graded if "nb.ipynb" in BY_NAME[name].files else Status.graded
    assert (report.status, report.reason is None) == (wanted, wanted is Status.graded)


@pytest.mark.parametrize("name", SPEAKING)
def test_the_peer_had_the_channel(name: str, outcome: Outcome) -> None:
    """The code that speaks the protocol found the channel and was called: its cell raised nothing."""
    # the first cell tells the grader of flags
    first, test, *_ = (one for one in cells_of(outcome, name) if "nbgrader" in one["metadata"])
    assert first["metadata"]["nbgrader"]["grade_id"] == "double"
    assert first["outputs"] == []
    assert "NameError: name 'double'" not in json.dumps(test)


def test_no_attribute_leads_to_a_frame(outcome: Outcome) -> None:
    """Of a generator and a function that a test passes, no attribute is told, nor may any be set: each is refused."""
    cells = {one["metadata"].get("nbgrader", {}).get("grade_id"): one for one in cells_of(outcome, "walks-frames")}
    told = json.dumps(cells["total-test"]["outputs"])
    assert told.count("Raised(") > 100
    assert "Done(" not in told


@pytest.mark.parametrize("name", ["written-answer", "own-cells"])
def test_text_of_a_student_is_inert_in_notebooks(name: str, outcome: Outcome) -> None:
    """No tag begins in what a student wrote between code cells, where formgrader would render it; the author's stays as it is."""
    written = ["".join(one["source"]) for one in cells_of(outcome, name) if one["cell_type"] != "code"]
    assert any("onerror" in one for one in written)
    assert [one for one in written if "<img" in one or "](javascript" in one] == []


SUCCESSES = {
    "files touched": "open('$COURSE/source/$MARK', 'w').close()",
    "network reached": "import socket; socket.create_connection(('127.0.0.1', $TCP)).sendall(b'$MARK')",
    "survivors": "input()",
}


@pytest.mark.parametrize("sign", SUCCESSES)
def test_a_success_would_be_seen(sign: str, outcome: Outcome, tmp_path: Path) -> None:
    """What an attack that succeeds does is found by the very code that finds nothing after the class was graded."""
    with bait.Bait(tmp_path, outcome.course) as around:
        script = Template(SUCCESSES[sign]).substitute(around.places, MARK="wombat-test")
        running = subprocess.Popen([sys.executable, "-c", script, "wombat-test"], stdin=subprocess.PIPE)
        if sign != "survivors":
            running.communicate(timeout=60)
        found, deadline = around.traces(), time.monotonic() + 20
        while not found[sign] and time.monotonic() < deadline:
            found = around.traces()
        running.communicate(timeout=60)
    assert {one for one, marks in found.items() if marks} == {sign}
    assert found[sign] == {"wombat-test"}


def test_every_attack_names_its_sign() -> None:
    """Each attack says what it tries and by which columns of the table its success would be seen."""
    assert [one.name for one in ATTACKS if not one.tries.strip() or not one.seen] == []
    assert len(ATTACKS) >= 60
    assert {one.name for one in corpus.read()} - BY_NAME.keys() == BUSY
    families = {f"A{number}" for number in range(1, 11)}
    assert {one.family.partition("-")[0] for one in ATTACKS} == families
