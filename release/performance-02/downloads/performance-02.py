# The worked examples of performance-02. Answers and tests are in the notebook alone.
#

# %% [markdown]
# # Diagnose recompilation and host synchronization
#
# *Performance, lesson 2 · about 80 minutes · runs on a CPU*
#
# A call that has to prepare a new program, and a loop that stands still to read a number, look the same on a clock: time
# passes, nothing seems to happen. The repairs have nothing in common. In this lesson you learn to tell the two apart by
# evidence that you wrote down yourself.
#
# **Before this lesson** you should be able to time asynchronous work: a JAX call comes back before its result is ready, and
# `block_until_ready()` waits for it.

# %% [markdown]
# ## What you will be able to do
#
# | | After this lesson you can | Points are added up under |
# |---|---|---|
# | 1 | keep a ledger of calls (shape, dtype, static choices, traces that you saw), and say what a trace is evidence of and what it leaves open | `record-signatures-beside-traces` |
# | 2 | fill a short batch up to a fixed shape without changing the quantity you compute | `padding-that-keeps-the-objective` |
# | 3 | decide what is static and what is dynamic, and let a number choose while the program runs | `choices-made-at-run-time` |
# | 4 | find the places where Python waits for the device, move them to a reporting boundary with the same results, and say how fast the work itself could be at best | `waiting-told-from-working` |
#
# ### A plan for 80 minutes
#
# | Part | Minutes | What you do |
# |---|---|---|
# | The problem, the idea | 15 | read |
# | Build the ledger | 10 | predict, run three steps, read a figure |
# | Experiments | 15 | run, change, run again |
# | Exercises 1 to 3 | 25 | write code (12 points) |
# | Check your understanding | 12 | answer without running (18 points with the prediction and the diagnosis) |
# | Evidence | 3 | gather what you found |
#
# ### Four kinds of cells
#
# - **Locked cells** belong to the lesson. Run them, read them, leave them as they are.
# - **Answer cells** have a `TODO`. Replace the line that raises `NotImplementedError`; until then, *Run All* stops there, which
#   is meant: some answers are wanted before the next cell shows something.
# - **Cells of checks** follow the answers. Run them as often as you like. They look at the form; when your notebook is graded
#   further checks run, and everything that those require is written in the task.
# - **Free cells** are for trying things. Nothing in them is graded.

# %% [markdown]
# ## The problem
#
# Picture two training loops, both slower than they should be.
#
# In the first, most steps take a millisecond, and now and then one takes a hundred. Its batches come in many lengths, and
# JAX prepares a program for each length that it has not met.
#
# In the second, no step stands out; all of them are a little slow, and the processor idles in between. It prints the loss
# after every update, and Python cannot print a number that does not exist yet.
#
# Give both batches of one length, and only the first loop is cured. Print every hundredth loss, and only the second is.
# So the question comes before the repair: *which of the two am I looking at?* You will write down what each call was given and
# what it did, and find where Python asks the device for values.

# %% [markdown]
# ## The idea
#
# ### The ledger comes before the diagnosis
#
# Change **one** thing from call to call: the values, the gain, the shape. Write down what you passed and what you
# observed, and only then name a cause. If three things change at once, each of them could have caused the pause.
#
# Our example is a score: multiply each input by a gain, square, add up. For the inputs $0, 1, \ldots, 7$ and a gain of 1 it is
# 140; for a gain of 2 it is 560. Same shape, same dtype, other numbers: one program computes both. Twelve inputs are
# another shape, and `jax.jit` makes a program for each shape that it meets.
#
# | part of a call | what it decides |
# |---|---|
# | shapes and dtypes of the arrays; the values of static arguments | **which** program is needed |
# | the numbers inside the arrays | **what** that program computes this time |
#
# Together, the first row is the *signature* of the call. Two details are worth knowing:
#
# - A bare Python number such as `2.0` has a signature of its own, a float of *weak* type, which is different from that of
#   a float32 array. Its value stays a number like any other.
# - The function counts too: `jax.jit` of a lambda that was made a moment ago knows none of the programs of the last one.
#
# Devices, sharding and compiler options matter as well. The ledger is an instrument for a diagnosis, and no full
# description of what JAX uses as the key of its caches.

