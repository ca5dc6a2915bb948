# The worked examples of transforms-audit. Answers and tests are in the notebook alone.
#

# %% [markdown]
# # Transforms audit: one score, four ways
#
# *Phase 02, integration project. About two hours, on a CPU.*
#
# You have met `jit`, `vmap` and `grad` one at a time. Here one small score goes through all of them: as a scalar
# function, mapped over examples, differentiated, compiled, and compiled again because a shape changed. At every step
# something that does not use JAX says what should come out. In the end you can compose the three, and say of each what
# it changes and what it leaves alone.

# %% [markdown]
# ## What you will be able to do
#
# | afterwards you can | its name in your scores |
# |---|---|
# | compute the same quantity independently, and let the two calculations check each other | `independent-calculations` |
# | compose `grad`, `vmap` and `jit`, and say what shape and meaning come out | `transforms-composed` |
# | tell from a ledger which change of shape, dtype or kind of number asked for a trace | `changed-conditions-diagnosed` |
# | keep evidence that somebody else can read, and that does not claim more than was compared | `evidence-retained` |
# | write checks that notice broken parts, and not only pass the right ones | `checks-that-notice` |
#
# ## How the project works
#
# | file | whose it is | what it does |
# |---|---|---|
# | `model.py` | yours | the functions of all four stages, each with its task in the docstring and a `TODO` |
# | `audit.py` | given | runs your `model.py` from end to end and keeps the evidence |
# | `transforms-audit.ipynb` | given, with cells for you | the stages one by one, checks, questions, points |
#
# Write in `model.py` with the editor of JupyterLab beside this notebook, save, and run the cell "Look" of the stage: it
# reads the file anew. In a terminal in this folder the whole audit is one command:
#
# ```
# python audit.py --implementation starter --evidence-dir runs/transforms-audit
# ```
#
# It is the same line in PowerShell, where Python may be called `py`. `starter` is your `model.py`, and what you get if
# you leave the option out. There is also a `solution`, for instructors; it is not in your folder. Hand in `model.py`
# together with this notebook: both are graded.
#
# **Points.** Stages 20, six checkpoints 14, one prediction 1, one written answer 4: 39 in all. The line `raise
# NotImplementedError()` marks what still waits for you.
#
# A green audit is practice, well done. It does not certify everything that the phase taught, and it says nothing about
# hardware on which it did not run.

# %% [markdown]
# ## The score
#
# For one number $x$ and one weight $w$,
#
# $$m = w x - 1, \qquad s(w, x) = \begin{cases} m^2 / 2 & \text{if } |m| \le 1 \\ |m| - 1/2 & \text{otherwise.} \end{cases}$$
#
# Near the target it is a parabola, farther away a straight line, and the two pieces meet without a kink. With $w =
# 0.5$:
#
# | $x$ | $m$ | $s$ |
# |---|---|---|
# | 1 | -0.5 | 0.125 |
# | 2 | 0 | 0 |
# | 8 | 3 | 2.5 |
#
# A choice between two formulas for every number: the lesson on tracing asked who should take such a decision.

# %%
import importlib
import json
import platform
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import model


def tried(function, *arguments):
    """What a function gives, or in words why it gives nothing."""
    try:
        return function(*arguments)
    except NotImplementedError:
        return "not written yet"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"

# %% [markdown]
# ## Stage 1 · Independent calculations (6 points)
#
# Five functions, all about the same score. Two of them never touch JAX; they are the witnesses that the others are held
# against.
#
# | function | takes | gives |
# |---|---|---|
# | `scalar_score(weight, x)` | two scalars | a scalar; works under `jit`, `vmap` and `grad` |
# | `scores_by_loop(weight, xs)` | a scalar and a vector | a list of Python floats, by plain arithmetic |
# | `slopes_by_hand(weight, xs)` | a scalar and a vector | a list of Python floats: $\partial s / \partial w$ for each $x$, from your own formula |
# | `batch_scores(weight, xs)` | a scalar and a vector | an array like `xs`: `scalar_score` mapped |
# | `batch_slopes(weight, xs)` | a scalar and a vector | an array like `xs`: $\partial s / \partial w$ for each $x$, compiled, mapped and differentiated by JAX |
#
# - `xs` is a float32 vector of any length from 1, `weight` a float32 scalar or a Python float.
# - The witnesses work on their own: they go on giving the right numbers when the JAX functions of your file are out of
#   order.
# - `batch_slopes` stays the jitted function that the starter makes it, and gives one slope for each example.
#
# **Guide**
#
# 1. Write `scores_by_loop` first and check it against the table above.
# 2. Differentiate both pieces by $w$ on paper. The slope of a piece has a factor $x$; what stands beside it never
#    leaves the interval from -1 to 1.
# 3. Write `scalar_score` so that the program chooses. Try it under `jax.jit`.
# 4. Map it, then map its gradient. `in_axes` says for each argument whether it has a row for every example.
#
# <details>
# <summary>Hint</summary>
#
# `jnp.where(abs_miss <= 1.0, near, far)` selects between two numbers that are both computed. `jax.grad(f)`
# differentiates with respect to the first argument, here the weight. `in_axes=(None, 0)`: the weight is the same for
# all, `xs` is taken apart.
#
# </details>

