"""Laws of the guides: what they tell to type works as they say, and what they list is all that there is.

An instructor, a student and a TA follow their pages in one small course, which is the one that the pages describe.
"""

from __future__ import annotations

import ast
import csv
import itertools
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from followers import Follower, Shell, Step, fill
from guide_pages import DOCS, GUIDES, ROOT, blocks, notebook, rows

from graders.config import Graders
from graders.kernels.nursery import best_level
from graders.results.urgency import ORDER

SPREAD = "def spread(values):\n    return max(values) - min(values)\n"
RIGHT = {"masked-mean": "def masked_mean(values, mask):\n    return np.mean(values[mask])", "why": "It divides by all."}
HALF = {"masked-mean": "def masked_mean(values, mask):\n    return np.where(mask, values, 0).mean()"}
# Jupyter's commands, as a line of a shell begins
COMMANDS = ("python", "jupyter", "nbgrader", "graders")
# What formgrader stores when a person gives one point.
MARKS = """
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    grade = book.find_grade("why", "ps1", "ps1", "student-01")
    assert grade.needs_manual_grade
    grade.manual_score, grade.needs_manual_grade = 1, False
    book.db.commit()
"""


class World:
    """A machine with an exchange, and everybody who follows a guide on it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        for name in ("exchange", "desk", "laptop"):
            (home / name).mkdir()
        (home / "exchange").chmod(0o777)
        self.course = home / "desk" / "numerical"
        self.shells: list[Shell] = []

    def person(self, guide: str, folder: Path, hands: Callable[[Path], None], *settings: str) -> Follower:
        """Somebody with a home of their own, in which nbgrader finds the exchange."""
        own = self.home / f"home-{guide}"
        (own / ".jupyter").mkdir(parents=True)
        lines = ["c = get_config()", f"c.Exchange.root = {str(self.home / 'exchange')!r}", *settings]
        (own / ".jupyter" / "nbgrader_config.py").write_text("\n".join(lines))
        self.shells.append(Shell(folder, own))
        return Follower(guide, self.shells[-1], hands)

    def author(self, course: Path) -> None:
        """Write the notebook of the guide; and where this machine has lesser walls, ask for those."""
        (course / "source/ps1/ps1.ipynb").write_text(json.dumps(notebook()))
        if (level := best_level()) != "namespaces":
            with (course / "course_config.py").open("a") as settings:
                settings.write(f"c.Graders.isolation = {level!r}\nc.Graders.processes = 1024\n")

    def work(self, folder: Path) -> None:
        """Write answers into what was fetched."""
        fill(folder / "ps1/ps1.ipynb", RIGHT)
        (folder / "ps1/spread.py").write_text(SPREAD)

    def upload(self) -> None:
        """What another student put on the course page, as Moodle gives it to the instructor."""
        folder = self.home / "desk/downloads/student-02_1002_assignsubmission_file"
        folder.mkdir(parents=True)
        (folder / "ps1.ipynb").write_bytes((self.course / "release/ps1/ps1.ipynb").read_bytes())
        (folder / "spread.py").write_text(SPREAD)
        fill(folder / "ps1.ipynb", HALF)

    def mark(self, course: Path) -> None:
        """Give a point for the written answer."""
        subprocess.run([sys.executable, "-c", MARKS], cwd=course, check=True, capture_output=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The machine, empty."""
    made = World(tmp_path_factory.mktemp("guides"))
    yield made
    for shell in made.shells:
        shell.close()


@pytest.fixture(scope="module")
def story(world: World) -> dict[str, list[Step]]:
    """All guides followed: a student hands in between release and collection, a TA marks between grading and return."""
    instructor = world.person("instructors", world.home / "desk", world.author)
    name = "c.CourseDirectory.student_id = 'student-01'"
    student = world.person("students", world.home / "laptop", world.work, name)
    with ThreadPoolExecutor() as pool:  # a student sets up while the instructor writes
        for one in [pool.submit(instructor.follow, "graders collect"), pool.submit(student.follow, "nbgrader fetch")]:
            one.result()
    student.follow(until="nbgrader fetch_feedback")
    world.upload()
    instructor.follow(until="graders feedback")
    assistant = world.person("tas", world.course, world.mark)
    assistant.follow()
    instructor.follow()
    student.follow()
    return {one.guide: one.done for one in (instructor, student, assistant)}