# %% [markdown]
# ### A trace is not a compilation
#
# Between a Python function and its result lie several stages:
#
# | stage | what happens | what you can see of it |
# |---|---|---|
# | trace | Python runs the body once, with placeholders for the arrays | whatever the body does in Python, such as `list.append` |
# | lower, compile | the recorded operations become machine code | lines of a log, a profile |
# | run | the machine code computes; Python takes no part | the result |
#
# An append in the body therefore counts **traces**, in this process. It does not count compilations, and either can happen
# without the other:
#
# - `jax.eval_shape(f, x)` traces `f` to learn the shape of its result, and compiles nothing.
# - Call a jitted function with the same shapes on a second device: JAX reuses the trace and compiles once more.
#
# So an event in the list says that Python ran the body. A missing event says that Python did not. About the compiler neither
# says anything; for that you need the log of the compiler stages (experiment 3) or a profile, and you should name the line
# that supports your claim.
#
# The list is a tool for us who write the program. It must never become part of what the program computes: code that relies
# on an append in a jitted body works the first time and never again.

# %% [markdown]
# ### Static for structure, dynamic for numbers
#
# An argument that is marked static is handed to Python as it is while JAX traces. Python may branch on it, loop over it,
# make shapes from it. In return its value belongs to the signature: each new value asks for another program. And it must be
# hashable, which an array is not.
#
# That is right for a flag that picks an algorithm, for the name of a norm, for the width of a table. It is wrong for a gain, a
# learning rate, a threshold, a mask: those change often, and the program can read them as it runs. Marking a number static
# because that makes an error go away trades the error for a pause at every new value.
#
# When a *number* has to choose between two formulas, the choice goes into the program: `jax.lax.cond` runs one of two
# sides, `jnp.where` takes values from either.

# %% [markdown]
# ### A host read is a boundary where Python waits
#
# A call of a jitted function returns at once with an array that is still being computed. You can hand that array on to the
# next call; nobody waits. The wait comes when Python itself needs the contents:
#
# - `float(x)`, `int(x)`, `x.item()`, `x.tolist()`, `np.asarray(x)`, `print(x)`
# - `if x > 0:` and `while x < tolerance:`, since Python must know whether to go on
#
# Each of these is a *host read*: it blocks until the value exists and copies it over. It traces nothing and compiles nothing,
# so fewer signatures will not make it cheaper. What helps is to read less often: keep the metric on the device, and read it
# where you report. Do not drop it altogether, though: a loop that reports nothing is fast and blind. A report every so many steps is
# the usual compromise.

# %% [markdown]
# ### The work itself has a limit: the roofline
#
# When nothing is traced and nobody waits, the work is what is left. How fast could it be? Count two things about
# a kernel: $W$, its floating point operations (FLOP), and $Q$, the bytes that it moves between memory and processor. Their
# ratio is the **arithmetic intensity**
#
# $$I = \frac{W}{Q} \quad \text{in FLOP per byte,}$$
#
# and with a peak rate $P_\text{peak}$ and a memory bandwidth $B$ of the machine, no implementation is faster than
#
# $$P \;\le\; \min\left(P_\text{peak},\; B \cdot I\right).$$
#
# **An example with numbers.** The score of many float32 inputs multiplies, squares and adds: $W = 3$ FLOP for an input.
# Fused into one pass it reads 4 bytes for an input and writes next to nothing, so $I = 3/4 = 0.75$ FLOP per byte. On a machine with
# $P_\text{peak} = 100$ GFLOP/s and $B = 20$ GB/s the bound is $\min(100,\, 20 \cdot 0.75) = 15$ GFLOP/s: the memory
# limits it, and the arithmetic units idle for 85 % of the time. Only from $I = 100/20 = 5$ FLOP per byte on would they be the limit.
#
# The bound is no forecast. It tells you when to stop looking for retraces and waits: a loop that runs close to it has neither.