# %%
# Look. Reads model.py anew, so save it first.
importlib.reload(model)
look_xs = jnp.array([1.0, 2.0, 8.0], dtype=jnp.float32)
print("scalar_score  ", [tried(model.scalar_score, 0.5, one) for one in look_xs])
for name in ("scores_by_loop", "batch_scores", "slopes_by_hand", "batch_slopes"):
    print(name.ljust(14), tried(getattr(model, name), 0.5, look_xs))

# %% [markdown]
# ## Checkpoint 1 · What comes out? (3 points)
#
# `f` is `scalar_score`, `w` and `x` are scalars, `xs` has five elements, `ws` has five, `four` has four. Which shape
# has each result? Answer with tuples, `()` for a scalar.
#
# | | expression |
# |---|---|
# | A | `f(w, x)` |
# | B | `batch_scores(w, xs)` |
# | C | `jax.grad(f)(w, x)` |
# | D | `batch_slopes(w, xs)` |
# | E | `jax.grad(lambda w: batch_scores(w, xs).sum())(w)` |
# | F | `jax.vmap(f, in_axes=(0, 0))(ws, xs)` |
# | G | `jax.vmap(jax.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(four, xs)` |

# %% [markdown]
# (In the notebook: your answer shapes)

# %% [markdown]
# ## Checkpoint 2 · Which axes? (2 points)
#
# Which `in_axes` does `jax.vmap` need? Answer with a tuple of two, each `None`, 0 or 1.
#
# | name | what is wanted |
# |---|---|
# | `one weight` | `f` for one weight and a vector of numbers |
# | `many weights` | `f` for a vector of weights and one number |
# | `pairs` | `f` for weights and numbers that belong together, element by element |
# | `columns` | a function `total(w, column)` for one weight and every *column* of a table |

# %% [markdown]
# (In the notebook: your answer axes)

# %% [markdown]
# ## Checkpoint 3 · In which order? (3 points)
#
# `mapped(g)` is short for `jax.vmap(g, in_axes=(None, 0))`. What does each expression give for a scalar `w` and five
# `xs`: `"scores"` (five), `"slopes"` (five), `"one slope"`, or `"error"`?
#
# | | expression |
# |---|---|
# | A | `jax.jit(mapped(f))(w, xs)` |
# | B | `jax.grad(mapped(f))(w, xs)` |
# | C | `mapped(jax.grad(f))(w, xs)` |
# | D | `mapped(jax.jit(f))(w, xs)` |
# | E | `jax.jit(mapped(jax.grad(f)))(w, xs)` |
# | F | `jax.grad(lambda w, xs: mapped(f)(w, xs).mean())(w, xs)` |

# %% [markdown]
# (In the notebook: your answer compositions)

# %% [markdown]
# ## Checkpoint 4 · The slope of a batch (2 points)
#
# With $w = 0.5$ the numbers -4, 1, 2, 3, 8 have the slopes 4, -0.5, 0, 1.5, 8. Work these out with arithmetic alone:
#
# - `slope_of_mean`: the derivative by $w$ of the *mean* of the five scores;
# - `slope_of_mean_masked`: the same, when the score of the last number is replaced by 0 with `jnp.where` before the
#   mean over five is taken.

# %% [markdown]
# (In the notebook: your answer batch-gradient)

