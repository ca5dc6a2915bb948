"""Laws of the caches of compiled programs that the author's own run fills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from notebook_samples import answer, dump, hidden, locked, notebook

from graders.course.assignments import read_assignment
from graders.course.reference import cache_folders, establish
from graders.coursework import Assignment
from graders.kernels import xla
from graders.kernels.nursery import best_level
from graders.run import pipeline

ANSWER = """\
def square(x):  # by the name of a plain operation
    return x * 17.0


@jax.jit
def chosen(x):
    return jax.lax.cond(x.sum() > 0, lambda v: v + 1, jnp.cos, x)


def loop(x):
    return jax.lax.scan(lambda held, one: (held + one, held), 0.0, x)[1]


each = jax.jit(lambda x: jnp.sinh(x) * 3)
turned = jax.jit(square)(jnp.ones(3))"""
TEST = """\
def apply(f, x):
    return f(x)

x = jnp.arange(3.0)
assert float(chosen(x)[2]) == 3.0
assert float(loop(x)[2]) == 1.0
assert float(each(x)[0]) == 0.0
"""


def handed_out(course: Path, stub: Any) -> Assignment:
    """The assignment of a course, once this notebook is its release."""
    (course / "release" / "ps1").mkdir(parents=True)
    (course / "release" / "ps1" / "nb.ipynb").write_bytes(dump(stub))
    return read_assignment(course, "ps1")


def programs(folder: Path) -> set[str]:
    """Names of the programs in a cache."""
    files = (path.name for path in folder.iterdir() if path.name.endswith("-cache"))
    return {name.removeprefix("jit_").rpartition("-cache")[0].rpartition("-")[0] for name in files}


def test_programs_are_looked_for_under_the_flags_that_they_were_compiled_with(
    tmp_path: Path, small_course, monkeypatch
) -> None:
    """Other flags of XLA, other folders: the author's own run fills them anew, and nobody looks where nothing can be found."""
    tested = notebook(hidden("a-test", "assert True", 1))
    small_course(tmp_path, {"ps1": tested})
    assignment = handed_out(tmp_path, tested)
    before = cache_folders(tmp_path, assignment)
    monkeypatch.setattr(xla, "flags", lambda: "--xla_some_flag")
    after = cache_folders(tmp_path, assignment)
    assert set(before.values()).isdisjoint(after.values())


def test_candidates_share_plain_operations_and_nothing_of_the_solution(tmp_path: Path, small_course) -> None:
    """The candidates' cache holds plain operations, also those of a solution without jit, and what released cells run; no
    function of the solution is in it, under whatever name."""
    released = "# Write chosen, loop and each.\nimport jax\nimport jax.numpy as jnp\n\n@jax.jit\ndef shown(x):\n    return x + 5\n\nshown(jnp.ones(4))"
    around = locked("setup", released), hidden("a-test", TEST, 1)
    settings = small_course(tmp_path, {"ps1": notebook(around[0], answer("a", ANSWER), around[1])})
    assignment = handed_out(tmp_path, notebook(around[0], answer("a", "raise NotImplementedError()"), around[1]))
    with pipeline.new_zygote() as zygote:
        establish(tmp_path, assignment, pipeline.conditions_of(settings, "ps1", best_level()), zygote)
    held = programs(cache_folders(tmp_path, assignment)["candidate"])
    assert held.isdisjoint({"square", "chosen", "loop", "cond", "scan", "_lambda", "_lambda_", "apply", "cumsum"}), held
    assert {"shown", "greater", "_reduce_sum", "sinh", "multiply"} <= held
