"""Transformed views: a student's function under JAX's transformations is what it would be in one process."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from candidates import Candidate, in_one_process
from jax import lax
from jax.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo

from graders.checks import operations
from graders.exam import artifacts
from graders.exam.wire import WireError

SOURCE = """
    import functools

    traced = []

    def note(value):
        traced.append(1)
        return value

    def poly(x):
        return jnp.sum(jnp.sin(x) * x**2)

    compiled = jax.jit(poly)

    def two(x, y):
        return jnp.dot(x, y) + jnp.tanh(y[0])

    def vector(x):
        return jnp.stack([x[0] * x[1], jnp.sin(x[2]), x[0] ** 3])

    def step(carry, x):
        return carry * 0.5 + x, {"seen": carry * x}

    def loss(params, batch, scale=1.0):
        predicted = params["w"] @ batch["x"] + params["b"]
        return scale * jnp.mean((predicted - batch["y"]) ** 2)

    def tree(x):
        return {"double": 2 * x, "pair": (x.sum(), [x > 0]), "none": None, "count": x.shape[0]}

    def power(x, n):
        for _ in range(n - 1):
            x = x * x
        return x

    def branch(x, gain):
        if gain > 1.0:
            return jnp.sum(x**2)
        return jnp.sum(x)

    def cond(x, gain):
        return jax.lax.cond(gain > 1.0, lambda v: jnp.sum(v**2), jnp.sum, x)

    def whole(n, mask):
        return jnp.where(mask, n * 2, n).sum()

    def draw(key, scale):
        return scale * jax.random.normal(key, (3,))

    def relu(x):
        return jnp.maximum(x, 0.0)

    def noisy(x):
        return note(x) * 2.0

    @jax.custom_vjp
    def rounded(x):
        return jnp.round(x)

    rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (10.0 * g,))

    @jax.custom_jvp
    def odd(x):
        return x * 0.0

    odd.defjvp(lambda primals, tangents: (odd(*primals), 3.0 * tangents[0]))

    def body(i, x):
        return x + i * jnp.sin(x)

    def below(x):
        return jnp.all(x < 10.0)

    def grown(x):
        return x * 2.0

    def constant(x):
        return 3.0

    def root(x):
        return jax.lax.while_loop(lambda y: jnp.abs(y * y - x) > 1e-5, lambda y: 0.5 * (y + x / y), x)

    def same_dtype(x):
        return x * 2

    def fails(x):
        raise ValueError("not like this")

    def float_of(x):
        return float(x) * 2

    def library(x):
        return jnp.linalg.solve(x @ x.T + jnp.eye(3), x[:, 0])

    class Model:
        scale = 2.0

        def __call__(self, x):
            return self.scale * x

        def apply(self, x):
            return self.scale * x + 1

    model = Model()
    halved = functools.partial(grown, 0.5)
