"""What JAX's errors mean, in the student's words: a table of rules and of names that were removed.

Comes in: the class name and the message of an error, or the problem itself. Goes out: a sentence or two that a student can act on, or None. Must not:
repeat anything of a message but a name that stands in these tables and the number of a cell.

The classes and messages were observed on JAX 0.9.2, 0.10.2 and 0.12.0.1; a test raises each of them again.
"""

from __future__ import annotations

import re
from importlib.metadata import version

from graders.runs import Problem

BY_CLASS = {
    "TracerBoolConversionError": (
        "Your code asks Python to decide something (if, while, and, or, not, min, max, assert) from a value that is "
        "only known when the compiled program runs. Let the program decide: jax.lax.cond for a branch, jnp.where for a "
        "choice between values, jax.lax.while_loop for a loop."
    ),
    "TracerIntegerConversionError": (
        "Your code needs a plain Python integer (for range, or to index a list) where the value is only known when the "
        "compiled program runs. Use jax.lax.fori_loop for the loop, index a JAX array instead of a list, or take the "
        "number from a shape."
    ),
    "TracerArrayConversionError": (
        "Your code hands a traced JAX value to NumPy, which needs actual numbers. Inside a transformed function use "
        "the jnp function of the same name."
    ),
    "ConcretizationTypeError": (
        "Your code needs an actual number (float(), int(), .item(), or a shape that depends on the data) while JAX is "
        "still tracing, when there is only a placeholder. Keep the value as a JAX array inside the function and "
        "convert it after the call."
    ),
    "NonConcreteBooleanIndexError": (
        "Selecting with a mask, as in x[mask], gives an array whose length depends on the data; a compiled program "
        "needs fixed shapes. Keep the shape and neutralise what does not count: jnp.where(mask, x, 0.0)."
    ),
    "UnexpectedTracerError": (
        "A value from inside a transformed function was kept outside it, for example in a global or a list. It means "
        "nothing after tracing. Return what you need from the function instead."
    ),
    "KeyReuseError": (
        "A random key was used twice, so both draws would give the same numbers. Use each key once: "
        "key, subkey = jax.random.split(key), then draw with subkey."
    ),
}
UNHASHABLE = (
    "An argument that is marked static must be hashable, and an array or a list is not. Static is for choices that "
    "shape the program, such as a flag or a size as a tuple; pass numbers and arrays as ordinary arguments."
)
IN_PLACE = "JAX arrays cannot be changed in place. Make a changed copy: x = x.at[i].set(value), or .at[i].add(value)."
SHAPES = "Two arrays in your code do not fit together. Print their .shape just before the line that fails, and compare."
DYNAMIC_SHAPE = (
    "Your code makes an array whose size is only known when the compiled program runs; a compiled program needs fixed "
    "shapes. Take the size from the shape of an argument, or mark it static: jax.jit(f, static_argnames='n')."
)
BRANCHES = (
    "The branches of your jax.lax.cond (or the steps of a loop) give results of different shape or dtype. They must "
    "agree: compare what each returns."
)
PREDICATE = "jax.lax.cond and while_loop decide by one truth value. Make one of it, such as jnp.any(x > 0) or x[0] > 0."
GRADIENT = (
    "jax.grad needs a function that returns one number. Sum or average the result, or use jax.jacrev for all of it."
)
GRADIENT_DTYPE = (
    "jax.grad works on floating point numbers, and this argument is an integer. Pass 3.0 instead of 3, or a float32 "
    "array."
)
NO_ARRAY = (
    "A jnp or jax.lax function was given something that is no array or number, such as a list or a text. Make an array first: "
    "jnp.array([1.0, 2.0])."
)
NO_JAX_TYPE = "A transformed function returned something that is no array or number. Return arrays, or tuples, lists and dicts of them."
KEY_WANTED = "This needs a random key, not a number. Make one: key = jax.random.key(0)."
ONE_KEY = (
    "This takes one random key and was given several. Take one of them, key1, key2 = jax.random.split(key), or use "
    "jax.vmap over the keys."
)
DONATED = (
    "An array is used after it was given away: an argument named in donate_argnums is gone after the call, as is one that "
    "was deleted. Use the result of the call instead."
)
AXIS = "An axis is named that an array of your code does not have. Axes count from 0: compare with its .ndim."
NOT_A_NUMBER = (
    "A result is not a number (NaN) or infinite, and jax_debug_nans makes that an error. Look for 0/0, log(0) or the root of "
    "a negative number; jnp.where has to guard the input, too."
)
CALLBACK = (
    "A Python function that the compiled program calls (jax.pure_callback, io_callback or jax.debug.callback) raised an error, "
    "which stands at the end of the message. Call that function by itself with a NumPy array first."
)
# Kinds, a pattern in the message, the advice; the first that fits
RULES = [
    (("ValueError", "TypeError"), "unhashable|Non-hashable static", UNHASHABLE),
    (("TypeError",), r"immutable|(Array\w*|Tracer\w*)('|\W.*) object does not support item assignment", IN_PLACE),
    (("TypeError",), "Gradient only defined for scalar-output", GRADIENT),
    (("TypeError",), r"\Agrad requires real- or complex-valued inputs", GRADIENT_DTYPE),
    (
        ("TypeError",),
        "must have equal (output )?types|body_fun output and input must|must have same type structure",
        BRANCHES,
    ),
    (("TypeError",), r"\APred must be a scalar|must return a boolean scalar|Pred type must be", PREDICATE),
    (("TypeError",), "Shapes must be 1D sequences of concrete values", DYNAMIC_SHAPE),
    (
        ("ValueError", "TypeError"),
        r"(?i)incompatible (shapes|types for broadcasting)|shapes? .*(mismatch|not aligned|must be equal)|could not be broadcast"
        r"|mismatch in its core dimension|must have the same shape|different numbers of dimensions"
        r"|cannot (broadcast|reshape|concatenate arrays with shapes)|requires contracting dimensions"
        r"|inconsistent sizes for array axes|Size of label '.*' for operand",
        SHAPES,
    ),
    (("TypeError",), "invalid PRNG key data", KEY_WANTED),
    (("ValueError",), "accepts a single key, but was given a key array", ONE_KEY),
    (("TypeError",), "not a valid JAX type", NO_JAX_TYPE),
    (("TypeError",), "as an abstract array|requires (ndarray|array)( or scalar)? arguments", NO_ARRAY),
    (("RuntimeError",), "Array has been deleted", DONATED),
    (("ValueError", "AxisError"), r"axis -?\d+ is out of bounds for array", AXIS),
    (("JaxRuntimeError", "XlaRuntimeError"), "error calling callback", CALLBACK),
    (("FloatingPointError",), r"invalid value \((nan|inf)\) encountered", NOT_A_NUMBER),
]

