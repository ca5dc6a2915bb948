"""Laws of mutants: each holds one mistake that a student could make, and none that no test could see."""

from __future__ import annotations

import ast

import pytest

from graders.course.mutants import mutants

CASES = {
    "axis left out": ("y = jnp.sum(x, axis=0)", "y = jnp.sum(x)"),
    "another axis": ("y = jnp.sum(x, axis=0)", "y = jnp.sum(x, axis=1)"),
    "axes swapped": ("y = x[:, None]", "y = x[None, :]"),
    "another dtype": ("y = x.astype(jnp.float32)", "y = x.astype(jnp.int32)"),
    "no dtype": ("y = jnp.ones(3, dtype=jnp.int32)", "y = jnp.ones(3)"),
    "no conversion": ("y = x.astype(jnp.float32)", "y = x"),
    "mask dropped from where": ("y = jnp.where(m, x, 0)", "y = jnp.where(True, x, 0)"),
    "mask dropped from a product": ("y = x * m", "y = x * 1"),
    "mask dropped from a sum": ("y = jnp.sum(x, where=m)", "y = jnp.sum(x)"),
    "offset dropped": ("y = x + 1", "y = x * 1"),
    "less for less or equal": ("y = x <= 1", "y = x < 1"),
    "less or equal in a chain": ("y = 0 < x <= 1", "y = 0 < x < 1"),
    "branches swapped": ("y = lax.cond(p, f, g, x)", "y = lax.cond(p, g, f, x)"),
    "a Python if": ("y = lax.cond(p, f, g, x)", "y = (f if p else g)(x)"),
    "static for dynamic": ("y = jax.jit(f)", "y = jax.jit(f, static_argnums=1)"),
    "dynamic for static": ("y = jax.jit(f, static_argnames='n')", "y = jax.jit(f)"),
    "jit left out": ("y = jax.jit(f)", "y = f"),
    "decorator left out": ("@jax.jit\ndef y(x):\n    return x + 1", "def y(x):\n    return x + 1"),
    "a Python loop": ("y = jnp.sum(x)", "y = sum((float(_v) for _v in x))"),
    "another error": ("def y(x):\n    raise ValueError('no')", "def y(x):\n    raise KeyError('no')"),
    "a guard left out": ("def y(x):\n    if x:\n        raise E\n    return 1", "def y(x):\n    if False:\n        raise E\n    return 1"),
    "one too many": ("y = jnp.zeros(n)", "y = jnp.zeros(n + 1)"),
    "one too few": ("y = len(x)", "y = len(x) - 1"),
    "another constant": ("y = 3", "y = 4"),
    "another reduction": ("y = x.sum()", "y = x.mean()"),
    "and for or": ("y = p and q", "y = p or q"),
}  # fmt: skip


def texts(source: str, **more: str) -> set[str]:
    """The sources of the mutants of an answer that must define `y`."""
    return {one.source.strip() for one in mutants(source, {"y"}, **more)}


@pytest.mark.parametrize("mistake", CASES)
def test_the_mistake_is_made(mistake: str) -> None:
    """Each kind of mistake is among the mutants of an answer that can hold it."""
    source, wrong = CASES[mistake]
    assert wrong in texts(source)


@pytest.mark.parametrize("mistake", CASES)
def test_mutants_differ_from_the_answer_and_each_other(mistake: str) -> None:
    """No two mutants are the same program, each is valid Python, and each tells what was changed."""
    source, _ = CASES[mistake]
    made = mutants(source, {"y"})
    programs = [ast.dump(ast.parse(one.source)) for one in made]
    assert len({*programs, ast.dump(ast.parse(ast.unparse(ast.parse(source))))}) == len(made) + 1
    assert all(one.what and one.diff.lstrip().startswith(("-", "+")) for one in made)


def test_what_no_test_sees_stays() -> None:
    """Docstrings, annotations, messages, prints and statements that the wanted names do not need are not changed."""
    source = 'z = 1\ndef y(x: "text") -> "text":\n    """What it does."""\n    print(2)\n    raise E("words")\nprint(3)'
    assert {one.what for one in mutants(source, {"y"})} == {"y: returns its argument"}


def test_what_was_handed_out_is_no_mutant() -> None:
    """An answer that is as released is not tried: it is the blank submission."""
    assert "y = 4" in texts("y = 3")
    assert "y = 4" not in texts("y = 3", released="y = 4")


def test_results_are_hard_coded_from_the_visible_tests() -> None:
    """A function that knows the visible results by heart is a mutant, and so is one that gives one of them always."""
    visible = "one = [1]\nassert y(one) == 2.0, 'words'\nassert float(y([3])) == 4.0\nassert np.shape(y(one)) == (7,)"
    made = texts("def y(x):\n    return 2.0 * x", visible=visible)
    assert {"def y(*given):\n    return 2.0", "def y(*given):\n    return 4.0"} <= made
    assert "def y(*given):\n    return (7,)" not in made
    [lookup] = [text for text in made if "known" in text]
    space: dict = {}
    exec(lookup, space)
    assert (space["y"]([1]), space["y"]([3]), space["y"]([5])) == (2.0, 4.0, 4.0)


def test_an_answer_that_is_no_python_has_no_mutants() -> None:
    """What cannot be parsed cannot be changed."""
    assert mutants("def", {"y"}) == ()
