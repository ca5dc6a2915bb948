"""Laws of `watch`: whatever arrives is returned, however it arrives, and nothing else is touched. Its workers are made up (crashing.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = r"""
import json, queue, sys, threading, time, warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import crashing
from crashing import hand_in, make, notebook
from delivery import put
from graders import config, nbgrader_parts
from graders.results import report
from graders.run import bookkeeping, grading, locks, watch

warnings.simplefilter("ignore")
nbgrader_parts.without_servers()
bookkeeping.ProcessPoolExecutor = crashing.HereAndNow
watch.Workers = lambda course, workers: crashing.Examined(course)
grading.prepare = lambda settings, name, isolation=None: crashing.ready(settings)
crashing.SECRETS["student-03"] = "3" * 128
course = make(Path(sys.argv[1]))
settings, told, done = config.load(course), queue.Queue(), queue.Queue()
watching = watch.Watch(settings, "ps1", 1, told.put, done.put)
thread = threading.Thread(target=watching.run)

def returned(count=1):
    found = [done.get(timeout=60) for _ in range(count)]
    return sorted([one.report.student, str(one.report.score), one.why] for one in found)

def idle():
    with locks.holding(course, "ps1", "test"):
        pass

seen = {}
with ThreadPoolExecutor(1) as other:
    held, free = threading.Event(), threading.Event()
    def hold():
        with locks.holding(course, "ps1", "test"):
            held.set()
            free.wait()
    holder = other.submit(hold)
    held.wait()
    thread.start()
    seen["busy"] = told.get(timeout=60)
    free.set()
    holder.result()
    seen["at the start"] = returned(2)
    idle()
    hand_in(settings, "student-03", "a = 1", 11)
    seen["through the exchange"] = returned()
    idle()
    put(course / "submitted/student-04/ps1/lesson.ipynb", notebook("a = 2"))
    seen["by hand"] = returned()
    put(course / "submitted/student-04/ps1/lesson.ipynb", notebook("a = 3"))
    seen["changed in its place"] = returned()
    old = (course / "autograded/student-01/ps1/report.json").read_bytes()
    put(course / "source/ps1/lesson.ipynb", notebook("### BEGIN SOLUTION\na = 4\n### END SOLUTION"))
    seen["after another release"] = returned(4)
    seen["unchanged"] = (course / "autograded/student-01/ps1/report.json").read_bytes() == old
    watching.stop()
    thread.join(60)
seen["ended"], seen["left"] = not thread.is_alive(), done.qsize()
seen["examined"] = [line.split()[0] for line in crashing.examined(course)]
print(json.dumps(seen))
"""


def test_what_arrives_is_returned(tmp_path: Path) -> None:
    """Through the exchange or by hand, while watch waits or before it starts: graded once and returned once. An assignment that somebody
    else has is left to them until it is free; another release makes it look at everything once more and run nothing again."""
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    by_hand = "What student-04 handed in did not come through the exchange; give the page back where it came from."
    assert "(graders test)" in found["busy"]
    assert found["at the start"] == [["student-01", "2", None], ["student-02", "3", None]]
    assert found["through the exchange"] == [["student-03", "1", None]]
    assert found["by hand"] == [["student-04", "2", by_hand]]
    assert found["changed in its place"] == [["student-04", "3", by_hand]]
    assert [student for student, *_ in found["after another release"]] == [
        f"student-0{number}" for number in (1, 2, 3, 4)
    ]
    assert found["unchanged"]
    assert (found["ended"], found["left"]) == (True, 0)
    assert sorted(found["examined"]) == [
        "student-01",
        "student-01",
        "student-02",
        "student-03",
        "student-04",
        "student-04",
    ]