REMOVED = "{old} was removed from JAX; use {new} instead. Submissions are graded with JAX {version}."
_MOVED = "jax.extend.core.{}"
REMOVED_NAMES = {
    "jax.tree_map": "jax.tree.map",
    "jax.tree_multimap": "jax.tree.map",
    "jax.tree_leaves": "jax.tree.leaves",
    "jax.tree_flatten": "jax.tree.flatten",
    "jax.tree_unflatten": "jax.tree.unflatten",
    "jax.tree_structure": "jax.tree.structure",
    "jax.tree_transpose": "jax.tree.transpose",
    "jax.tree_util.tree_multimap": "jax.tree.map",
    "jax.xla_computation": "jax.jit(f).lower(...)",
    "jax.DeviceArray": "jax.Array",
    "jax.numpy.DeviceArray": "jax.Array",
    "jax.core.DeviceArray": "jax.Array",
    "jax.random.KeyArray": "jax.Array",
    "jax.random.PRNGKeyArray": "jax.Array",
    "jax.random.shuffle": "jax.random.permutation",
    "jax.ops.index_update": "x.at[i].set(value)",
    "jax.ops.index_add": "x.at[i].add(value)",
    "jax.ops.index_mul": "x.at[i].multiply(value)",
    "jax.ops.index_min": "x.at[i].min(value)",
    "jax.ops.index_max": "x.at[i].max(value)",
    "jax.ops.index": "the index itself, as in x.at[1:3]",
    "jax.experimental.enable_x64": "jax.enable_x64(True)",
    "jax.experimental.host_callback": "jax.pure_callback or jax.debug.print",
    "jax.experimental.maps": "jax.shard_map",
    "jax.experimental.optimizers": "optax, or jax.example_libraries.optimizers",
    "jax.experimental.stax": "jax.example_libraries.stax",
    "jax.linear_util": "jax.extend.linear_util",
    "jax.abstract_arrays": "jax.core.ShapedArray",
    "jax.numpy.msort": "jnp.sort(x, axis=0)",
    "jax.numpy.row_stack": "jnp.vstack",
    "jax.numpy.in1d": "jnp.isin",
    "jax.numpy.trapz": "jnp.trapezoid",
    "jax.numpy.product": "jnp.prod",
    "jax.numpy.cumproduct": "jnp.cumprod",
    "jax.numpy.alltrue": "jnp.all",
    "jax.numpy.sometrue": "jnp.any",
    "jax.numpy.round_": "jnp.round",
    **{f"jax.core.{name}": _MOVED.format(name) for name in ("Primitive", "Jaxpr", "ClosedJaxpr", "JaxprEqn", "Var")},
    **{f"jax.core.{name}": _MOVED.format(name) for name in ("Literal", "jaxpr_as_fun")},
}
_GONE = (
    re.compile(r"\Amodule '(?P<module>jax[.\w]*)' has no attribute '(?P<name>\w+)'"),
    re.compile(r"\Acannot import name '(?P<name>\w+)' from '(?P<module>jax[.\w]*)'"),
    re.compile(r"\ANo module named '(?P<module>jax[.\w]*)\.(?P<name>\w+)'"),
    re.compile(r"\A(?P<module>jax[.\w]*)\.(?P<name>\w+) (was removed|is deprecated)"),
)


