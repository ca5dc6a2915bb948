"""Laws of compiling for a TPU that need no TPU compiler: what is exported, what is noted, and what a lost checker costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest
from candidates import Candidate
from written_cells import answer, assignment, handed_in, judge

from graders.compilations import Compilation, CompileOutcome
from graders.errors import InfrastructureError, SettingsError
from graders.exam import artifacts, checker, compiling, control, hlo, wire
from graders.exam.compiling import Compiling
from graders.exam.exported import transformed
from graders.exam.pair import PRELOAD, Conditions
from graders.exam.plan import seal
from graders.exam.session import examine
from graders.exam.topologies import CHIPS, Chip, chip_of
from graders.kernels import tpucompiler
from graders.kernels.nursery import PRELOAD as KERNEL_PRELOAD
from graders.kernels.nursery import Limits, Zygote, best_level
from graders.targets import BUILT_IN

V5E = "v5e:1x1"
X = jnp.arange(3.0)
AVAL = artifacts.aval_of(X)
LIMITS = Limits(memory_bytes=600 * 2**20)

COUNTED = """
    traces = []

    def f(x):
        traces.append(1)
        return jnp.where(x > 1, x, 0.0).sum()

    def loud(x):
        jax.debug.print("{}", x)
        return x + 1

    def split(x):
        return jnp.linalg.eig(jnp.outer(x, x) + jnp.eye(3))[0].real
"""


def lowered(candidate: Candidate, name: str) -> wire.Lowered:
    """What comes along for a TPU when a test uses this function of the candidate under jit."""
    found: list[wire.Lowered] = []
    candidate.peer.elsewhere = "tpu"
    candidate.peer.on_program = lambda target, chain, avals, program: found.append(program)
    jax.jit(candidate[name])(X).block_until_ready()
    return found[0]


def test_the_program_for_a_tpu_comes_along_untraced(candidate: Callable[[str], Candidate]):
    """Asking for a TPU's program too leaves the CPU's program as it is and does not run the student's Python again."""
    alone, both = candidate(COUNTED), candidate(COUNTED)
    wanted = alone["f"]._program_operations((X,))
    program = lowered(both, "f")
    assert both["f"]._program_operations((X,)) == wanted
    assert len(both["traces"]) == 1
    exported, counts = artifacts.admit_for_tpu(program.program, [AVAL])
    assert (exported.platforms, program.problem, counts["select"]) == (("tpu",), "", 1)


def test_what_does_not_lower_for_a_tpu_is_still_right(candidate: Callable[[str], Candidate]):
    """A function that only a CPU can run gives its result, and the reason why there is no program for a TPU."""
    student = candidate(COUNTED)
    program = lowered(student, "split")
    assert program.program == b""
    assert "eig" in program.problem
    wanted = np.linalg.eigvals(np.outer(X, X) + np.eye(3)).real
    np.testing.assert_allclose(sorted(jax.jit(student["split"])(X)), sorted(wanted), rtol=1e-5)


def test_a_print_does_not_keep_a_program_from_a_tpu(candidate: Callable[[str], Candidate]):
    """A jax.debug.print is not part of the program, on a TPU as on a CPU."""
    artifacts.admit_for_tpu(lowered(candidate(COUNTED), "loud").program, [AVAL])


def program(function: Callable[..., object] = lambda x: (x + 1.0,), platform: str = "tpu") -> bytes:
    """A program as a candidate exports it."""
    return artifacts.export(function, [artifacts.spec_of(AVAL)], platform)


@pytest.mark.parametrize(
    ("data", "aval", "why"),
    [
        (program(platform="cpu"), AVAL, "not made for a TPU"),
        (program(), wire.Aval((4,), AVAL.dtype), "other arguments"),
        (program()[:-100], AVAL, "cannot be read"),
        (b"", AVAL, "cannot be read"),
        (b"x" * (artifacts.MAX_ARTIFACT_BYTES + 1), AVAL, "bytes"),
    ],
    ids=["for a CPU", "for other arguments", "cut off", "nothing", "too large"],
)
def test_a_program_for_a_tpu_is_admitted_like_any_other(data: bytes, aval: wire.Aval, why: str):
    """What is not a program for a TPU and these arguments is refused before a compiler sees it."""
    with pytest.raises(wire.WireError, match=why):
        artifacts.admit_for_tpu(data, [aval])


