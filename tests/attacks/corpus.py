"""The attack corpus: what each attack tries, how success would be seen, and the submission that it becomes.

Comes in: `corpus/*.toml`, one file a family. Goes out: `Attack`s, and what each hands in. Must not: run anything.
"""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from string import Template

import msgspec
from assignment import NOTEBOOK, RIGHT, WRITTEN, WRONG, plain_cell

FOLDER = Path(__file__).parent / "corpus"
# How success would be seen, in the order of the table's columns.
SIGNS = ("forged points", "hidden text seen", "files touched", "network reached", "survivors", "browser scripts run")
# What comes before an attack that speaks the protocol: the channel in its hands, as student code can get it.
PEER = """\
import gc, os, stat, sys
wire, nodes = sys.modules["graders.exam.wire"], sys.modules["graders.exam.nodes"]
peer = next(one for one in gc.get_objects() if type(one).__name__ == "Peer")
channel = peer.channel
sockets = [int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")
           and stat.S_ISSOCK(os.stat(f"/proc/self/fd/{fd}").st_mode)]
assert channel.fileno() in sockets
yes = lambda *args, **kwargs: True
def say(body, heap=(), changes=(), rebound=None):
    wire.send(channel, wire.encode(wire.Message(body, list(heap), list(changes), rebound or {})))
def asked(op, target, *heap, **kwargs):
    say(wire.Ask(op, target, list(range(len(heap)))), heap)
    answer = wire.receive(channel)
    print(answer)
    return answer
REF = nodes.Ref(peer.tables.id_of(yes), "function", True)
"""


class Attack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a family's file. `tests/attacks/README.md` says what each field is for."""

    name: str = ""
    family: str = ""
    tries: str
    seen: tuple[str, ...]
    code: str = ""
    answers: dict[str, str] = {}
    last: str = "print(globals().get('seen'))"
    cells: tuple[dict[str, object], ...] = ()
    files: dict[str, str] = {}
    student: str = ""
    speaks: bool = False

    def notebook(self, released: dict, places: dict[str, str]) -> dict:
        """The released notebook with this attack in it: wrong answers and the code in the first answer cell, then nothing."""
        made = copy.deepcopy(released)
        first = WRONG + (PEER if self.speaks else "") + self.code
        answers = dict.fromkeys(RIGHT, "pass") | {next(iter(RIGHT)): first, WRITTEN: "I do not know."} | self.answers
        for one in made["cells"]:
            id = one["metadata"].get("nbgrader", {}).get("grade_id")
            one["source"] = self._filled(answers[id], places) if id in answers else one["source"]
        own = ({"cell_type": "code", "source": self.last}, *self.cells)
        for number, one in enumerate(own):
            kind = str(one["cell_type"])
            cell = plain_cell(f"own-{number}", self._filled(str(one["source"]), places), kind)
            made["cells"].append(cell | {k: v for k, v in one.items() if k not in ("cell_type", "source")})
        return made

    def submission(self, released: dict, places: dict[str, str]) -> dict[str, bytes]:
        """The files that are handed in."""
        notebook = msgspec.json.encode(self.notebook(released, places))
        more = {name: self._filled(text, places).encode() for name, text in self.files.items()}
        return {f"{NOTEBOOK}.ipynb": notebook} | more

    def who(self) -> str:
        """The student who hands it in."""
        return self.student or self.name

    def mark(self) -> str:
        """A word by which what this attack leaves anywhere is known."""
        return f"wombat-{self.name}"

    def _filled(self, text: str, places: dict[str, str]) -> str:
        return Template(text).safe_substitute(places, MARK=self.mark(), JS=f"alert(`{self.mark()}`)")


def read() -> tuple[Attack, ...]:
    """All attacks, by family and in the order of the files."""
    found = []
    for path in sorted(FOLDER.glob("*.toml"), key=lambda path: int(path.stem[1:].partition("-")[0])):
        entries = tomllib.loads(path.read_text())
        family = path.stem
        for name, entry in entries.items():
            attack = msgspec.convert(entry | {"name": name, "family": family}, Attack)
            assert set(attack.seen) <= set(SIGNS), f"{path.name}: {name} names a sign that no column has"
            found.append(attack)
    assert len({one.name for one in found}) == len(found), "two attacks have one name"
    return tuple(found)