# %% [markdown]
# ## Build the ledger in three steps
#
# ### Step 1 · A score that leaves a note
#
# First the libraries and the device. Then the score, whose first line appends the signature of its input to a list: that line
# is Python, so it runs when JAX traces, and only then. `x8` and `x12` are the inputs of two lengths, placed on the device
# before anything is counted.

# %%
import json
import logging
import platform
import time

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

# %% [markdown]
# ### Step 2 · A call that writes its row
#
# `observed_call` makes one call and writes down what it was given and what was seen. Three lines deserve a look:
#
# - The gain becomes a float32 *array*, so that its value is data and not part of the signature.
# - `block_until_ready()` ends the call before the row is written.
# - The score is compared with NumPy, which knows nothing of JAX. A ledger of wrong results is evidence of nothing.

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

# %% [markdown]
# ### Predict before step 3 (1 point)
#
# The next step makes these calls, in a kernel that has never called the score:
#
# | | label | input | gain |
# |---|---|---|---|
# | 1 | initial signature | `x8` | 1 |
# | 2 | same signature changed data | `x8 + 1` | 1 |
# | 3 | same signature changed dynamic gain | `x8` | 2 |
# | 4 | different input shape | `x12` | 1 |
#
# By how much will the list of trace events grow in each call? Write the four whole numbers down **now**, as a list, in the order
# of the table. The point is for having answered; whether you were right, the figure will show.

# %% [markdown]
# (In the notebook: your answer trace-prediction)

# %% [markdown]
# ### Step 3 · Four calls, one change at a time
#
# The scores are asserted, since arithmetic fixes them: 140, 204, 560 and 506. The deltas are recorded and not asserted. They
# depend on what this process has traced before: run the cell a second time, and all four are zero. To see
# a first time again, restart the kernel.

# %%
call_rows.clear()  # so that running this cell again starts the ledger anew

observed_call("initial signature", x8, 1.0)
observed_call("same signature changed data", x8 + 1.0, 1.0)
observed_call("same signature changed dynamic gain", x8, 2.0)
observed_call("different input shape", x12, 1.0)

assert [row["result"] for row in call_rows] == [140.0, 204.0, 560.0, 506.0]
for row in call_rows:
    print(json.dumps(row))

# %% [markdown]
# ### Figure · Trace events, call by call
#
# Did you expect it? For each of the four calls the figure has two bars: the trace events of a recorded run, and
# those that your kernel has just seen.

# %%
from IPython.display import display

recorded_deltas = [1, 0, 0, 1]
recorded_run = "2026-10-20 10:47:35 UTC, Python 3.14.3, JAX 0.9.2, one CPU device"
observed_deltas = [row["observed_trace_delta"] for row in call_rows[:4]]
observed_run = f"this kernel, Python {platform.python_version()}, JAX {jax.__version__}, {cpu}"


def trace_figure(labels, recorded, observed):
    """SVG with two bars a call: trace events recorded (grey) and observed here (blue). Zero is a thin line and a 0."""
    parts = ['<text x="270" y="20">Trace events added by each call: recorded (grey), observed here (blue)</text>']
    for place, label in enumerate(labels):
        top = 36 + 46 * place
        parts.append(f'<text x="258" y="{top + 19}" text-anchor="end">{label}</text>')
        for shift, count, color in ((0, recorded[place], "#9aa0a8"), (16, observed[place], "#2563a8")):
            parts.append(f'<rect x="270" y="{top + shift}" width="{2 + 160 * count}" height="13" fill="{color}"/>')
            parts.append(f'<text x="{280 + 160 * count}" y="{top + shift + 11}">{count}</text>')
    size = f'width="720" height="{40 + 46 * len(labels)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">'
        f'<rect {size} fill="white"/>{"".join(parts)}</svg>'
    )


picture = trace_figure([row["label"] for row in call_rows[:4]], recorded_deltas, observed_deltas)
display({"image/svg+xml": picture, "text/plain": "The figure as numbers:"}, raw=True)