# %% [markdown]
# ## Stage 2 · A changed condition, diagnosed (5 points)
#
# Now the shapes change. First an instrument, `trace_ledger`, then a diagnosis, `causes`.
#
# **`trace_ledger(function, batches)`** sends the batches through one compiled form of `function`, in order, and returns
# a list of dictionaries:
#
# | key | value |
# |---|---|
# | `shape` | the shape of the batch, as a list |
# | `dtype` | the dtype of the batch, as a text such as `float32` |
# | `trace_delta` | how often Python ran the compiled body during this call: observed, an `int` |
#
# - `function` takes one array. The ledger calls it, through the compiled form, for every batch.
# - Every ledger starts afresh: its first row shows a trace, even if the same function was audited a moment ago.
#
# **`causes(rows)`** takes such rows, perhaps not your own, and returns a list with one text a row:
#
# | text | meaning |
# |---|---|
# | `first call` | there is no earlier row |
# | `seen before` | some earlier row has this shape *together with* this dtype |
# | `new shape` | no earlier row has this shape, but one has this dtype |
# | `new dtype` | no earlier row has this dtype, but one has this shape |
# | `new shape and dtype` | no earlier row has either |
# | `new combination` | earlier rows have both, and none has them together |
#
# **Guide**
#
# 1. Inside `trace_ledger` define a function that leaves a note and then calls `function`; compile *that*, once for the
#    ledger.
# 2. Count the notes before and after each call.
# 3. For `causes`, collect what stands in the earlier rows, all of them. The last row alone does not decide.
#
# <details>
# <summary>Hint</summary>
#
# A function that is defined inside `trace_ledger` is new in every ledger, so JAX has never traced it. Define it before
# the loop over the batches, or it is new for each batch.
#
# </details>

# %%
# Look. Reads model.py anew, so save it first.
importlib.reload(model)
look_batches = [jnp.arange(length, dtype=jnp.float32) + shift for length, shift in ((3, 0), (3, 1), (5, 0), (3, 2))]
look_rows = tried(model.trace_ledger, jnp.sum, look_batches)
look_causes = tried(model.causes, look_rows)
print(look_rows if isinstance(look_rows, str) else "\n".join(map(str, look_rows)))
print(look_causes)

# %% [markdown]
# ## Prediction · Six weights (1 point)
#
# A jitted function of a weight and a vector is called six times with the same vector. Only the weight changes:
#
# | call | weight |
# |---|---|
# | A | `jnp.float32(0.5)` |
# | B | `np.float32(0.25)` |
# | C | `0.5`, a Python float |
# | D | `0.25`, a Python float |
# | E | `1`, a Python int |
# | F | `jnp.float32(2.0)` |
#
# In which calls will Python run the body? Put their letters into the list; any letters from A to F count.

# %% [markdown]
# (In the notebook: your answer predict-weak)

# %%
weak_notes = []


def weighted(weight, xs):
    """A sum under a weight, leaving a note whenever Python runs it."""
    weak_notes.append(str(jax.typeof(weight)))
    return jnp.sum(weight * xs)


# Made in this cell, so that running the cell again starts with a function that was never traced.
compiled_weighted = jax.jit(weighted)
weak_vector = jnp.arange(3, dtype=jnp.float32)
weak_traces = {}
for call, weight in zip("ABCDEF", (jnp.float32(0.5), np.float32(0.25), 0.5, 0.25, 1, jnp.float32(2.0))):
    notes_before = len(weak_notes)
    compiled_weighted(weight, weak_vector)
    weak_traces[call] = len(weak_notes) - notes_before
print(weak_traces)
print("traced for", weak_notes)

# %% [markdown]
# **What it shows.** A, C and E. The two float32 scalars A and B have the same shape and dtype, so B, and F at the end,
# reuse what A traced. A Python number brings no dtype of its own: JAX traces it as a *weakly typed* float or int, which
# is another kind of input, though its dtype reads the same. Once the kind is known, the value does not matter: D reuses
# what C traced.

# %% [markdown]
# ## Checkpoint 5 · One program for all weights (2 points)
#
# **Question 1.** How do all six calls come to share one program? Give one letter as `remedy`.
#
# - **A** Make the weight static.
# - **B** Turn every weight into a float32 array before the call, with `jnp.asarray(weight, jnp.float32)`.
# - **C** Put another `jax.jit` around the function.
# - **D** Turn every weight into a Python number with `float(weight)` or `int(weight)`, whichever fits.
#
# **Question 2.** A training loop passes a thousand different learning rates as Python floats to one jitted step and
# changes nothing else. How often is the step traced, `traces_dynamic`? And if the learning rate is static,
# `traces_static`?

# %% [markdown]
# (In the notebook: your answer kinds)

