# The worked examples of performance-02. Answers and tests are in the notebook alone.
#

# %% [markdown]
# # Tracing again, or just waiting?
#
# *Performance, lesson 2. Runs on a CPU.*
#
# One call out of many takes far longer than its neighbours. Perhaps JAX met a new kind of input and had to prepare another
# program; perhaps Python stood still until a result was ready. Guessing between the two wastes an afternoon. In this
# notebook you keep a ledger of calls, and let it tell you what changed.

# %% [markdown]
# ## After this notebook you can
#
# - write down shape, dtype and score of a call beside the traces you saw it cause;
# - say what a trace event is evidence of, and what it is not;
# - fill a short batch up to a fixed shape without changing the quantity you compute;
# - keep a choice between two formulas inside the program, so that a number decides it at run time.
#
# ## What you do
#
# Run the three set-up cells, then solve three exercises of 4 points each. Every exercise has a guide, a cell with a
# scaffold (`TODO`) for your answer, a hint you may leave closed, and a cell of checks that you can run as often as you
# like. When your notebook is graded, further checks run; everything that they require is written in the task.
#
# Before you run a cell, say aloud what it will show. Being surprised is the point.

# %% [markdown]
# ## Three ideas to start from
#
# **A trace is not a compilation.** The Python body of a jitted function runs while JAX traces it, and then no more: the
# finished program does the arithmetic without Python. A `list.append` in the body therefore counts traces in this
# process. How many programs the compiler built, or found in a cache, is another question, which needs other evidence
# (the log that `JAX_LOG_COMPILES=1` switches on, or a profile).
#
# **The ledger comes before the diagnosis.** Change one thing a call: the data, the gain, or the shape. Write down what
# you passed and what you observed, and only then name a cause. If three things change at once, the pause could be any
# of them.
#
# **Static for structure, dynamic for numbers.** An argument marked static becomes part of the program, and each new value
# asks for a new one. That suits a flag that selects an algorithm. A gain, a threshold or a mask is a number: pass it as
# an array, and one program reads it afresh in every call.
#
# | part of a call | what it decides |
# |---|---|
# | shapes, dtypes, static arguments | which program is needed |
# | numbers inside the arrays | what that program computes this time |

# %% [markdown]
# ## Set-up
#
# The next three cells belong to the notebook: run them, read them, leave them as they are. The first brings the
# libraries, the second a score that leaves a note whenever it is traced, the third the ledger with its four first calls.

# %%
import json

import jax
import jax.numpy as jnp
import numpy as np

cpu = jax.devices("cpu")[0]

# %%
trace_events = []


def score(x, gain):
    """Sum of the squares of gain * x, leaving a note of each trace."""
    # Python runs this line while JAX traces. It is a note for us: no part of the result, and no count of compilations.
    trace_events.append({"shape": list(x.shape), "dtype": str(x.dtype)})
    return jnp.square(gain * x).sum()


compiled_score = jax.jit(score)

x8, x12 = (jax.device_put(np.arange(length, dtype=np.float32), cpu) for length in (8, 12))

# %%
call_rows = []


def observed_call(label, x, gain):
    """Score x with a dynamic gain, compare with NumPy, and add a row to the ledger."""
    seen = len(trace_events)
    total = compiled_score(x, jax.device_put(np.float32(gain), cpu)).block_until_ready()
    row = {
        "label": label,
        "shape": list(x.shape),
        "dtype": str(x.dtype),
        "observed_trace_delta": len(trace_events) - seen,
        "result": float(total),
    }
    by_numpy = np.square(np.float32(gain) * np.asarray(x)).sum()
    np.testing.assert_allclose(row["result"], by_numpy, rtol=2e-5)
    call_rows.append(row)
    return total


observed_call("initial signature", x8, 1.0)
observed_call("same signature changed data", x8 + 1.0, 1.0)
observed_call("same signature changed dynamic gain", x8, 2.0)
observed_call("different input shape", x12, 1.0)

assert [row["result"] for row in call_rows] == [140.0, 204.0, 560.0, 506.0]
for row in call_rows:
    print(json.dumps(row))

# %% [markdown]
# ## Exercise 1 · A fifth row (4 points)
#
# The ledger has seen eight and twelve elements. Show it sixteen: make the input, record the call, and check the score
# against arithmetic that you did without JAX.
#
# **What your answer must provide**
#
# - `x16`: a one-dimensional array of sixteen float32 elements with the values 0, 1, 2, … 15.
# - A fifth row at the end of `call_rows`, for the score of `x16` with gain 1. `observed_call` writes such a row; one that
#   you build yourself counts as much. Its keys:
#
# | key | value |
# |---|---|
# | `label` | exactly the text `new length sixteen` |
# | `shape` | the shape as a list, `[16]` |
# | `dtype` | the text `float32` |
# | `observed_trace_delta` | how many entries `trace_events` gained during the call: an `int`, not a `bool`, zero or more |
# | `result` | the score, as a `float` |
#
# - The delta is what *you observed*. No particular number is asked for, since it depends on what ran before.
# - `trace_events` counts traces. So the words *compile*, *compiled* or *compilation* must not appear in any key or any text
#   of any row, not even to say that they do not apply.
#
# **Guide**
#
# 1. Add up the squares from 0 to 15 on paper, or with plain Python.
# 2. Make the array; watch the dtype, since `arange` counts in integers unless told otherwise.
# 3. Predict: does this call have a signature that the ledger has seen?
# 4. Record the call, look at the new row, compare.
#
# <details>
# <summary>Hint</summary>
#
# `observed_call(label, x, gain)` does all the bookkeeping. For your own arithmetic there is a closed form:
# the squares from 1 to n add up to n(n + 1)(2n + 1)/6.
#
# </details>