guesses = globals().get("trace_prediction")
guesses = guesses if isinstance(guesses, (list, tuple)) and len(guesses) == 4 else ["-"] * 4
print(f"{'call':38}{'score':>7}{'predicted':>12}{'recorded':>11}{'observed':>11}")
for row, guess, recorded in zip(call_rows, guesses, recorded_deltas):
    print(f"{row['label']:38}{row['result']:7.0f}{guess!s:>12}{recorded:11}{row['observed_trace_delta']:11}")
print("recorded:", recorded_run)
print("observed:", observed_run)

# %% [markdown]
# **Reading it.** Recorded were 1, 0, 0 and 1. Compare that with your prediction.
#
# - *The first call* meets a signature that JAX has not seen: one trace.
# - *Other data* and *another gain* bring new numbers in arrays of known shape and dtype. The score changes from 140 to 204 and to
#   560, and Python is not asked again. A zero here is an observation like any other: the call ran, the counter stood still.
# - *Twelve inputs* are a new shape, and the shape is part of the signature: one trace more.
#
# If you predicted 1, 1, 1, 1, you took a new answer for a new program. If you predicted 1, 0, 1, 1, you treated the gain as static.
#
# **What it does not show.** The bars count how often Python ran a body. They are not seconds, not kernels on a device and not
# executables, and a bar of length zero does not say that the compiler was idle: `x8 + 1.0`, for one, needed a small program of
# its own, which this ledger does not watch.
#
# If your deltas differ from the recorded ones, the cell of step 3 has probably run twice in this kernel.

# %% [markdown]
# ## Experiments
#
# ### Experiment 1 · A static flag beside a dynamic gain
#
# `square` picks one of two Python branches, so it is static; the scores must be 140 and 28. The gain only takes part in
# arithmetic, so it is dynamic. **Predict** before you run: how many trace events do the three calls with a flag add, and how
# many the three calls with a gain?

# %%
branch_events = []


def branch_score(x, square):
    """The sum of the squares, or of the values themselves; Python decides while JAX traces."""
    branch_events.append({"square": square, "shape": list(x.shape)})
    if square:
        return jnp.square(x).sum()
    return x.sum()


static_score = jax.jit(branch_score, static_argnames="square")

for flag, by_arithmetic in ((True, 140.0), (True, 140.0), (False, 28.0)):
    seen = len(branch_events)
    branch_result = float(static_score(x8, square=flag))
    assert branch_result == by_arithmetic
    print(f"static   square={flag!s:5}  score {branch_result:6.0f}  new trace events: {len(branch_events) - seen}")

for strength in (1.0, 2.0, 3.0):
    seen = len(trace_events)
    gain_result = float(compiled_score(x8, jnp.float32(strength)))
    print(f"dynamic    gain={strength!s:5}  score {gain_result:6.0f}  new trace events: {len(trace_events) - seen}")

# %% [markdown]
# A flag has two values, so two programs at most will ever be asked for: True was traced once and known from then on, False was
# traced once. The gain has as many values as there are numbers, and one program serves them all; it was traced in step 3, and
# nothing was left to do here.
#
# What if the gain were static? The next cell is free. Predict how many events four calls will leave, run it, then change it:
# take `static_argnames` away, or pass the gain as an array (and read the error).

# %%
gain_events = []


def scaled_score(x, gain):
    gain_events.append(gain)
    return jnp.square(gain * x).sum()


static_gain = jax.jit(scaled_score, static_argnames="gain")
for gain in (1.0, 2.0, 3.0, 2.0):
    static_gain(x8, gain=gain)
print(len(gain_events), "trace events:", gain_events)

# %% [markdown]
# ### Experiment 2 · Six updates, read six times or once
#
# Six updates of $v \mapsto 0.9\,v + 1$, starting from 0. The values approach 10, and after six updates theory says
# $10\,(1 - 0.9^6) \approx 4.68559$. The loop runs twice: once it reads the value after every update, once at the end
# alone. The results must agree. The times are for you to look at.
#
# The update is called once beforehand, so that neither loop pays for tracing and compiling it.

# %%
def one_update(value):
    return 0.9 * value + 1.0


update = jax.jit(one_update)
initial = jax.device_put(np.float32(0.0), cpu)
update(initial).block_until_ready()