"""
PLAIN = in_one_process(SOURCE)

X = jnp.array([0.5, -1.25, 2.0], jnp.float32)
Y = jnp.array([1.5, 0.25, -0.75], jnp.float32)
ROWS = jnp.linspace(-1.0, 1.0, 12, dtype=jnp.float32).reshape(4, 3)
PARAMS = {"w": ROWS, "b": jnp.ones(4, jnp.float32)}
BATCH = {"x": X, "y": jnp.arange(4, dtype=jnp.float32)}
AVAL = artifacts.aval_of(X)
GAINS = jnp.array([0.5, 1.0, 3.0], jnp.float32)

# Each: what a test does with names of the student. The same lines run on the same functions in this process.
USES = {
    "call": lambda s: s["poly"](X),
    "jit": lambda s: jax.jit(s["poly"])(X),
    "jit of jit": lambda s: jax.jit(s["compiled"])(X),
    "jit of both": lambda s: jax.jit(lambda x: s["poly"](x) + s["two"](x, Y))(X),
    "vmap": lambda s: jax.vmap(s["poly"])(ROWS),
    "vmap over one argument": lambda s: jax.vmap(s["two"], in_axes=(None, 0))(X, ROWS),
    "vmap over columns": lambda s: jax.vmap(s["poly"], in_axes=1, out_axes=0)(ROWS),
    "vmap out_axes": lambda s: jax.vmap(s["vector"], out_axes=1)(ROWS),
    "vmap of vmap": lambda s: jax.vmap(jax.vmap(s["relu"]))(ROWS),
    "vmap of jit": lambda s: jax.vmap(jax.jit(s["poly"]))(ROWS),
    "jit of vmap": lambda s: jax.jit(jax.vmap(s["poly"]))(ROWS),
    "grad": lambda s: jax.grad(s["poly"])(X),
    "grad of jitted": lambda s: jax.grad(s["compiled"])(X),
    "grad of two": lambda s: jax.grad(s["two"], argnums=(0, 1))(X, Y),
    "value_and_grad": lambda s: jax.value_and_grad(s["poly"])(X),
    "jit of grad": lambda s: jax.jit(jax.grad(s["poly"]))(X),
    "grad of jit": lambda s: jax.grad(jax.jit(s["poly"]))(X),
    "grad through the test": lambda s: jax.grad(lambda x: jnp.exp(s["poly"](x * 0.1)))(X),
    "vmap of grad": lambda s: jax.vmap(jax.grad(s["poly"]))(ROWS),
    "grad of vmap": lambda s: jax.grad(lambda x: jax.vmap(s["poly"])(x).sum())(ROWS),
    "jit of vmap of grad": lambda s: jax.jit(jax.vmap(jax.grad(s["two"]), in_axes=(0, None)))(ROWS, Y),
    "grad of grad": lambda s: jax.grad(jax.grad(lambda x: s["poly"](x[None])))(jnp.float32(0.7)),
    "jacfwd": lambda s: jax.jacfwd(s["vector"])(X),
    "jacrev": lambda s: jax.jacrev(s["vector"])(X),
    "hessian": lambda s: jax.hessian(s["poly"])(X),
    "jit of hessian": lambda s: jax.jit(jax.hessian(s["poly"]))(X),
    "jvp": lambda s: jax.jvp(s["vector"], (X,), (Y,)),
    "jvp of one": lambda s: jax.jvp(lambda x: s["two"](x, Y), (X,), (Y,)),
    "vjp": lambda s: jax.vjp(s["vector"], X)[1](Y),
    "linearize": lambda s: jax.linearize(s["vector"], X)[1](Y),
    "linear_transpose": lambda s: jax.linear_transpose(s["grown"], X)(Y),
    "scan": lambda s: lax.scan(s["step"], jnp.float32(0.5), X),
    "jit of scan": lambda s: jax.jit(lambda xs: lax.scan(s["step"], jnp.float32(0.5), xs))(X),
    "grad of scan": lambda s: jax.grad(lambda xs: lax.scan(s["step"], jnp.float32(0.5), xs)[0])(X),
    "fori_loop": lambda s: lax.fori_loop(0, 4, s["body"], X),
    "while_loop": lambda s: lax.while_loop(s["below"], s["grown"], jnp.abs(X)),
    "cond": lambda s: lax.cond(X[0] > 0, s["relu"], s["grown"], X),
    "switch in vmap": lambda s: jax.vmap(lambda i: lax.switch(i, [s["relu"], s["grown"]], X))(jnp.array([0, 1])),
    "map": lambda s: lax.map(s["poly"], ROWS),
    "checkpoint": lambda s: jax.grad(jax.checkpoint(s["poly"]))(X),
    "eval_shape": lambda s: jax.eval_shape(s["tree"], X)["double"].shape,
    "pytrees": lambda s: jax.grad(s["loss"])(PARAMS, BATCH),
    "keywords": lambda s: jax.jit(lambda p: s["loss"](p, batch=BATCH, scale=jnp.float32(2.5)))(PARAMS),
    "static keyword": lambda s: jax.jit(s["loss"], static_argnames="scale")(PARAMS, BATCH, scale=3.0),
    "tree result": lambda s: jax.jit(s["tree"])(X),
    "tree result in vmap": lambda s: jax.vmap(lambda x: s["tree"](x)["pair"])(ROWS),
    "static number": lambda s: jax.jit(s["power"], static_argnums=1)(X, 3),
    "number inside": lambda s: jax.grad(lambda x: s["power"](x, 2).sum())(X),
    "integers and booleans": lambda s: jax.jit(s["whole"])(jnp.arange(4), jnp.array([True, False, True, True])),
    "integers in vmap": lambda s: jax.vmap(s["whole"], in_axes=(0, None))(
        jnp.arange(8).reshape(2, 4), jnp.ones(4, bool)
    ),
    "grad beside integers": lambda s: jax.grad(lambda x: s["cond"](x, 2) + s["whole"](jnp.arange(3), x > 0))(X),
    "key": lambda s: jax.jit(s["draw"])(jax.random.key(3), 2.0),
    "keys in vmap": lambda s: jax.vmap(s["draw"], in_axes=(0, None))(jax.random.split(jax.random.key(3), 4), 1.0),
    "grad beside a key": lambda s: jax.grad(lambda c: s["draw"](jax.random.key(1), c).sum())(1.5),
    "raw key": lambda s: jax.jit(s["draw"])(jax.random.PRNGKey(3), 2.0),
    "branch in grad": lambda s: [jax.grad(s["branch"])(X, gain) for gain in GAINS],
    "cond in grad": lambda s: jax.vmap(jax.grad(s["cond"]), in_axes=(None, 0))(X, GAINS),
    "custom_vjp": lambda s: jax.grad(lambda x: s["rounded"](x).sum())(X),
    "custom_jvp": lambda s: jax.jvp(s["odd"], (X,), (Y,)),
    "constant": lambda s: (jax.jit(s["constant"])(X), jax.grad(s["constant"])(X)),
    "while inside": lambda s: jax.jit(s["root"])(jnp.float32(2.0)),
    "bfloat16": lambda s: jax.jit(s["same_dtype"])(X.astype(jnp.bfloat16)),
    "float16": lambda s: jax.grad(lambda x: s["same_dtype"](x).sum())(X.astype(jnp.float16)),
    "complex": lambda s: jax.jit(s["same_dtype"])(X * 1j),
    "holomorphic": lambda s: jax.grad(s["poly"], holomorphic=True)(X * 1j),
    "weak": lambda s: jax.jit(s["same_dtype"])(1.5),
    "empty": lambda s: jax.jit(s["poly"])(jnp.zeros((0,))),
    "library": lambda s: jax.jit(jax.jacrev(s["library"]))(ROWS[:3]),
    "callable object": lambda s: jax.grad(s["model"])(2.0),
    "method": lambda s: jax.vmap(s["model"].apply)(X),
    "partial": lambda s: s["halved"](),
    "composed": lambda s: jax.jit(lambda x: s["relu"](s["grown"](x)))(X),
}


@pytest.fixture(scope="module")
def student(candidates) -> Candidate:
    """The student of this module."""
    return candidates(SOURCE)


@pytest.mark.parametrize("use", USES)
def test_a_transformed_view_is_what_plain_jax_makes_of_the_function(student, use):
    """Values, structure, shapes and dtypes are those of the same expression on the same function in one process."""
    found, wanted = USES[use](student), USES[use](PLAIN)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.shape(one) == np.shape(other)
        assert jnp.asarray(one).dtype == jnp.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-2 if jnp.asarray(one).dtype.itemsize == 2 else 2e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda s: jax.jit(s["branch"])(X, 2.0), jax.errors.TracerBoolConversionError),
        (lambda s: jax.jit(jax.grad(s["branch"]))(X, 2.0), jax.errors.TracerBoolConversionError),
        (lambda s: jax.vmap(s["branch"], in_axes=(None, 0))(X, GAINS), jax.errors.TracerBoolConversionError),
        (lambda s: jax.jit(s["float_of"])(2.0), jax.errors.ConcretizationTypeError),
        (lambda s: jax.jit(s["power"])(X, 3), TypeError),
        (lambda s: jax.jit(s["fails"])(X), ValueError),
        (lambda s: jax.grad(s["vector"])(X), TypeError),
        (lambda s: jax.grad(s["whole"])(jnp.arange(3), True), TypeError),
        (lambda s: jax.jit(s["two"])(X, jnp.ones(5)), TypeError),
        (lambda s: lax.scan(s["grown"], X, X), TypeError),
    ],
    ids=["branch", "branch in grad", "branch in vmap", "float", "range", "own error", "vector", "integers", "shapes", "scan"],
)  # fmt: skip
def test_errors_are_those_of_plain_jax(student, use, error):
    """Where JAX refuses a function in one process, the test gets an exception of the same class."""
    with pytest.raises(error):
        use(PLAIN)
    with pytest.raises(error):
        use(student)


def test_one_compiled_function_traces_once(candidate):
    """A jitted view runs the student's Python once for each signature, however often it is called, as in one process."""
    counts = []
    for names in (candidate(SOURCE), in_one_process(SOURCE)):
        traced, once = names["traced"], jax.jit(names["noisy"])
        seen = []
        for value in (X, X + 1, X[:2], 1.0, 2.0):
            once(value)
            seen.append(len(traced))
        counts.append(seen)
    assert counts[0] == counts[1] == [1, 1, 2, 3, 3]