@pytest.mark.system
@pytest.mark.parametrize("guide", ["instructors", "students", "tas"])
def test_every_command_ends_as_the_guide_says(guide: str, story: dict[str, list[Step]]) -> None:
    """Each line of each block, in order, in one shell, ends with the status that the guide tells, else 0."""
    here = {"graders doctor": 1} if best_level() != "namespaces" else {}  # then it says so, as the guide tells
    wrong = [one for one in story[guide] if one.status != here.get(one.command, one.wanted)]
    told = [f"{guide}.md:{one.line}: {one.command}\nended with {one.status}:\n{one.said}" for one in wrong[:1]]
    assert not told, told[0]
    assert [one.command for one in story[guide]] == [
        line for one in blocks(guide) if one.language == "sh" for line in one.commands
    ]


@pytest.mark.system
def test_the_students_work_comes_back_as_the_guides_say(story: dict[str, list[Step]], world: World) -> None:
    """What a student handed in through the exchange and another through a page is graded, marked, returned and exported."""
    with (world.course / "grades.csv").open(newline="") as stream:
        found = {row["student_id"]: (row["score"], row["status"]) for row in csv.DictReader(stream)}
    assert found == {"student-01": ("5.0", "graded"), "student-02": ("1.0", "graded")}
    with (world.course / "scores.csv").open(newline="") as stream:
        assert {row["student"]: (row["score"], row["waiting"]) for row in csv.DictReader(stream)} == {
            "student-01": ("5", "0"),
            "student-02": ("1", "0"),
        }
    for name, user in (("canvas", "SIS Login ID"), ("moodle", "Username")):
        with (world.course / f"{name}.csv").open(newline="") as stream:
            told = {row[user]: row["ps1"] for row in csv.DictReader(stream)}
        assert (told["student-01"], told["student-02"]) == ("5", "1")
    pages = {name: (world.home / f"desk/to-return/{name}/ps1/ps1.html").read_text() for name in found}
    assert "divided by the number of all values" in pages["student-02"]
    assert "divided by the number of all values" not in pages["student-01"]


@pytest.mark.system
def test_a_student_fetches_their_own_page_and_no_other(story: dict[str, list[Step]], world: World) -> None:
    """What comes back through the exchange is the page that the instructor has of this student."""
    fetched = [path.read_text() for path in (world.home / "laptop/ps1/feedback").rglob("*.html")]
    assert fetched == [(world.home / "desk/to-return/student-01/ps1/ps1.html").read_text()]
    receipt = next(one.said for one in story["students"] if one.command.startswith("graders submit"))
    assert "Found: 3 of 3 answers." in receipt
    digest = re.search("Hash: ([0-9a-f]{64})", receipt)
    report = json.loads((world.course / "autograded/student-01/ps1/report.json").read_text())
    assert digest
    assert report["receipt"]["submission_sha256"] == digest[1]


@pytest.mark.system
def test_being_late_costs_what_the_guide_says(story: dict[str, list[Step]]) -> None:
    """The rule of the guide takes a half of all that was earned after many days, and nothing from whoever has no time of hand-in."""
    said = [one.said for one in story["instructors"] if one.command == "graders grade ps1 --json"][-1]
    assert {one["student"]: one["score"] for one in map(json.loads, said.splitlines())} == {
        "student-01": 2.5,
        "student-02": 1,
    }


@pytest.mark.system
def test_the_gate_of_the_example_has_nothing_to_say(story: dict[str, list[Step]]) -> None:
    """The example that authors are given to copy passes the gate without a warning, and every wrong answer is noticed."""
    said = next(one.said for one in story["instructors"] if one.command == "graders gate ps1")
    assert "the gate is open, 0 warnings" in said
    assert "Mutation score: 100.0%" in said


def test_powershell_users_type_the_same() -> None:
    """A block for PowerShell has the commands of the block before it, in the same order."""
    compared = 0
    for guide in GUIDES:
        found = blocks(guide)
        for before, block in itertools.pairwise(found):
            if block.language == "powershell":
                assert calls(block.commands) == calls(before.commands) != []
                compared += 1
    assert compared > 0