def metric_run(report_every):
    """Six updates, with a host read after every `report_every` of them: what was read, and the seconds it took."""
    value, metrics = initial, []
    began = time.perf_counter()
    for step in range(1, 7):
        value = update(value)
        if step % report_every == 0:
            metrics.append(float(value))
    value.block_until_ready()
    return metrics, time.perf_counter() - began


read_metrics, read_seconds = metric_run(report_every=1)
final_metrics, final_seconds = metric_run(report_every=6)

reference_value = 10.0 * (1.0 - 0.9**6)
np.testing.assert_allclose([read_metrics[-1], final_metrics[-1]], reference_value, rtol=2e-5)
assert (len(read_metrics), len(final_metrics)) == (6, 1)
print(f"read after every update: {read_metrics[-1]:.5f}  {len(read_metrics)} host reads  {read_seconds:.6f} s")
print(f"read at the end alone:   {final_metrics[-1]:.5f}  {len(final_metrics)} host read   {final_seconds:.6f} s")

# %% [markdown]
# The recorded run (the one named under the figure) took 0.000121 s with a wait after every update and 0.000036 s with a wait at the
# end. Yours may differ by a lot, even in their order, and nothing here compares them: six updates of one number are
# over in microseconds, and whatever else the machine is doing weighs more. Certain are the number of boundaries, six against one,
# and the value, which is the same.
#
# Nor do the two times measure the same thing. One holds six conversions to Python and shows you every value; the other shows you the
# last. Write that down beside the seconds. Then try a `report_every` of 2 or 3 in a cell of your own.

# %% [markdown]
# ### Experiment 3 · Let JAX say what it compiles
#
# The ledger sees traces. For the other stages ask JAX itself: inside `jax.log_compiles()` it reports each stage as it ends. The
# cell keeps these lines and does three things to a function that nobody has called yet: it asks for the shape of the
# result, calls the function, and calls it again. **Predict** which of the three traces, and which compiles.

# %%
def lines_logged(action):
    """What JAX logs about tracing and compiling while `action` runs."""
    kept = []
    keeper = logging.Handler()
    keeper.emit = lambda record: kept.append(record.getMessage())
    logger = logging.getLogger("jax")
    logger.addHandler(keeper)
    try:
        with jax.log_compiles():
            action()
    finally:
        logger.removeHandler(keeper)
    return kept


def logged_score(x):
    return jnp.square(x).sum()


compiled_logged = jax.jit(logged_score)
twenty = np.arange(20, dtype=np.float32)
logged_stages = {
    "ask for the shape": lines_logged(lambda: jax.eval_shape(compiled_logged, twenty)),
    "first call": lines_logged(lambda: compiled_logged(twenty)),
    "second call": lines_logged(lambda: compiled_logged(twenty)),
}
for what, kept in logged_stages.items():
    print(f"{what}: {len(kept)} lines")
    for line in kept:
        print("   ", line[:88])

# %% [markdown]
# Every line names its stage, so read it before you count it. Asking for the shape traces and goes no further. The first call
# compiles what was traced before. The second call leaves no line at all. There they stand, one below the other: a trace without
# a compilation, and a compilation without a trace. (Small helpers such as `square` have lines of their own, and the wording
# changes between versions of JAX. So no check reads it.)
#
# **For a whole program** the same log is switched on from outside. Put the code of steps 1 to 3 into a file `diagnosis.py`, and let the
# log go into a file of its own. Linux and macOS:
#
# ```sh
# JAX_LOG_COMPILES=1 python diagnosis.py 2> stages.log
# grep -n "Compiling" stages.log
# ```
#
# PowerShell, where the variable stays set for the rest of the session unless you remove it:
#
# ```powershell
# $env:JAX_LOG_COMPILES = "1"
# python diagnosis.py 2> stages.log
# Remove-Item Env:JAX_LOG_COMPILES
# Select-String -Path stages.log -Pattern "Compiling"
# ```
#
# What the program prints still goes to the terminal. `stages.log` has lines about tracing as well as about compiling, and only
# the latter support a claim about the compiler.

