"""Who decides by which tolerances a test compares: the target, and never the candidate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from candidates import Candidate

from graders.exam import control
from graders.exam.examiner import Examiner
from graders.exam.ownership import Names
from graders.exam.plan import Segment
from graders.records import Outcome

LIAR = """
from graders.exam import peer
value, honest = np.float32(1.005), peer.place
peer.place = lambda: honest() | {"platform": "tpu", "devices": ["TPU v5 lite 0"]}
"""
TEST = "from graders.checks import check, expect\nwith check('near'):\n    expect(value, 1.0)"


@pytest.mark.parametrize(("profile", "outcome"), [("cpu", Outcome.failed), ("tpu", Outcome.passed)])
def test_a_candidate_that_claims_a_chip_gains_nothing(
    candidate: Callable[[str], Candidate], profile: str, outcome: Outcome
) -> None:
    """Half a percent is too much on a CPU, whatever the candidate says it runs on, and right on a target with a TPU."""
    examiner = Examiner()
    met = examiner.meet(candidate(LIAR).peer.channel, profile)
    assert met.places[1]["platform"] == "tpu"
    judged = examiner.examine(control.Examine("test", (Segment(TEST, True, 0),), Names(("value",), ()), (b"",)))
    assert [one.outcome for one in judged.test.checks] == [outcome]