def calls(lines: list[str]) -> list[str]:
    """Calls of Python, Jupyter, nbgrader and graders, in the words of a POSIX shell."""
    plain = [re.sub(r"^(py|python3)\b", "python", line.strip()).replace("\\", "/") for line in lines]
    return [line for line in plain if line.startswith(COMMANDS)]


def test_every_flag_is_in_the_guide() -> None:
    """The table for TAs has every flag that the code can raise, once, and no other, the most urgent first."""
    raised = set()
    for path in (ROOT / "graders").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Flag":
                assert isinstance(node.args[0], ast.Constant), f"{path}:{node.lineno} makes up a flag's name as it runs"
                raised.add(node.args[0].value)
    told = [row[0].strip("`") for row in rows("tas", "flag")]
    assert sorted(told) == sorted(raised)
    assert told == [name for names in ORDER.values() for name in names]


def test_every_setting_is_in_the_guide_with_its_default() -> None:
    """The table for instructors has every setting that something reads, with the default that holds."""
    own = Graders()
    read = set(Graders.class_trait_names(config=True))
    told = {row[0].strip("`"): ast.literal_eval(row[1].strip("`")) for row in rows("instructors", "`c.Graders.`")}
    assert told == {name: getattr(own, name) for name in read}


@pytest.mark.parametrize(("page", "first"), [("trust", "promise"), ("cases", "kind")])
def test_every_row_names_tests_that_exist(page: str, first: str) -> None:
    """Each promise of the trust model and each kind of case names at least one test, and each test that it names is there."""
    named = {row[0]: re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[-1]) for row in rows(page, first)}
    assert all(named.values()), [kind for kind, tests in named.items() if not tests]
    missing = [
        f"{path}::{name}"
        for tests in named.values()
        for path, name in tests
        if not (ROOT / path).is_file() or name not in functions(ROOT / path)
    ]
    assert missing == []


def functions(path: Path) -> set[str]:
    """Names of the functions at the top of a file."""
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in GUIDES)])
def test_links_lead_somewhere(page: str) -> None:
    """A link or picture of a page is a file of this repository, or an address of its own."""
    path = ROOT / page
    targets = re.findall(r"\]\(([^)#\s]+)\)", path.read_text())
    assert [one for one in targets if "://" not in one and not (path.parent / one).exists()] == []


def test_the_rooms_of_the_architecture_are_those_of_the_package() -> None:
    """The page names every room and every module that stands beside the rooms, and no other."""
    page = (DOCS / "architecture.md").read_text()
    rooms = {path.name for path in (ROOT / "graders").iterdir() if (path / "__init__.py").is_file()}
    assert set(re.findall(r"`graders/(\w+)/`", page)) == rooms
    beside = {path.name for path in (ROOT / "graders").glob("*.py")} - {"__init__.py"}
    assert {name for name in beside if name not in page} == set()


def test_the_drawing_is_readable_and_still() -> None:
    """The drawing is well-formed, has a title and a description, light and dark colours, no script, and nothing from elsewhere."""
    text = (DOCS / "architecture.svg").read_text()
    root = ElementTree.fromstring(text)
    tags = [one.tag.rpartition("}")[2] for one in root.iter()]
    assert {"title", "desc", "style"} <= set(tags)
    assert not {"script", "image", "foreignObject", "use"} & set(tags)
    assert "prefers-color-scheme: dark" in text
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_readme_leads_to_every_guide() -> None:
    """Somebody who opens the repository finds each guide from its first page."""
    readme = (ROOT / "README.md").read_text()
    assert [name for name in GUIDES if f"(docs/{name}.md)" not in readme] == []


def test_the_day_shows_the_pictures_that_its_test_takes() -> None:
    """Each step that the test of the day keeps is on the page, each picture is small enough to load, and none is left over."""
    taken = re.findall(r'picture\("([\w-]+)"\)', (ROOT / "tests/system/test_day.py").read_text())
    shown = re.findall(r"\(pictures/([\w-]+)\.png\)", (DOCS / "day.md").read_text())
    assert sorted(shown) == sorted(taken) == sorted(one.stem for one in (DOCS / "pictures").glob("day-*.png"))
    assert [one for one in (DOCS / "pictures").glob("day-*.png") if one.stat().st_size >= 150_000] == []