# %% [markdown]
# (In the notebook: your answer ledger-x16)

# %% [markdown]
# ## Exercise 2 · A short batch in a full-size array (4 points)
#
# Batches come in eights, but the last one has five rows. Three rows of padding give it the usual shape, so that no
# other program is needed. The trouble is the quantity at hand, the sum of $(v + 1)^2$ over the rows $v$: because of the
# offset, a row of zero is *not* worth zero. It contributes $(0 + 1)^2 = 1$, and three of them move the score by 3. The
# shape may be padded; the objective may not.
#
# A mask says which rows are real. Use it.
#
# **What your answer must provide**
#
# A function `masked_score(values, mask)`:
#
# - `values` is a one-dimensional float32 array. `mask` is a *boolean* array of the same length, `True` where the row is real.
# - It returns a scalar: the sum of $(v + 1)^2$ over the real rows, not their mean. With no real row it returns 0.
# - Any length works, and the real rows may stand anywhere, not only at the front.
# - The padding may hold *anything*: zeros, large numbers, infinity, NaN. Nothing of it may reach the result. This is asked of
#   the program as you write it. Some compilers quietly turn a product with a mask into a choice, and some do not, so the
#   checks compile without that rewriting. (Nobody takes a gradient through padding that holds NaN.)
# - The mask is dynamic data. The checks wrap your function in `jax.jit` once and use it for many masks: for one shape,
#   a single traced program must be right for every mask. Decorating it with `jax.jit` yourself is good practice; no points
#   depend on it.
#
# **Guide**
#
# 1. Compute the contribution of every row, padded or not. That keeps the shape fixed.
# 2. Replace what the padded rows contribute.
# 3. Add up.
# 4. Pad the batch 0, 1, 2, 3, 4 to eight and compare your function with a sum over the five values, and with the sum that
#    ignores the mask.
#
# <details>
# <summary>Hint</summary>
#
# The order matters. First the offset and the square, then the choice: if you set padded *values* to zero and add 1
# afterwards, they are back. And choose with `jnp.where`, do not multiply: 0 times NaN is NaN.
#
# </details>

# %% [markdown]
# (In the notebook: your answer masked-score)

# %% [markdown]
# ## Exercise 3 · A Python branch, broken and repaired (4 points)
#
# `if` is a question to Python, and Python needs the answer now. During tracing a dynamic argument has a shape and a dtype
# but no value yet, so the question cannot be answered. See it fail; then move the question into the program.
#
# **What your answer must provide**
#
# `broken_branch(values, gain)`
#
# - chooses with a Python `if gain > 1.0`;
# - fails with `jax.errors.TracerBoolConversionError` when it is called under `jax.jit`. The checks jit it and call it
#   themselves; whether and how you catch the error in your cell is up to you.
#
# `repaired(values, gain)`
#
# - `values` is a one-dimensional float32 array, `gain` a float32 scalar array (shape `()`).
# - It returns a scalar: the sum of the *squares* of `values` when `gain` is greater than 1, otherwise the plain sum of `values`.
#   A gain of exactly 1.0 belongs to the plain sum. The gain only chooses, it multiplies nothing.
# - The gain stays dynamic, not static: one traced program must be right for every gain.
# - The choice must be a conditional of the running program: `jax.lax.cond` (or `jax.lax.switch`). `jnp.where` computes both
#   sides and selects afterwards; useful elsewhere, not the answer here.
# - It works under `jax.vmap(repaired, in_axes=(None, 0))`, over an array of gains, and under `jax.grad(repaired)`, with respect
#   to `values`.
#
# **Guide**
#
# 1. Write `broken_branch` the way you would without JAX. Call it under `jax.jit` and read the message.
# 2. Write each side as a function of `values`.
# 3. Hand both functions, the condition and `values` to `jax.lax.cond`.
# 4. Try a gain below 1, above 1, and at 1.
#
# <details>
# <summary>Hint</summary>
#
# `jax.lax.cond(condition, if_true, if_false, values)` wants *functions* for the two sides. Give it a sum that you
# already computed, and it will complain. Both sides must return the same shape and dtype.
#
# </details>

# %% [markdown]
# (In the notebook: your answer branch-repair)

# %% [markdown]
# ## Keep
#
# Your ledger is evidence: five calls, what each was given, and what you saw. The counterexample of exercise 2 (padded
# with and without a mask) and the failure of exercise 3 (seen, then repaired) belong beside it. If you want to say
# something about compilations, add a log that shows them.