def test_one_program_serves_every_value(student):
    """A traced argument has no value in the student's process: one program is right for every gain of its shape."""
    once = jax.jit(student["cond"])
    assert [float(once(X, gain)) for gain in GAINS] == [1.25, 1.25, 5.8125]


def test_operations_are_those_of_the_student_s_program(student):
    """`operations` counts what the student's function becomes: a cond is a case, a where is a select."""
    for names in (student, PLAIN):
        assert operations(names["cond"], X, jnp.float32(2.0))["case"] == 1
        counts = operations(names["whole"], jnp.arange(3), jnp.ones(3, bool))
        assert counts["select"] == 1
        assert "case" not in counts
        assert operations(names["root"], jnp.float32(2.0))["while"] == 1
    assert operations(student["poly"], X) == operations(PLAIN["poly"], X)


def loud(x):
    """A function in which a debugging print was left, deep inside."""
    jax.debug.print("x is {}", x)
    jax.debug.callback(lambda y: None, x)
    return x * 2.0


LIBRARY = {
    "elementary": lambda x: sum(f(x / 4) for f in (jnp.sinh, jnp.cosh, jnp.tan, jnp.arcsin, jnp.arccos, jnp.arctan)),
    "inverse hyperbolic": lambda x: jnp.arcsinh(x) + jnp.arccosh(2 + x) + jnp.arctanh(x / 4),
    "special": lambda x: jax.scipy.special.erf(x) + jax.scipy.special.gammaln(x + 3) + jax.scipy.special.digamma(x + 3),
    "erf_inv": lambda x: jax.scipy.special.erfinv(x / 4) + jax.scipy.special.erfc(x),
    "activations": lambda x: jax.nn.gelu(x, approximate=False) + jax.nn.softmax(x) + jax.nn.silu(x),
    "logsumexp": lambda x: jax.scipy.special.logsumexp(x) + jnp.log1p(x * x) + jnp.expm1(x),
    "cholesky": lambda x: jnp.linalg.cholesky(jnp.outer(x, x) + jnp.eye(3)),
    "qr": lambda x: jnp.linalg.qr(jnp.outer(x, x) + jnp.eye(3))[1],
    "svd": lambda x: jnp.linalg.svd(jnp.outer(x, x) + jnp.eye(3), compute_uv=False),
    "eigh": lambda x: jnp.linalg.eigh(jnp.outer(x, x) + jnp.eye(3))[0],
    "eig": lambda x: jnp.sort(jnp.abs(jnp.linalg.eig(jnp.outer(x, x) + jnp.diag(x))[0])),
    "solve": lambda x: jnp.linalg.inv(jnp.outer(x, x) + jnp.eye(3)) + jnp.linalg.det(jnp.outer(x, x) + jnp.eye(3)),
    "expm": lambda x: jax.scipy.linalg.expm(jnp.outer(x, x) / 10),
    "lstsq": lambda x: jnp.linalg.lstsq(jnp.outer(x, x) + jnp.eye(3), x)[0],
    "schur": lambda x: jnp.sort(jnp.diag(jax.scipy.linalg.schur(jnp.outer(x, x) + jnp.eye(3))[0])),
    "fft": lambda x: jnp.abs(jnp.fft.fft(x)) + jnp.fft.irfft(jnp.fft.rfft(jnp.tile(x, 2)))[:3],
    "sort": lambda x: jnp.sort(x) + x[jnp.argsort(-x)] + jnp.cumsum(x) + lax.top_k(x, 3)[0],
    "median": lambda x: jnp.median(x) + jnp.quantile(x, 0.25) + jnp.var(x),
    "indexing": lambda x: x.at[1].add(2.0).at[0].set(9.0) + jnp.roll(x, 1) + jnp.take(x, jnp.array([2, 0, 1])),
    "convolution": lambda x: jnp.convolve(x, x, mode="same"),
    "segments": lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 0]), 3),
    "random": lambda x: jax.random.uniform(jax.random.key(1), (3,)) + jax.random.permutation(jax.random.key(2), x),
    "categorical": lambda x: jax.random.categorical(jax.random.key(1), x) + jax.random.truncated_normal(jax.random.key(3), -1, 1, (3,)),
    "rbg": lambda x: jax.random.normal(jax.random.key(1, impl="rbg"), (3,)),
    "scan": lambda x: lax.associative_scan(jnp.add, x) + lax.scan(lambda c, y: (c + y, c), 0.0, x)[1],
    "remat": lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x),
    "bits": lambda x: lax.population_count(x.astype(jnp.int32) + 5) + lax.clz(jnp.int32(5)),
    "precision": lambda x: jnp.dot(x, x, precision="highest") + jnp.einsum("i,j->ij", x, x),
    "interp": lambda x: jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0) ** 2) + jnp.polyval(jnp.arange(3.0), x),
    "unique": lambda x: jnp.unique(x, size=3) + jnp.searchsorted(jnp.sort(x), x),
    "print": lambda x: (jax.debug.print("x is {}", x), x * 2)[1],
    "print in order": lambda x: (jax.debug.print("x is {}", x, ordered=True), x * 2)[1],
    "print inside": lambda x: lax.cond(x[0] > 0, loud, lambda y: jax.vmap(loud)(y), x) + lax.scan(lambda c, y: (loud(c), y), 0.0, x)[1],
    "print in a gradient": lambda x: jax.grad(lambda y: jax.jit(jax.checkpoint(loud))(y).sum())(x),
    "print in a loop": lambda x: lax.while_loop(lambda y: loud(y)[0] < 9.0, loud, x),
}  # fmt: skip