# %% [markdown]
# ## Exercises
#
# Three exercises of 4 points. Each has a guide, a scaffold with `TODO`s, a hint that you may leave closed, and checks.

# %% [markdown]
# ### Exercise 1 · A fifth row (4 points)
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
# ### Exercise 2 · A short batch in a full-size array (4 points)
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
# ### Exercise 3 · A Python branch, broken and repaired (4 points)
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
# - without `jax.jit`, where the gain has a value, returns what `repaired` is to return. A function that you decorated with
#   `jax.jit` yourself is refused there as well, which is fine.
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
# ## Check your understanding
#
# Six questions of 2 points, and one that you answer in words. Answer from what you know, before you run anything; afterwards try
# it in a cell of your own. The checks below each answer look at its form alone.

# %% [markdown]
# ### Checkpoint 1 · Eight calls (2 points)
#
# A fresh kernel has run steps 1 and 2 and nothing else. Now it makes these calls, in this order:
#
# | | call |
# |---|---|
# | 1 | `compiled_score(x8, jnp.float32(1.0))` |
# | 2 | `compiled_score(x8 - 3.0, jnp.float32(1.0))` |
# | 3 | `compiled_score(x12, jnp.float32(1.0))` |
# | 4 | `compiled_score(x8, jnp.float32(-5.0))` |
# | 5 | `compiled_score(x8.astype(jnp.int32), jnp.float32(1.0))` |
# | 6 | `compiled_score(x8, 2.0)` with a bare Python number as gain |
# | 7 | `compiled_score(x8, 3.0)` with another one |
# | 8 | `compiled_score(x12, jnp.float32(9.0))` |
#
# By how much does `trace_events` grow in each? `checkpoint_deltas` is a list of eight whole numbers.

# %% [markdown]
# (In the notebook: your answer checkpoint-deltas)

# %% [markdown]
# ### Checkpoint 2 · What traces again, and why? (2 points)
#
# A training step is jitted once, `step = jax.jit(train_step, static_argnames="squared")`, and was called with
#
# - `batch`: 32 rows of 4 float32 values, `rate`: a float32 scalar array that holds 0.1, `squared=True`.
#
# Then it is called again with **one** change. Name what makes it trace again, or say that nothing does:
#
# | key | the change |
# |---|---|
# | `"a"` | the batch is the last of the epoch, and has 20 rows |
# | `"b"` | the rate is now a float32 scalar array that holds 0.05 |
# | `"c"` | the batch was converted to bfloat16 |
# | `"d"` | `squared=False` |
# | `"e"` | the batch has 32 other rows |
# | `"f"` | just before the call stands `step = jax.jit(lambda batch, rate: ...)`, as it does in every turn of the loop |
# | `"g"` | just before the call stands `print(float(loss))`, for the loss of the last call |
#
# `checkpoint_retraces` is a dict with these seven keys. Each value is one of the words `"shape"`, `"dtype"`, `"static"`,
# `"function"`, `"nothing"`.

# %% [markdown]
# (In the notebook: your answer checkpoint-retraces)

# %% [markdown]
# ### Checkpoint 3 · What a delta proves (2 points)
#
# You look at one row of a ledger like ours, and know nothing else about the call. Does the statement **follow** from the number?
#
# `observed_trace_delta` is 0:
#
# | key | statement |
# |---|---|
# | `"a"` | The body of `score` did not run in Python during this call. |
# | `"b"` | The compiler had nothing to do during this call. |
# | `"c"` | The result is the same as that of the call before. |
#
# `observed_trace_delta` is 1:
#
# | key | statement |
# |---|---|
# | `"d"` | The body of `score` ran once in Python during this call. |
# | `"e"` | One executable was built during this call. |
# | `"f"` | The call took longer than one with a delta of 0. |
#
# `checkpoint_evidence` is a dict with these six keys and the values `True` (it follows) or `False` (it does not, even if it is
# often so).

# %% [markdown]
# (In the notebook: your answer checkpoint-evidence)