HLO = """
%fused.1 (p: f32[8]) -> f32[] {
  %p = f32[8]{0:T(128)S(1)} parameter(0), metadata={op_name=" = f32[] conditional("}
  ROOT %conditional.9 = f32[]{:T(128)} add(%p, %p), metadata={op_name="while( fusion("}
}
ENTRY %main.6 (a: f32[8]) -> f32[] {
  %a = f32[8]{0} parameter(0)
  %loop = (s32[], /*index=1*/f32[8]{0:T(128)}) while(%a), condition=%c, body=%b
  ROOT %c = (f32[]{:T(128)}) conditional(%q, %a, %a), branch_computations={%x, %y}
}
"""


def test_instructions_are_counted_and_names_are_not():
    """Opcodes are counted wherever they stand; a name or a note with the same word, which a student may choose, is not."""
    assert dict(hlo.instructions(HLO)) == {"parameter": 2, "add": 1, "while": 1, "conditional": 1}


def test_a_chain_is_told_in_the_words_of_jax():
    """A jvp that is transposed is a gradient; all else is called as JAX calls it."""
    vmap, jvp = wire.Vmap((0,)), wire.Jvp((True,))
    back = wire.Transpose((False, True), (AVAL,))
    assert transformed((jvp, back, vmap)) == ("grad", "vmap")
    assert transformed((jvp,)) == ("jvp",)
    assert transformed(()) == ()


def test_the_roofline_is_that_of_the_lesson():
    """The machine of the lesson's example: 100 GFLOP/s and 20 GB/s allow 15 GFLOP/s at 0.75 FLOP per byte, and 100 from 5 on."""
    machine = Chip("of the lesson", 100e9, 20e9, "")
    assert [machine.bound(intensity) for intensity in (0.75, 5.0, 80.0)] == [15e9, 100e9, 100e9]


def test_a_topology_is_of_a_chip_that_is_known():
    """The family before the colon names the chip, as libtpu reads it; another is told with those that there are."""
    assert chip_of("v5e:2x2") == chip_of("v5e=1x1") == CHIPS["v5e"]
    with pytest.raises(SettingsError, match=r"v9:1x1.*v5e"):
        chip_of("v9:1x1")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory", CompileOutcome.out_of_memory),
        ("NotImplementedError: multi-platform lowering for python_callback", CompileOutcome.cannot_check),
        ("MLIR translation rule for primitive 'eig' not found for platform tpu", CompileOutcome.refused),
    ],
)
def test_a_refusal_is_told_by_its_kind(text: str, outcome: CompileOutcome):
    """Too little memory, what cannot be checked and what is not taken are told apart, by the texts that JAX and libtpu write."""
    assert checker.outcome_of(text) is outcome


def test_a_missing_compiler_says_how_to_get_it(monkeypatch, tmp_path):
    """Without libtpu a sentence says what to do; a path that leads nowhere is named."""
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    monkeypatch.setattr("graders.kernels.chips.library", lambda: "")
    with pytest.raises(InfrastructureError, match=r"there is none here\. Next step: make tpu-compiler"):
        tpucompiler.find()
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(tmp_path / "nowhere.so"))
    with pytest.raises(InfrastructureError, match=r"TPU_LIBRARY_PATH names .*nowhere\.so"):
        tpucompiler.find()


def test_a_compiler_that_is_named_is_taken(monkeypatch, tmp_path):
    """TPU_LIBRARY_PATH comes before what was installed, and the version is that of the package beside it."""
    (tmp_path / "libtpu").mkdir()
    (tmp_path / "libtpu-0.0.99.dist-info").mkdir()
    (tmp_path / "libtpu-0.0.99.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: libtpu\nVersion: 0.0.99\n"
    )
    library = tmp_path / "libtpu" / "libtpu.so"
    library.write_text("")
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(library))
    assert tpucompiler.find() == tpucompiler.Library(str(library), "0.0.99")


# --- checkers that do not do their work ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> Iterator[Zygote]:
    """A zygote that knows odd checkers as well."""
    with Zygote((*KERNEL_PRELOAD, *PRELOAD, "odd_checkers"), path=(str(Path(__file__).parent),)) as started:
        yield started


@pytest.fixture
def library(monkeypatch, tmp_path) -> Path:
    """Something in the place of libtpu."""
    path = tmp_path / "libtpu.so"
    path.write_text("no library")
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(path))
    return path


def exported(
    name: str = "f", *, shown: bool = False, arguments: str = "float32[3]", problem: str = ""
) -> control.Exported:
    """A program that a test noted."""
    given = wire.Lowered("tpu", b"" if problem else program(), problem)
    return control.Exported(name, (arguments,), (), (AVAL,), given, shown)


def compiled(zygote: Zygote, *programs: control.Exported) -> Compilation:
    """What becomes of these programs of one submission."""
    with Compiling(V5E, best_level(), LIMITS, zygote) as one:
        one.add("f-test", programs)
        return one.finish()


