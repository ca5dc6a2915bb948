"""Laws of the benchmark: what is compared with what, and that every contender gets the same cells."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from graders.bench import otter, rounds
from graders.bench.contenders import FLOOR, NBGRADER, OURS, Contender, Contest
from graders.bench.outcome import ratios
from graders.bench.rounds import Cost, medians
from graders.course.assignments import read_assignment
from graders.coursework import Role

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "tests" / "submissions" / "course"


def test_a_median_is_of_one_figure_of_one_contender() -> None:
    """One slow round of a contender moves neither its median nor another's."""
    costs = [Cost("a", cpu, wall) for cpu, wall in ((1.0, 9.0), (2.0, 4.0), (50.0, 3.0))] + [Cost("b", 7.0, 7.0)]
    assert medians(costs) == {"a": Cost("a", 2.0, 4.0), "b": Cost("b", 7.0, 7.0)}


def test_ratios_are_the_right_way_round() -> None:
    """Twice the CPU of the floor is 2; a tenth of nbgrader's wall time is ten times its throughput; sealing at 20 % more is 1.2."""
    costs = {OURS: (0.6, 0.3), f"{OURS}, examine = 'kernel'": (0.5, 0.25), NBGRADER: (3.0, 3.0), FLOOR: (0.3, 0.15)}
    found = ratios({name: Cost(name, cpu, wall) for name, (cpu, wall) in costs.items()})
    assert found == pytest.approx(
        {
            "CPU, ours to the floor": 2.0,
            "throughput, ours to nbgrader autograde": 10.0,
            "CPU, ours to ours with examine = 'kernel'": 1.2,
        }
    )


def test_a_further_submission_costs_what_a_whole_class_costs_more_than_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start of 5 s and 2 s for each of 10 submissions is 2.5 s a submission, and 2 s for each further one."""
    used = {"class": (25.0, 25.0), "few": (9.0, 9.0)}
    monkeypatch.setattr(rounds, "_used", lambda one: used[one.where])
    contests = [
        Contest((Contender("a", (), where),), "", {str(n): Decimal(1) for n in range(count)})
        for where, count in (("class", 10), ("few", 2))
    ]
    whole, further = rounds.measure(*contests, print)
    assert (whole, further) == ((Cost("a", 2.5, 2.5),), (Cost("a", 2.0, 2.0),))


def test_otter_grader_asks_for_each_test_where_it_stood() -> None:
    """In otter-grader's submission each test cell is empty and names its test; all other cells are the student's."""
    assignment = read_assignment(COURSE, "ps1")
    handed_in = json.loads((COURSE / "release" / "ps1" / "lesson.ipynb").read_text())
    tests = {cell.id for cell in assignment.notebooks["lesson"] if cell.role is Role.test}
    made = otter.asking(assignment, handed_in)
    asked = []
    for cell, before in zip(made["cells"], handed_in["cells"], strict=True):
        if "otter" in cell["metadata"]:
            assert cell["source"] == ""
            asked += cell["metadata"]["otter"]["tests"]
        else:
            assert cell == before
    assert tests
    assert sorted(asked) == sorted(tests)


def test_otter_grader_runs_the_authors_own_test() -> None:
    """The file of a test is Python that executes the author's cell, whole, in the student's names."""
    [cell, *_] = [one for one in read_assignment(COURSE, "ps1").notebooks["lesson"] if one.role is Role.test]
    tree = ast.parse(otter.TEST.format(name=cell.id, points=1, source=cell.source))
    [call] = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "exec"]
    assert ast.literal_eval(call.args[0]) == cell.source


def test_the_floor_runs_every_cell_once(tmp_path: Path) -> None:
    """Each cell of each notebook runs once, in its order, and one that raises keeps no later one from running."""
    log = tmp_path / "log"
    sources = [f"open({str(log)!r}, 'a').write('1')", "1 / 0", f"open({str(log)!r}, 'a').write('2')"]
    cells = [{"cell_type": "code", "source": [one]} for one in sources]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    command = [
        sys.executable,
        "-m",
        "graders.bench.floor",
        str(tmp_path / "cache"),
        "1",
        *[str(tmp_path / "a.ipynb")] * 3,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), log.read_text()) == ({"cells": 9}, "12" * 3)
