"""Laws of ownership: whose is a name that a test reads."""

from __future__ import annotations

import pytest
from written_cells import answer, judge, locked

from graders.coursework import ReleasedCell
from graders.exam.bindings import bound, parse, read
from graders.exam.ownership import Names, owners


def names_of(test: str, *cells: ReleasedCell, modules: tuple[str, ...] = ()) -> Names:
    """What the test "t" with this text needs after these cells."""
    return owners([*cells, judge("t", test)], modules)["t"]


def reads(source: str) -> set[str]:
    """What a cell needs from outside itself."""
    tree = parse(source)
    assert tree is not None
    return set(read(tree))


def binds(source: str) -> set[str]:
    """What a cell leaves behind."""
    tree = parse(source)
    assert tree is not None
    return bound(tree)


def test_answers_and_locked_cells_belong_to_the_candidate() -> None:
    """What an answer or a locked cell binds is fetched from the candidate."""
    found = names_of("assert f(x) == 3", locked("set-up", "x = 2"), answer("a", "def f(v): return v + 1"))
    assert found == Names(("f", "x"), ())


def test_names_of_the_test_itself_are_its_own() -> None:
    """A name that the test binds before it reads it is asked of nobody, even if an answer binds it too."""
    found = names_of("expected = 55.0\nassert f() == expected", answer("a", "expected = 0\ndef f(): return expected"))
    assert found == Names(("f",), ())


def test_an_answer_that_defines_a_tests_names_changes_nothing() -> None:
    """The author's source alone decides: `released` text, where a student's would stand, is never looked at."""
    honest = [answer("a", "def f(): return 1"), judge("one", "helper = abs"), answer("b", "g = 2")]
    forged = [
        answer("a", "def f(): return 1", released="helper = expected = np = lambda *_: 0"),
        judge("one", "helper = abs"),
        answer("b", "g = 2", released="from forged import *"),
    ]
    last = judge("t", "assert helper(f()) == 1")
    assert owners([*honest, last], ())["t"] == owners([*forged, last], ())["t"] == Names(("f",), (), ("helper",))


def test_the_last_binder_owns() -> None:
    """A name bound by a test belongs to the tests until an answer or a locked cell binds it again."""
    first = judge("one", "shared = 1")
    assert names_of("shared", answer("a", "shared = 0"), first) == Names((), (), ("shared",))
    assert names_of("shared", first, answer("b", "shared = 2")) == Names(("shared",), ())
    assert names_of("shared", first, locked("b", "shared = 2"), judge("two", "shared = 3")) == Names(
        (), (), ("shared",)
    )


def test_libraries_are_the_examiners_own() -> None:
    """An import of the author becomes the same import in the examiner, under the same name."""
    cells = [locked("set-up", "import jax, math as m\nimport jax.numpy as jnp\nfrom fractions import Fraction as F")]
    found = names_of("jax, m, jnp, F, x", *cells, answer("a", "x = 1"))
    assert found.candidate == ("x",)
    assert set(found.imports) == {
        "import jax",
        "import math as m",
        "import jax.numpy as jnp",
        "from fractions import Fraction as F",
    }


@pytest.mark.parametrize("between", ["\n", "|"])
def test_submodules_of_one_package_are_all_imported(between: str) -> None:
    """`import a.b` and `import a.c`, in one cell or two, make both reachable."""
    texts = f"import xml.dom.minidom{between}import xml.etree.ElementTree".split("|")
    found = names_of("xml.dom.minidom, xml.etree", *(locked(f"c{n}", text) for n, text in enumerate(texts)))
    space: dict[str, object] = {}
    for statements in found.imports:
        exec(statements, space)
    assert eval("xml.dom.minidom.parseString and xml.etree.ElementTree.XML", space)


@pytest.mark.parametrize(
    ("cells", "owner"),
    [
        (["import statistics as s", "s = 3"], "candidate"),
        (["s = 3", "import statistics as s"], "imports"),
        (["import statistics as s\ns = s.mean"], "candidate"),
        (["s = 3\nimport statistics as s"], "imports"),
    ],
)
def test_an_import_counts_where_it_is_the_last_binding(cells: list[str], owner: str) -> None:
    """A name imported and then bound to something else is no module any more, and the other way round."""
    found = names_of("s", *(locked(f"c{n}", text) for n, text in enumerate(cells)))
    assert (found.candidate, found.imports) == (
        (("s",), ()) if owner == "candidate" else ((), ("import statistics as s",))
    )


@pytest.mark.parametrize("statement", ["import mine", "from mine import f as mine", "import mine.part as mine"])
def test_modules_of_the_assignment_belong_to_the_candidate(statement: str) -> None:
    """What comes from the assignment's own Python files is student code and stays in the candidate."""
    assert names_of("mine", locked("set-up", statement), modules=("mine",)) == Names(("mine",), ())


def test_relative_and_star_imports_are_asked_of_the_candidate() -> None:
    """Names that no import statement spells out are looked up where the notebook ran."""
    found = names_of("here, there", locked("set-up", "from . import here\nfrom anywhere import *"))
    assert found == Names(("here", "there"), ())