# %% [markdown]
# ## Stage 3 · Evidence that can be kept (4 points)
#
# A comparison that nobody can read tomorrow is no evidence. And NumPy is generous: it stretches shapes until they fit,
# and a comparison of nothing with nothing succeeds.
#
# **`evidence_row(name, independent, observed)`** (3 points) compares a list of floats with a list or an array, and
# returns a dictionary that `json.dumps` accepts:
#
# | key | value |
# |---|---|
# | `name` | the given text |
# | `length` | how many values `independent` has, an `int` |
# | `largest_difference` | the largest of \|independent - observed\|, computed in float64, a `float`; `None` where the shapes differ, where there is nothing to compare, or where it is not a finite number |
# | `agrees` | a `bool`: same shape, at least one value, and everywhere \|independent - observed\| ≤ 1e-5 + 1e-5 · \|independent\|. NaN agrees with nothing |
#
# **Guide**
#
# 1. Turn both into NumPy arrays of float64 and compare their shapes first.
# 2. Differences, their absolute values, the largest.
# 3. Convert what you return: `float()`, `bool()`, `int()`. Try `json.dumps` on it.
#
# <details>
# <summary>Hint</summary>
#
# `np.allclose` stretches shapes, so ask for the shapes before you ask for the values. An empty array has no maximum:
# decide about it first.
#
# </details>

# %%
# Look. Reads model.py anew, so save it first.
importlib.reload(model)
for look_name, look_values in (
    ("same", [1.0, 2.5]),
    ("other", [1.0, 2.0]),
    ("stretched", 1.0),
    ("nan", [1.0, float(("nan"))]),
):
    print(tried(model.evidence_row, look_name, [1.0, 2.5], look_values))

# %% [markdown]
# **The record** (1 point). Let `audit.py` run your implementation and keep its evidence in `runs/transforms-audit`. Do
# it from here, so that this notebook makes the record whenever it runs: `audit.main` takes the options of the command
# as a list of texts. Then read `evidence.json` from that folder into `retained`, a dictionary. The record is written as
# well while stages are missing, and then says so.

# %% [markdown]
# (In the notebook: your answer retained)

# %% [markdown]
# ## Stage 4 · Checks that notice (5 points)
#
# A check that cannot fail is decoration. **`integrated_checks(parts)`** receives the five functions of stage 1 in a
# dictionary, under their names, and returns five booleans. When your notebook is graded, broken functions are among
# them.
#
# | key | `True` when |
# |---|---|
# | `scalar` | `scalar_score`, one number after the other, agrees with `scores_by_loop` on five numbers |
# | `vmap` | `batch_scores` agrees with `scores_by_loop` on them |
# | `autodiff` | `batch_slopes` agrees with `slopes_by_hand` on them |
# | `jit` | `jax.jit(batch_scores)` agrees with `batch_scores` on them |
# | `changed shape` | `batch_scores` and `batch_slopes` agree with the independent calculations on eight numbers |
#
# - You choose the weight and the numbers, five and eight of them, as float32 vectors. Among both there are small
#   misses, misses far below -1 and misses far above 1; otherwise half of the score is never looked at.
# - Agreeing means the same shape and values within 1e-4.
# - A part that raises an error agrees with nothing. Its check is `False`, and the other checks are still made.
#
# **Guide**
#
# 1. Choose the numbers, and work out their misses.
# 2. Write one helper that takes two calculations as functions without arguments, runs both, and answers `False` for an
#    error.
# 3. Five comparisons. Then break your own `batch_scores` on purpose, and see the check fail.
#
# <details>
# <summary>Hint</summary>
#
# `lambda: parts["batch_scores"](weight, xs)` is a calculation that has not happened yet, so the helper can catch what
# it raises. Take everything from `parts`: a function of your file that you call by its name is never the broken one.
#
# </details>

# %%
# Look. Reads model.py anew, so save it first.
importlib.reload(model)
look_parts = {
    name: getattr(model, name)
    for name in ("scalar_score", "scores_by_loop", "slopes_by_hand", "batch_scores", "batch_slopes")
}
print("as written:          ", tried(model.integrated_checks, look_parts))
print(
    "scores all set to 0: ", tried(model.integrated_checks, look_parts | {"batch_scores": lambda weight, xs: 0.0 * xs})
)

# %% [markdown]
# ## Checkpoint 6 · What the evidence says (2 points)
#
# Give one letter for each question.
#
# **Question 1.** `python audit.py --implementation starter` ends with status 0 on your laptop. What has been shown?
#
# - **A** The functions are right for all numbers and all lengths.
# - **B** For the numbers and lengths that were compared, on this CPU and these versions, the ways agree.
# - **C** They will agree on a TPU as well, since JAX is the same there.
# - **D** No training run with these functions will be traced more than twice.
#
# **Question 2.** A row of somebody's evidence reads `"length": 0, "largest_difference": 0.0, "agrees": true`. What does
# it show?
#
# - **A** Perfect agreement.
# - **B** Agreement up to rounding.
# - **C** That nothing was compared.
# - **D** That both calculations use the same dtype.
#
# **Question 3.** `scalar` and `vmap` are `True`, `autodiff` is `False`, and the slopes differ only where a miss is
# larger than 1. Where do you look first?
#
# - **A** At `in_axes`.
# - **B** At the derivative of the straight line, in the formula by hand and in the program.
# - **C** At the shapes.
# - **D** At the decorator `@jax.jit`.