# %% [markdown]
# ### Checkpoint 4 · Which arguments should be static? (2 points)
#
# ```python
# def row_sizes(values, mask, gain, limit, norm, width):
#     rows = jnp.where(mask, gain * values, 0.0).reshape(-1, width)
#     sizes = jnp.abs(rows) if norm == "l1" else jnp.square(rows)
#     return jnp.minimum(sizes.sum(axis=1), limit)
# ```
#
# `values` and `mask` are arrays; `gain` and `limit` are scalars that change from call to call; `norm` is the text `"l1"` or
# `"l2"`; `width` is a whole number, the same for most of a run.
#
# Which of the six belong in `static_argnames`? As few as the function needs to work under `jax.jit`, and no more.
# `checkpoint_static` is a list of their names, in any order.

# %% [markdown]
# (In the notebook: your answer checkpoint-static)

# %% [markdown]
# ### Checkpoint 5 · Where does Python wait? (2 points)
#
# `update` is jitted and was called before, `loss` is a scalar array on the device, and each of these four loops takes 100 steps.
# How many times, from the first line of a fragment to its last, does Python need a value from the device?
#
# ```python
# # a
# history = []
# for step in range(100):
#     state, loss = update(state)
#     history.append(float(loss))
#
# # b
# total = jnp.float32(0.0)
# for step in range(100):
#     state, loss = update(state)
#     total = total + loss
#     if step % 20 == 0:
#         print(step, total)
#
# # c
# history = []
# for step in range(100):
#     state, loss = update(state)
#     history.append(loss)
# curve = np.asarray(jnp.stack(history))
#
# # d
# best = jnp.float32(1e9)
# for step in range(100):
#     state, loss = update(state)
#     if loss < best:
#         best = loss
# ```
#
# `checkpoint_waits` is a dict with the keys `"a"` to `"d"` and whole numbers.

# %% [markdown]
# (In the notebook: your answer checkpoint-waits)

# %% [markdown]
# ### Checkpoint 6 · Two kernels under a roofline (2 points)
#
# A machine has a peak of 400 GFLOP/s and a memory bandwidth of 50 GB/s. Count each byte that has to be moved once, and a
# multiplication and an addition as one FLOP each.
#
# 1. `update` from experiment 2, on a long float32 vector: each $v$ is read, $0.9\,v + 1$ is computed and written to another vector.
# 2. `matmul`: the product of two float32 matrices of 512 × 512. It takes $2 \cdot 512^3$ FLOP; both matrices are read and the
#    product is written, once each.
#
# `checkpoint_roofline` is a dict with four numbers. Three digits are enough.
#
# | key | value |
# |---|---|
# | `"update_intensity"`, `"matmul_intensity"` | the arithmetic intensity in FLOP per byte |
# | `"update_bound"`, `"matmul_bound"` | the roofline bound in GFLOP/s |

# %% [markdown]
# (In the notebook: your answer checkpoint-roofline)

# %% [markdown]
# ### In your own words · Why does a padded batch need its mask? (3 points)
#
# A person reads this one. In at most ten sentences:
#
# 1. Use the numbers of exercise 2 to show what three rows of zero do to the sum of $(v + 1)^2$, and where the difference comes from.
# 2. Say for which contributions $f(v)$ padding with zeros leaves a *sum* as it was, and why an offset is not among them. What
#    happens to a *mean* over all rows even then?
# 3. Explain why the mask has to act on what a row contributes, and not on its value.
#
# Write into the cell below, which is Markdown: a double click opens it.

# %% [markdown]
# (In the notebook: your answer padding-explanation)

