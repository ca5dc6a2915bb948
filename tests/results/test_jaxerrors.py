"""Laws of advice on JAX: what the installed JAX really raises in a student's cell is answered with what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from result_samples import assignment, cell

from graders.coursework import Assignment, Reference, Role, Submission, SubmittedCell
from graders.exam.pair import Conditions
from graders.exam.plan import seal
from graders.exam.session import examine
from graders.kernels.nursery import Limits, best_level
from graders.results import hints, jaxerrors, judging
from graders.results.scoring import score
from graders.run import pipeline
from graders.runs import Problem, Run

START = (
    "import functools\nimport jax\nimport jax.numpy as jnp\nimport jax.ops\nimport numpy as np\nx = jnp.arange(3.0)\n"
)

# What a student writes, and a part of the advice on it
MISTAKES = {
    "if on a tracer": ("jax.jit(lambda v: v if v > 0 else -v)(1.0)", "jax.lax.cond"),
    "and on a tracer": ("jax.jit(lambda v: v > 0 and v < 2)(1.0)", "jax.lax.cond"),
    "float of a tracer": ("jax.jit(lambda v: float(v))(1.0)", "after the call"),
    "item of a tracer": ("jax.jit(lambda v: v.item())(1.0)", "after the call"),
    "nonzero": ("jax.jit(lambda v: jnp.nonzero(v))(x)", "depends on the data"),
    "numpy on a tracer": ("jax.jit(lambda v: np.sin(v))(x)", "jnp function of the same name"),
    "range of a tracer": ("jax.jit(lambda n: [0 for i in range(n)])(3)", "fori_loop"),
    "list index": ("jax.jit(lambda i: [1, 2][i])(1)", "index a JAX array"),
    "leak": ("kept = []\njax.jit(lambda v: kept.append(v))(1.0)\nkept[0] + 1", "Return what you need"),
    "mask": ("jax.jit(lambda v: v[v > 0])(x)", "jnp.where"),
    "size": ("jax.jit(lambda n: jnp.zeros(n))(3)", "static_argnames"),
    "add": ("x + jnp.ones(4)", ".shape"),
    "matmul": ("jnp.ones((2, 3)) @ jnp.ones((2, 3))", ".shape"),
    "reshape": ("jnp.arange(6).reshape(4, 2)", ".shape"),
    "concatenate": ("jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))])", ".shape"),
    "stack": ("jnp.stack([x, jnp.ones(4)])", ".shape"),
    "vmap": ("jax.vmap(lambda a, b: a + b)(x, jnp.ones(4))", ".shape"),
    "einsum": ("jnp.einsum('ij,jk->ik', jnp.ones((2, 3)), jnp.ones((2, 3)))", ".shape"),
    "set a slice": ("x.at[0:2].set(x)", ".shape"),
    "static list": ("jax.jit(lambda v, n: v, static_argnums=1)(1.0, [1])", "static must be hashable"),
    "static array": ("jax.jit(lambda v, n: v, static_argnums=1)(1.0, x)", "static must be hashable"),
    "in place": ("x[0] = 1.0", ".at[i].set"),
    "in place, added": ("x[0] += 1.0", ".at[i].set"),
    "in place, traced": ("def f(v):\n    v[0] = 1.0\n    return v\njax.jit(f)(x)", ".at[i].set"),
    "key reuse": (
        "with jax.debug_key_reuse(True):\n    k = jax.random.key(0)\n    jax.random.normal(k) + jax.random.normal(k)",
        "jax.random.split",
    ),
    "a number as key": ("jax.random.normal(0)", "jax.random.key(0)"),
    "several keys": ("jax.random.normal(jax.random.split(jax.random.key(0)))", "Take one"),
    "branches": ("jax.lax.cond(True, lambda: 1.0, lambda: jnp.ones(2))", "branches"),
    "carry": ("jax.lax.fori_loop(0, 3, lambda i, c: jnp.ones(3), 0.0)", "branches"),
    "predicate": ("jax.lax.cond(jnp.ones(2), lambda: 1, lambda: 2)", "one truth value"),
    "gradient of many": ("jax.grad(lambda v: v)(x)", "one number"),
    "gradient of an integer": ("jax.grad(lambda v: v * 1.0)(3)", "3.0 instead of 3"),
    "a list": ("jnp.sin([1, 2])", "Make an array first"),
    "a text": ("jnp.sin('a')", "Make an array first"),
    "returns a text": ("jax.jit(lambda v: 'a')(1)", "Return arrays"),
    "deleted": ("x.delete()\nx + 1", "given away"),
    "axis": ("jnp.sum(x, axis=1)", ".ndim"),
    "tree_map": ("jax.tree_map(lambda v: v, x)", "use jax.tree.map instead"),
    "from jax": ("from jax import tree_map", "use jax.tree.map instead"),
    "a module": ("import jax.linear_util", "use jax.extend.linear_util instead"),
    "from a module": ("from jax.experimental import stax", "use jax.example_libraries.stax instead"),
    "DeviceArray": ("isinstance(x, jnp.DeviceArray)", "use jax.Array instead"),
    "core": ("jax.core.Primitive('p')", "use jax.extend.core.Primitive instead"),
    "ops": ("jax.ops.index_update(x, 0, 1.0)", "use x.at[i].set(value) instead"),
    "callback": ("jax.jit(lambda v: jax.pure_callback(lambda a: 1 / 0, v, v))(x)", "by itself with a NumPy array"),
    "nan": ("jax.config.update('jax_debug_nans', True)\njnp.log(-1.0)", "jnp.where has to guard"),
}
PLAIN = {"tuple": "t = (1, 2)\nt[0] = 3", "text": "t = 'text'\nt[0] = 'T'"}


def run_of(given: Assignment, texts: Mapping[str, str]) -> Run:
    """One run of a notebook with these answers, behind the walls of this machine."""
    handed_in = Submission("student-01", "ps1", {"nb": tuple(SubmittedCell("code", texts[n], n) for n in texts)}, {})
    conditions = Conditions(best_level(), Limits(memory_bytes=2**30), 30.0, 120.0, 20_000)
    with pipeline.new_zygote() as zygote:
        return examine(seal(given, handed_in), conditions, zygote)


@pytest.fixture(scope="module")
def raised() -> Mapping[str, Problem]:
    """What each mistake ends with as a cell of its own, all in one candidate behind the walls of this machine."""
    texts = {name: START + source for name, (source, _) in MISTAKES.items()} | PLAIN
    given = assignment(*(cell(Role.answer, name, source="", released="") for name in texts))
    run = run_of(given, texts)
    return {one.id: one.problem for one in run.cells if one.id is not None and one.problem is not None}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_jax_raises_is_answered(raised, name):
    """Each mistake, made for real, gets the advice that names its way out."""
    source, told = MISTAKES[name]
    assert told in (hints.advice_for_cell(raised[name], source) or ""), raised[name]


def test_every_rule_has_its_mistake(raised):
    """No advice stands in the tables without a mistake that shows that JAX still raises it."""
    told = {hints.advice_for_cell(raised[name], source) for name, (source, _) in MISTAKES.items()}
    assert {*jaxerrors.BY_CLASS.values(), *(advice for _, _, advice in jaxerrors.RULES)} <= told


@pytest.mark.parametrize("old", jaxerrors.REMOVED_NAMES)
def test_a_removed_name_is_gone(old):
    """The advice that a name was removed is given only by a JAX that does not have it."""
    import importlib

    module, _, name = old.rpartition(".")
    try:
        found = hasattr(importlib.import_module(module), name)
    except AttributeError:
        found = False
    assert not found


@pytest.mark.parametrize("name", PLAIN)
def test_the_errors_of_python_are_not_taken_for_those_of_jax(raised, name):
    """That a tuple or a text cannot be changed is no matter of JAX arrays."""
    assert hints.advice_for_cell(raised[name], PLAIN[name]) is None


LEAKS = {
    "jit": "kept = []\njax.jit(lambda v: kept.append(v * 2))(1.0)",
    "an argument": "kept = []\njax.jit(lambda v: kept.append(v))(1.0)",
    "vmap": "kept = []\njax.vmap(lambda v: kept.append(v * 2))(x)",
    "grad": "kept = []\njax.grad(lambda v: (kept.append(v * 2), v)[1])(1.0)",
    "scan": "kept = []\njax.lax.scan(lambda c, v: (kept.append(c), (c, v))[1], 0.0, x)",
    "an attribute": "class Model: pass\nkept = [Model()]\ndef f(v):\n    kept[0].seen = v * 2\n    return v\njax.vmap(f)(x)\nkept = [kept[0].seen]",
    "a closure": "def make():\n    held = []\n    return held.append, lambda: held[0]\nkeep, get = make()\njax.jit(lambda v: keep(v * 2))(1.0)\nclass Kept:\n    __getitem__ = lambda self, i: get()\nkept = Kept()",
}
USES = {
    "an operation": "kept[0] + 1",
    "a number": "float(kept[0])",
    "numpy": "np.sin(kept[0])",
    "a function": "jax.jit(lambda v: v + kept[0])(1.0)",
}
# Of values from jax.vmap and jax.grad JAX says nowhere where they come from when a plain number is made of them
SILENT = {(leak, use) for leak in ("vmap", "grad", "an attribute") for use in ("a number", "numpy")}


@pytest.fixture(scope="module")
def advised() -> Mapping[str, str | None]:
    """The advice on each leak and on each use of it, all in one notebook; every test of them fails."""
    texts = {"start": START}
    for number, leak in enumerate(LEAKS):
        texts |= {leak: LEAKS[leak].replace("kept", f"kept_{number}")}
        texts |= {f"{leak}, {use}": USES[use].replace("kept", f"kept_{number}") for use in USES}
    texts |= {"called": "def g(v):\n    return v + kept_0[0]"}
    tests = dict.fromkeys(texts, "assert False") | {"called": "g(1.0)"}
    cells = [
        (cell(Role.answer, one, source="def g(v):\n    return v", released=""), cell(Role.test, f"{one}-test", 1, text))
        for one, text in tests.items()
    ]
    given = assignment(*(one for pair in cells for one in pair))
    run = run_of(given, texts)
    return {one.id.removesuffix("-test"): one.advice for one in score(given, Reference("0" * 64, {}), run, texts)}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_kept_value_is_told_where_it_was_made(advised, leak):
    """J3: the cell that kept a traced value is named where it fails, and is told itself, whatever made it and however it is used."""
    told = {use: advised[f"{leak}, {use}"] for use in USES if (leak, use) not in SILENT}
    assert told == dict.fromkeys(told, f"{judging.LEAK} It was made in the cell {leak}, and failed here.")
    assert advised[leak] == f"{judging.LEAK} A later cell failed on it."


def test_a_kept_value_that_a_test_meets_is_told_where_it_was_made(advised):
    """J3: a function that a test calls may fail on a value that another cell kept; that cell is named."""
    assert advised["called"] == f"{judging.LEAK} It was made in the cell {next(iter(LEAKS))}."


def test_an_error_in_a_running_function_is_no_kept_value(raised):
    """What fails while its own function is traced is told as that, wherever the function was defined."""
    names = [name for name, problem in raised.items() if jaxerrors.leaked_from(problem)]
    assert names == ["leak"]