# %% [markdown]
# (In the notebook: your answer claims)

# %% [markdown]
# ## In your own words · What each transformation changes (4 points)
#
# Explain to a colleague what `grad`, `vmap` and `jit` each do to `scalar_score`, and what each leaves alone: its
# arguments, the shape of its result, the meaning of its result, when Python runs. Then say why `jit(vmap(grad(f)))`
# gives a slope for each example and `grad(vmap(f))` gives an error, and how a changed shape shows itself. Eight to
# twelve sentences, with numbers from your own ledger or evidence. This answer is read by a person.

# %% [markdown]
# (In the notebook: your answer what-changes)

# %% [markdown]
# ## Diagnose the result
#
# | what you meet | look here first |
# |---|---|
# | `TracerBoolConversionError` in `batch_scores` | a Python `if`, `max` or `abs` comparison in `scalar_score`; `vmap` traces too |
# | `Gradient only defined for scalar-output functions` | `grad` stands outside `vmap`; turn them round, or sum first |
# | all slopes wrong by the same pattern | which argument `grad` differentiates by |
# | right values in a wrong shape | `in_axes`, or a mean that crept in |
# | `trace_delta` of 1 in every row | the jitted function is defined inside the loop |
# | `trace_delta` of 0 in the first row | the jitted function lives outside `trace_ledger` |
# | `Object of type bool_ is not JSON serializable` | `bool()` around what NumPy or JAX returned |
# | all checks `True` with broken parts | functions called by name instead of from `parts`, or numbers that stay on one piece of the score |
# | an old result after a change | `model.py` was not saved, or the cell "Look" did not run again |

# %% [markdown]
# ## Carry forward
#
# - An independent calculation is slow, dull and indispensable.
# - `grad` changes the quantity, `vmap` the shape, `jit` the time at which Python runs. Compose from the inside out.
# - A trace follows from the kind of input. Write down shape and dtype beside it, and compare with everything that came
#   before.
# - Evidence says what was compared, how much of it, and where.
# - Trust a check after you have seen it fail.

# %% [markdown]
# ## Your evidence
#
# The last cell gathers predictions, observations and answers into one dictionary of plain values. It also works when
# something is missing. The record of the audit itself lies in `runs/transforms-audit/evidence.json`; hand it in with
# the rest if you like, it is made anew when your notebook is graded.

# %%
def plain(value):
    """A value in the words of JSON. Arrays become lists, dots nothing; of anything else only the type is told."""
    if value is ...:
        return None
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__


def answered(*names):
    """What you put into these names, None where there is nothing yet."""
    return {name: plain(globals().get(name)) for name in names}


evidence_xs = jnp.array([-4.0, 1.0, 2.0, 3.0, 8.0], dtype=jnp.float32)
evidence_stages = globals().get("retained") if isinstance(globals().get("retained"), dict) else {}
evidence = {
    "lesson": "transforms-audit",
    "made with": {"python": platform.python_version(), "jax": jax.__version__, "device": jax.devices()[0].device_kind},
    "predictions": answered("predicted_weak"),
    "observations": {
        "weak traces": plain(globals().get("weak_traces")),
        "record": plain(evidence_stages.get("stages")),
    }
    | {
        name: plain(tried(getattr(model, name, None), 0.5, evidence_xs))
        for name in ("scores_by_loop", "batch_scores", "slopes_by_hand", "batch_slopes")
    },
    "answers": answered(
        "shapes",
        "axes",
        "gives",
        "slope_of_mean",
        "slope_of_mean_masked",
        "remedy",
        "traces_dynamic",
        "traces_static",
        "claims",
    ),
}


def as_json(record):
    """JSON with one line for each entry of each part."""
    parts = []
    for name, part in record.items():
        entries = (
            [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items()]
            if isinstance(part, dict)
            else []
        )
        shown = "{\n" + ",\n".join(entries) + "\n }" if entries else json.dumps(part)
        parts.append(f" {json.dumps(name)}: {shown}")
    return "{\n" + ",\n".join(parts) + "\n}"


assert json.loads(as_json(evidence)) == evidence
print(as_json(evidence))