COMPUTED = {
    "cholesky",
    "qr",
    "svd",
    "eigh",
    "eig",
    "solve",
    "fft",
    "sort",
    *(name for name in LIBRARY if "print" in name),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_programs_of_the_numerical_library_are_admitted(name):
    """What a right answer may use of jax.numpy, lax, scipy, nn and random survives export, admission and compilation."""
    function = LIBRARY[name]
    artifact = artifacts.admit(artifacts.export(lambda x: (function(x),), [artifacts.spec_of(AVAL)]), [AVAL])
    wanted = jax.eval_shape(function, X)
    assert [(one.shape, one.dtype) for one in artifact.out_avals] == [(wanted.shape, wanted.dtype)]
    if name in COMPUTED:
        np.testing.assert_allclose(artifact.run(X)[0], jax.jit(function)(X), rtol=2e-4, atol=2e-5)


ALONE = """
import sys
import jax.numpy as jnp
from graders.exam import artifacts
x = jnp.eye(3) * 4
found = artifacts.admit(sys.stdin.buffer.read(), [artifacts.aval_of(x)]).run(x)
print(float(found[0][2, 2]))
"""


def test_a_decomposition_runs_where_nothing_was_decomposed_before():
    """A program with LAPACK in it computes in a process that has not used LAPACK: there jaxlib has not loaded it yet."""
    data = artifacts.export(lambda x: (jnp.linalg.cholesky(x),), [jax.ShapeDtypeStruct((3, 3), jnp.float32)])
    done = subprocess.run([sys.executable, "-c", ALONE], input=data, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"2.0\n"), done.stderr.decode()


def exported(function=lambda x: x + 1.0, shape=(3,)) -> jax.export.Exported:
    """A program as the candidate's side makes it."""
    return jax.export.export(jax.jit(lambda x: (function(x),)))(jax.ShapeDtypeStruct(shape, jnp.float32))


def with_text(text: str) -> bytes:
    """A serialised program whose module is this text."""
    with mlir.make_ir_context():
        module = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_minimum_version())
    return bytes(dataclasses.replace(exported(), mlir_module_serialized=module).serialize())