# Where JAX, or a note of ours, says in which cell a value was made that is used after its function has ended
_LEAKED = (
    re.compile(r"created on line <(cell \d+)>:"),
    re.compile(r"leaked was .* at <(cell \d+)>:\d+ traced for"),
    re.compile(r"left behind by <(cell \d+)>"),
)
_TRACED = re.compile(r"while tracing the function (\S+) at <(cell \d+)>:\d+ for ")


def leaked_from(problem: Problem) -> str | None:
    """The name of the cell from which a traced value was kept, when that is what failed.

    Other errors than UnexpectedTracerError name the traced function too, and are those of a kept value when that function
    was not running.
    """
    if problem.name.rpartition(".")[2] == "UnexpectedTracerError":
        found = (pattern.search(f"{problem.message}\n{problem.traceback}") for pattern in _LEAKED)
        return next((one[1] for one in found if one), None)
    traced = _TRACED.search(problem.message)
    running = traced is None or f" in {traced[1]}(" in problem.traceback or "Cell In[" not in problem.traceback
    return None if traced is None or running else traced[2]


def advice(kind: str, message: str) -> str | None:
    """What to do about an error; `kind` is its class without the module."""
    if kind in BY_CLASS:
        return BY_CLASS[kind]
    for kinds, pattern, told in RULES:
        if kind in kinds and re.search(pattern, message):
            return told
    return removed(message) if kind in ("AttributeError", "ImportError", "ModuleNotFoundError") else None


def removed(message: str) -> str | None:
    """The replacement of a name that this JAX does not have, and which JAX that is."""
    for pattern in _GONE:
        found = pattern.search(message)
        old = f"{found['module']}.{found['name']}" if found else ""
        if old in REMOVED_NAMES:
            return REMOVED.format(old=old, new=REMOVED_NAMES[old], version=version("jax"))
    return None