# %% [markdown]
# ## Diagnose the result
#
# Back to the two loops of the beginning. The order of questions matters more than any single tool:
#
# 1. **Is something traced again?** Write a ledger. If the pauses fall on rows with a new signature, ask *which part* is new. Lengths:
#    compare with a fixed size and an explicit mask, and prove first that the objective is the same. A static number: make it dynamic.
#    A function made anew in each turn: jit it once, outside the loop.
# 2. **Does Python wait?** If the ledger is quiet, look for host reads in the loop. First agree on where metrics are to be
#    reported, then move the reads there, show that the values are equal, and only then compare times, with both ends of the
#    measurement synchronized and the change of boundary written beside them.
# 3. **Is it the work?** With neither, compare with the roofline. Close to it there is nothing left to repair, only less to compute.
#
# ### Checkpoint 7 · Five loops (2 points)
#
# Each loop made twelve calls. What would you do first?
#
# | key | shapes of the input | deltas | in the code |
# |---|---|---|---|
# | `"a"` | twelve lengths between 40 and 64 | 1, 1, 1, 1, … | one read after the loop |
# | `"b"` | one | 1, 0, 0, 0, … | `print(float(loss))` in each turn |
# | `"c"` | one | 1, 1, 1, 1, … | `static_argnames="rate"`, and a schedule that lowers the rate in each turn |
# | `"d"` | one | 1, 1, 1, 1, … | `jax.jit(lambda x: ...)` in the body of the loop |
# | `"e"` | one | 1, 0, 0, 0, … | one read after the loop; twice as many rows take twice as long |
#
# `checkpoint_remedies` is a dict with the keys `"a"` to `"e"`. Each value is one of the texts `"pad and mask"`,
# `"read at the boundary"`, `"make it dynamic"`, `"jit once"`, `"compare with the roofline"`; each text is used once.

# %% [markdown]
# (In the notebook: your answer checkpoint-remedies)

# %% [markdown]
# ## Carry forward
#
# - A ledger with one change a row comes before any diagnosis. What it counts are traces; a claim about the compiler needs a
#   line of its log.
# - What decides the structure of a program may be static. What it computes with stays dynamic, even if it has to choose.
# - Padding keeps the shape. Only a mask on the contributions keeps the objective.
# - A host read shows you something and makes Python wait. Choose the boundary at which both are worth it.
# - When nothing traces and nobody waits, the roofline says how much there is still to win.

# %% [markdown]
# ## Evidence
#
# The last cell gathers what you found into one record. Before you run it, put into words what the numbers cannot say; the cell
# below is free, and nothing in it is graded. The written answer about padding stays in its own cell and is read there.

# %%
explanations = {
    "prediction": "",  # what did you predict for the four calls, and what did the ledger teach you?
    "trace_or_compilation": "",  # which of your observations is about traces, and which line is about the compiler?
    "static_or_dynamic": "",  # what would you mark static in your own code, and what not?
    "host_reads": "",  # where does your own code read from the device, and where should it?
}

# %%
import json
import platform

import jax


def plain(value):
    """The same as JSON has it; what JSON cannot say becomes text, and what has no text is named by its type."""
    try:
        return json.loads(json.dumps(value, default=str, skipkeys=True))
    except Exception as trouble:
        return f"{type(value).__name__}: {type(trouble).__name__}"


def of_this_kernel(*names):
    """The values of these names by name, as plain values; None where this kernel has no such name."""
    return {name: plain(globals().get(name)) for name in names}


evidence = {
    "lesson": "performance-02",
    "environment": {"python": platform.python_version(), "jax": jax.__version__, "devices": [str(one) for one in jax.devices()]},
    "ledger": of_this_kernel("call_rows", "trace_events"),
    "figure": of_this_kernel("trace_prediction", "recorded_deltas", "recorded_run", "observed_deltas", "observed_run"),
    "static_or_dynamic": of_this_kernel("branch_events"),
    "host_reads": of_this_kernel("read_metrics", "read_seconds", "final_metrics", "final_seconds", "reference_value"),
    "compiler_log": of_this_kernel("logged_stages"),
    "padding": of_this_kernel("with_mask", "without_mask"),
    "python_branch": of_this_kernel("failure_seen"),
    "checkpoints": of_this_kernel(*sorted(name for name in globals() if name.startswith("checkpoint_"))),
    "explanations": plain(globals().get("explanations")),
}
print(json.dumps(evidence, indent=2))

# %% [markdown]
# ---
# To read on: the pages on just-in-time compilation, asynchronous dispatch, control flow and errors in the JAX documentation
# (docs.jax.dev). The roofline comes from S. Williams, A. Waterman and D. Patterson, *Roofline: an insightful visual performance
# model for multicore architectures*, Communications of the ACM 52(4), 2009.