CALL = """
module @program attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {{
    {body}
    return %0 : tensor<3xf32>
  }}
}}
"""
CUSTOM = "%0 = stablehlo.custom_call @{name}(%arg0) {{api_version = 2 : i32}} : (tensor<3xf32>) -> tensor<3xf32>"


def test_a_module_made_by_hand_is_admitted_when_it_is_harmless():
    """The way in which the next tests make programs works: addition by hand adds."""
    data = with_text(CALL.format(body="%0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>"))
    (found,) = artifacts.admit(data, [AVAL]).run(X)
    assert found.tolist() == (2 * X).tolist()


@pytest.mark.parametrize(
    "name",
    [
        "xla_ffi_python_cpu_callback",
        "xla_python_cpu_callback",
        "my_kernel",
        "lapack_evil",
        "Sharding2",
        "xla_ffi_partitioned_python_cpu_callback",
    ],
)
def test_a_custom_call_that_is_not_listed_is_refused(name):
    """A program that calls out of its arrays is not admitted, wherever in the module the call stands."""
    call = CUSTOM.format(name=name)
    nested = f"""%c = stablehlo.constant dense<true> : tensor<i1>
    %0 = "stablehlo.if"(%c) ({{
      {call.replace("%0", "%1")}
      stablehlo.return %1 : tensor<3xf32>
    }}, {{ stablehlo.return %arg0 : tensor<3xf32> }}) : (tensor<i1>) -> tensor<3xf32>"""
    for body in (call, nested):
        with pytest.raises(WireError, match="not allowed"):
            artifacts.admit(with_text(CALL.format(body=body)), [AVAL])


