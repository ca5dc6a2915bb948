"""Laws of forgetting: a student's data are nowhere, and nobody else's are touched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = """
import contextlib, io, json, sys, warnings
from pathlib import Path
import crashing
from crashing import hand_in, make, watch_once
from graders import cli, config, nbgrader_parts
from graders.results import journal
from graders.run import bookkeeping, executors

warnings.simplefilter("ignore")
nbgrader_parts.without_servers()
bookkeeping.ProcessPoolExecutor, executors.Workers = crashing.HereAndNow, crashing.Examined
home, gone, stays = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
crashing.SECRETS.update({one: f"{number:0128x}" for number, one in enumerate([*gone, *stays], 16)})
course = make(home)
settings = config.load(course)
for hour in (9, 10):
    for one in [*gone, *stays]:
        hand_in(settings, one, f"a = {hour - 8}", hour)
    watch_once(course)
(course / "autograded/ps1.html").write_text("student-01")
(course / "autograded/README.md").write_text("kept")

def everything():
    paths = [path for path in course.rglob("*") if path.is_file() and "gradebook.db" not in path.name]
    return {str(path.relative_to(course)): path.read_bytes() for path in paths}

def graders(*arguments):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        return cli.main(["--course", str(course), *arguments]), said.getvalue()

def is_named(one):
    forms = {one.encode(), json.dumps(one)[1:-1].encode()}
    held = [path for path in course.rglob("*") if path.is_file() and any(form in path.read_bytes() for form in forms)]
    return sorted({str(path) for path in [*held, *course.rglob("*")] if path in held or one in path.name})

before = everything()
refused = graders("forget", "student-01")
unasked = everything() == before
told = {one: graders("forget", "--yes", "--", one) for one in gone if is_named(one)}
after = everything()
nobody = graders("forget", "--yes", "student-99")
named = {one: is_named(one) for one in gone}
watch_once(course)
print(json.dumps({
    "told": told, "nobody": nobody, "refused": refused, "unasked": unasked, "named": named,
    "lost": sorted(set(before) - set(after)), "changed": [name for name in after if after[name] != before.get(name)],
    "lines": [line.student for line in journal.lines(course)],
    "points": {one: crashing.grade(course, one) for one in [*gone, *stays]},
}))
"""


def test_what_is_stored_of_a_student_goes_and_all_else_stays(tmp_path: Path) -> None:
    """After `forget` the id stands in no name and no file of the course, its gradebook and its exchange, whatever the id looks like; no
    byte of anybody else is changed but in the journal, which says without a name that somebody was forgotten."""
    gone, stays = ["-rf", "o'[n]*\"x", "st?dent-0*"], ["o'[n]*", "student-0", "rf"]
    command = [sys.executable, "-c", RUN, str(tmp_path), json.dumps(gone), json.dumps(stays)]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    pages = [name for name in found["lost"] if name.startswith("exchange/small/feedback/")]
    others = [name for name in found["lost"] if name not in pages and not {*Path(name).parts} & {*gone}]
    assert others == [
        name for name in others if name.split("/")[-2].split("+")[0] in gone or name == "autograded/ps1.html"
    ]
    assert "autograded/ps1.html" in others
    assert len(pages) == 2 * len(gone)
    assert found["changed"] == [".graders/journal.jsonl"]
    assert found["named"] == {one: [] for one in gone}
    assert found["points"] == dict.fromkeys(gone) | dict.fromkeys(stays, 2)
    assert sum(one.startswith("forgotten-") for one in found["lines"]) == len(gone)
    assert (found["nobody"][0], "Nothing of 'student-99' is stored" in found["nobody"][1]) == (2, True)
    assert (found["refused"][0], "nobody can be asked here" in found["refused"][1], found["unasked"]) == (2, True, True)
    assert {one: status for one, (status, _) in found["told"].items()} == dict.fromkeys(gone, 0)
    for _, told in found["told"].values():
        assert "Deleted: 1 rows of submitted_assignment in the gradebook" in told