@pytest.mark.parametrize(
    ("entry", "outcomes", "reason"),
    [
        ("dies", ["refused", "lost", "lost"], "ended (exit 3)"),
        ("hangs", ["lost", "lost", "lost"], "took too long"),
        ("lies", ["lost", "lost", "lost"], "no longer answered"),
    ],
)
def test_a_lost_checker_is_an_entry(odd, library, monkeypatch, entry, outcomes, reason):
    """A checker that dies, hangs or sends nonsense loses its program and those after it; what was compiled before stays."""
    monkeypatch.setattr(compiling, "ENTRY", f"odd_checkers:{entry}")
    monkeypatch.setattr(compiling, "COMPILE_S", 1.0)
    made = compiled(odd, *map(exported, ("f", "g", "h")))
    assert [one.outcome.value for one in made.programs] == outcomes
    first = next(one.reason for one in made.programs if one.outcome is CompileOutcome.lost)
    assert first.startswith("could not be compiled here: ")
    assert reason in first


def test_a_checker_that_never_starts_is_a_problem_of_ours(odd, library, monkeypatch):
    """One that does not get ready in time, and one whose library cannot be loaded, are told once, and each program is an entry."""
    made = compiled(odd, exported())
    assert "did not start" in made.problem
    monkeypatch.setattr(compiling, "ENTRY", "odd_checkers:idles")
    monkeypatch.setattr(compiling, "START_S", 0.5)
    idle = compiled(odd, exported())
    assert idle.problem == "The TPU compiler did not start: it took too long."
    assert [one.outcome for one in made.programs + idle.programs] == [CompileOutcome.lost] * 2


def test_most_programs_are_counted_and_each_function_is_compiled_once(odd, library, monkeypatch):
    """A function is compiled for the shapes that students see, else for the first; beyond the most, programs are only counted."""
    monkeypatch.setattr(compiling, "ENTRY", "odd_checkers:dies")
    many = [exported(f"f{number}", problem="x") for number in range(compiling.MOST + 2)]
    twice = [exported("f3", arguments="hidden", problem="x"), exported("f3", arguments="seen", problem="x", shown=True)]
    made = compiled(odd, *many, *twice)
    assert (len(made.programs), made.left_out) == (compiling.MOST, 2)
    assert (made.programs[0].function, made.programs[0].arguments) == ("f3", ("seen",))
    assert {one.outcome for one in made.programs} == {CompileOutcome.refused}
    assert "does not lower for a TPU: x" in made.programs[0].reason


# --- in a whole examination -------------------------------------------------------------------------------------------------

HIDDEN = "### BEGIN HIDDEN TESTS\nonce = jax.jit(f)\nassert float(once({long})) == 6.0\nassert jax.jit(g)({long}).shape == (4,)\n### END HIDDEN TESTS\n"
TEST = "import jax\nimport jax.numpy as jnp\n" + HIDDEN + "assert float(jax.jit(f)({short})) == 3.0"
SAME, OTHER = "jnp.arange(4.0)", "jnp.arange(3.0)"


@pytest.mark.parametrize(("short", "wanted"), [(SAME, "float32[4]"), (OTHER, "float32[3]")])
def test_without_a_compiler_nothing_is_lost(odd, library, monkeypatch, short, wanted):
    """Where there is no compiler the tests judge as ever, and the record names each function, by the shapes that students see."""
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(library.with_name("gone.so")))
    test = TEST.format(long=SAME, short=short).replace("== 3.0", "== 6.0" if short == SAME else "== 3.0")
    source = "import jax.numpy as jnp\ndef f(x): return x.sum()\ndef g(y): return y + 1"
    given = assignment([answer("f", source), judge("f-test", test)])
    conditions = Conditions(best_level(), LIMITS, 30.0, 60.0, 20_000, target=BUILT_IN["tpu-compile"])
    run = examine(seal(given, handed_in(given, {"f": source})), conditions, odd)
    assert [(one.problem, one.reason) for one in run.tests] == [(None, None)]
    made = run.compilation
    assert made is not None
    assert "TPU_LIBRARY_PATH" in (made.problem or "")
    told = [(one.function, one.arguments, one.shown, one.outcome.value) for one in made.programs]
    assert told == [("f", (wanted,), True, "lost"), ("g", ("float32[4]",), False, "lost")]
    plain = examine(
        seal(given, handed_in(given, {"f": source})), msgspec.structs.replace(conditions, target=BUILT_IN["cpu"]), odd
    )
    assert plain.compilation is None