def test_builtins_are_the_examiners_own_unless_the_author_binds_them() -> None:
    """`sum` means Python's sum, whatever a student does with the name; an author's own `sum` is meant where it is."""
    assert names_of("assert sum(xs) == 3", answer("a", "xs = [1, 2]")) == Names(("xs",), ())
    assert names_of("assert sum(xs) == 3", answer("a", "xs = [1, 2]\ndef sum(x): return 3")).candidate == ("sum", "xs")


def test_magics_and_text_that_is_no_python_do_no_harm() -> None:
    """A cell with IPython syntax is understood, and one that is no Python binds nothing."""
    cells = [locked("one", "%matplotlib inline\n!ls\nkept = 1"), locked("two", "this is no Python"), judge("other", "")]
    assert "kept" in names_of("kept", *cells).candidate


@pytest.mark.parametrize(
    ("source", "needed"),
    [
        ("x = 1\ny = x + z", {"z"}),
        ("x = x + 1", {"x"}),
        ("count += 1", {"count"}),
        ("rows[0] = 1", {"rows"}),
        ("del gone", {"gone"}),
        ("if (n := size) > 3: m = n", {"size"}),
        ("with opened(path) as f:\n    text = f.read()\nprint(text)", {"opened", "path", "print"}),
        ("for i, (j, *k) in pairs:\n    total = i + j + start\nelse:\n    last = i, k", {"pairs", "start"}),
        ("while going:\n    going = step(going)", {"going", "step"}),
        ("try:\n    a = b\nexcept E as error:\n    c = error\nelse:\n    d = a\nfinally:\n    e = f", {"b", "E", "f"}),
        ("try:\n    a = b\nfinally:\n    c = d", {"b", "d"}),
        ("try:\n    with w:\n        for i in r:\n            if q: z = i\nfinally:\n    done = z", {"w", "r", "q"}),
        ("match point:\n    case [x, *rest]: y = x, rest\n    case {'k': v, **more}: y = v, more", {"point"}),
        ("def f(): return later\nlater = 1", set()),
        ("def f(): return elsewhere", {"elsewhere"}),
        ("def f(v=base): return v\nbase = 1", {"base"}),
        ("@wrap\ndef f(v: kind) -> kind: return v\nwrap = kind = 1", {"wrap", "kind"}),
        ("def f(v):\n    total = 0\n    total += v\n    return total", set()),
        ("def f():\n    def g(): return h()\n    return g\ndef h(): return outer", {"outer"}),
        ("class A(B):\n    x = 1\n    y = x + z\n    def m(self): return self.q + w", {"B", "z", "w"}),
        ("key = lambda v: v + offset", {"offset"}),
        ("print(f'{a!r:{width}}')", {"print", "a", "width"}),
        ("global shared\nshared = other", {"other"}),
        ("await ready()", {"ready"}),
    ],
)
def test_a_cell_needs_what_it_reads_before_it_binds_it(source: str, needed: set[str]) -> None:
    """Blocks run in order, a function's body later, and only what is bound nowhere before comes from outside."""
    assert reads(source) == needed


@pytest.mark.parametrize(
    ("source", "needed", "bound_names"),
    [
        ("ys = [f(v) for v in vs if v in seen]", {"f", "vs", "seen"}, {"ys"}),
        ("ys = {k: v for k, v in d.items()}; zs = {v for v in d}", {"d"}, {"ys", "zs"}),
        ("print(sum(v * w for v in vs for w in v))", {"print", "sum", "vs"}, set()),
        ("vs = [v for v in vs]", {"vs"}, {"vs"}),
        ("vs = [vs for vs in vs]", {"vs"}, {"vs"}),
        ("vs = [v for v in [v for v in v]]", {"v"}, {"vs"}),
        ("ys = [last := v for v in vs]", {"vs"}, {"ys", "last"}),
        ("v = v + sum([v for v in vs])", {"v", "sum", "vs"}, {"v"}),
        ("def f(): return [v for v in vs]", {"vs"}, {"f"}),
        ("ys = [v for v in vs]\nprint(v)", {"vs", "print", "v"}, {"ys"}),
    ],
)
def test_loop_names_of_comprehensions_stay_inside(source: str, needed: set[str], bound_names: set[str]) -> None:
    """A comprehension's own names are neither read from outside nor left behind, on every Python."""
    assert (reads(source), binds(source)) == (needed, bound_names)


@pytest.mark.parametrize(
    ("source", "bound_names"),
    [
        ("def f():\n    global made\n    made = inner = 1", {"f", "made"}),
        ("import a.b, c.d as e\nfrom g import h as i, j", {"a", "e", "i", "j"}),
        ("with a as (b, [c]):\n    d: int = 1", {"b", "c", "d"}),
        ("for x.attribute in y: z[0] = 1", set()),
        ("try: pass\nexcept* E as group: f = 1", {"group", "f"}),
        ("class A:\n    inner = 1\n    def m(self): deep = 1", {"A"}),
    ],
)
def test_a_cell_leaves_behind_what_it_binds_at_module_level(source: str, bound_names: set[str]) -> None:
    """Attributes, items, and the locals of functions and classes are no names of the notebook."""
    assert binds(source) == bound_names