@pytest.mark.parametrize("name", ["infeed", "outfeed"])
def test_a_program_that_waits_for_somebody_is_refused(name):
    """A program that would read or write a queue of the process would wait for ever, so it is not admitted."""
    feed = {
        "infeed": '%1:2 = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[0]]} : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)',
        "outfeed": '%1 = "stablehlo.outfeed"(%arg0, %t) {outfeed_config = ""} : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token',
    }[name]
    body = f"%t = stablehlo.create_token : !stablehlo.token\n{feed}\n%0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>"
    with pytest.raises(WireError, match="not allowed"):
        artifacts.admit(with_text(CALL.format(body=body)), [AVAL])


def test_host_callbacks_are_refused():
    """A function that calls back into Python cannot become a program for somebody else's process."""
    for function in (
        lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
        lambda x: jax.experimental.io_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
    ):
        with pytest.raises((WireError, NotImplementedError)):
            artifacts.admit(bytes(exported(function).serialize()), [AVAL])


@pytest.mark.parametrize(
    "asked",
    [
        artifacts.aval_of(jnp.ones(4)),
        artifacts.aval_of(jnp.ones((3, 1))),
        artifacts.aval_of(jnp.ones(3, jnp.int32)),
        None,
    ],
    ids=["longer", "other rank", "other dtype", "fewer"],
)
def test_a_program_for_other_arguments_is_refused(asked):
    """A program must be made for exactly the shapes and dtypes that were asked for."""
    with pytest.raises(WireError, match="other arguments"):
        artifacts.admit(bytes(exported().serialize()), [asked] if asked else [])


def test_a_program_that_is_too_large_is_refused():
    """A program may not carry more than 8 MiB."""
    table = jnp.asarray(np.random.default_rng(0).random(3 * 2**20, np.float32))
    with pytest.raises(WireError, match="bytes"):
        artifacts.admit(artifacts.export(lambda x: (x + table[:3], table), [artifacts.spec_of(AVAL)]), [AVAL])


def test_a_truncated_program_is_refused():
    """No part of a program is a program."""
    data = bytes(exported().serialize())
    for length in (0, 1, 7, len(data) // 2, len(data) - 100):
        with pytest.raises(WireError):
            artifacts.admit(data[:length], [AVAL])


HOSTILE = """
    import sys

    artifacts = sys.modules["graders.exam.artifacts"]
    honest = artifacts.export

    def forge(change):
        def export(function, specs):
            return change(honest(function, specs))
        artifacts.export = export

    def f(x):
        return x + 1.0

    def truncated():
        forge(lambda data: data[:-100])

    def nonsense():
        forge(lambda data: b"program")

    def empty():
        forge(lambda data: b"")

    def other():
        forge(lambda data: honest(lambda x: (x,), [jax.ShapeDtypeStruct((5,), "float32")]))
"""


@pytest.mark.parametrize("forgery", ["truncated", "nonsense", "empty", "other"])
def test_a_forged_program_is_an_error_of_the_check(candidate, forgery):
    """What a candidate sends instead of a program raises in the test that called the function, and the next call works."""
    student = candidate(HOSTILE)
    f = student["f"]
    student[forgery]()
    with pytest.raises((ValueError, TypeError, IndexError)):
        jax.jit(f)(X).block_until_ready()
    assert f(X).tolist() == (X + 1.0).tolist()


def test_a_partial_of_a_view(student):
    """functools.partial around a view is a function as any other."""
    half = functools.partial(student["two"], Y)
    np.testing.assert_allclose(jax.grad(half)(X), jax.grad(functools.partial(PLAIN["two"], Y))(X), rtol=1e-6)
