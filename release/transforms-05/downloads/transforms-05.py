# The worked examples of transforms-05. Answers and tests are in the notebook alone.
#

# %% [markdown]
# # Tracing, static arguments, and recompilation
#
# *Transforms, lesson 5. About 60 minutes, on a CPU.*
#
# A function gives the right answer. You wrap it in `jax.jit`, change nothing else, and its harmless `if` turns into an
# error. This lesson is about the moment at which that happens: who takes a decision, Python while it writes a program
# down or the program while it runs, and what each of them can know by then.

# %% [markdown]
# ## What you will be able to do
#
# | afterwards you can | its name in your scores |
# |---|---|
# | tell the numbers of a call from its shape, its dtype and its static choices, and say which of them ask for a new trace | `values-apart-from-structure` |
# | list the operations that a function leaves in its program, and say what a line printed during tracing is evidence of | `staged-programs-read` |
# | explain why JAX refuses a Python `if` about a traced value, and where it accepts one | `refused-branches-explained` |
# | make a small choice static, and leave a choice about data to the program | `decisions-in-their-place` |
# | hold a compiled function against plain arithmetic, over changed values and changed shapes | `results-audited` |
#
# ## How it goes
#
# Work from the top down. Cells without a `TODO` belong to the notebook: run them, read them, leave them. Cells with a
# `TODO` are yours:
#
# - two **predictions**, 1 point each. They count for being made, not for being right, so make them before you run on;
# - seven **checkpoints**, 17 points, which ask whether an idea has arrived;
# - three **exercises**, 4 points each, with a guide, a scaffold and a hint that you may leave closed;
# - one **written answer**, 4 points, which a person reads.
#
# Below each of your cells stands a cell of checks, to be run as often as you like. More checks run when your notebook
# is graded; whatever they require is said in the task. The line `raise NotImplementedError()` marks a cell that still
# waits for you; delete it once you have written yours.

# %% [markdown]
# ## The problem
#
# ```python
# def limited(value):
#     if value > 10.0:
#         return 10.0
#     return value
# ```
#
# `limited(12.0)` is 10. `jax.jit(limited)(12.0)` is a `TracerBoolConversionError`. A popular first aid is to declare
# the argument static. The error goes away, and with it the reason to compile at all: from now on each new number asks
# for a program of its own.
#
# There is no need to choose between an error and a compiler that never rests. One question settles it: *who should take
# this decision, and what is known at that time?*

# %% [markdown]
# ## The idea
#
# **A jitted function lives twice.** When it meets a new kind of input, Python runs its body with stand-ins, the
# *tracers*. A tracer has a shape and a dtype and no numbers. The operations that it passes through are written down:
# that is tracing. From then on numbers flow through what was written down, and Python has no say in it.
#
# **So a call has three kinds of ingredients.**
#
# | ingredient | when is it known? | a new one costs | for instance |
# |---|---|---|---|
# | static argument | during tracing, by value | a trace | `mode="sum"` |
# | shape and dtype | during tracing | a trace | three elements, float32 |
# | numbers in arrays | only while the program runs | nothing | 1, 2, 3 |
#
# JAX keeps its programs in a table and finds them by the first two rows. A static argument therefore has to be
# *hashable*, as a text, an integer or a tuple is, and it had better have few values that seldom change.
#
# **A choice goes where its answer is known.** A choice among a handful of programs is made during tracing, by a Python
# `if` about a static argument or a shape. A choice about numbers belongs in the program: `jax.lax.cond` for one
# question, `jnp.where` for a question about every element. Both sides of a `cond` are traced, so they must agree in
# structure, shapes and dtypes. For a single question only one side then runs; under `vmap` the same `cond` may become a
# selection that computes both, so its looks do not tell you its cost.
#
# **A ledger comes before a diagnosis.** Write beside every call what you passed and how many traces you saw. Change one
# ingredient a call, the numbers first. When everything changes at once, the ledger says nothing.

# %% [markdown]
# ## Build
#
# Three steps, each a locked cell: libraries and an input, the function and its compiled form, a first look. The input
# has an explicit shape and dtype, since those belong to what JAX will look up.

# %%
import json
import platform

import jax
import jax.numpy as jnp
import numpy as np
from IPython.display import SVG, display

x = jnp.array([1.0, 2.0, 3.0], dtype=jnp.float32)
print("x has shape", x.shape, "and dtype", x.dtype)

# %% [markdown]
# `mode` selects one of two programs, so Python may look at it, by `if` or by `match`, as long as `jit` is told that it
# is static. A mode that nobody planned for is refused. Returning the mean for every typo would look plausible for a
# long time.

# %%
def reduce_values(values, mode):
    """The sum or the mean of some values, as mode says."""
    match mode:
        case "sum":
            return jnp.sum(values)
        case "mean":
            return jnp.mean(values)
        case _:
            raise ValueError(f"there is no mode {mode!r}: choose sum or mean")


compiled = jax.jit(reduce_values, static_argnames=("mode",))

# %%
for mode, by_hand in (("sum", 6.0), ("mean", 2.0)):
    assert float(compiled(x, mode=mode)) == by_hand
    print(f"{mode}: {by_hand}")
try:
    compiled(x, mode="total")
except ValueError as refusal:
    print("refused:", refusal)
else:
    raise AssertionError("a mode that does not exist was accepted")

# %% [markdown]
# ## Prediction 1 · Two bars (1 point)
#
# The next figure draws `compiled(x, mode="sum")` and `compiled(x, mode="mean")` for the `x` above. How many times as
# long as the bar of the mean is the bar of the sum? Put your number into `predicted_ratio`; any positive number counts.

# %% [markdown]
# (In the notebook: your answer predict-ratio)

# %%
bars = {mode: float(compiled(x, mode=mode)) for mode in ("sum", "mean")}
figure_data = {
    "input": x.tolist(),
    "bars": bars,
    "made by": "compiled(x, mode=...) in this kernel",
    "versions": f"JAX {jax.__version__} on {jax.default_backend()}, Python {platform.python_version()}",
}


def bar_chart(values, title):
    """Horizontal bars as SVG: one row a name, as long as its value, with the value at its end."""
    scale = 300 / max(values.values())
    rows = [
        f'<text x="70" y="{62 + 44 * row}" text-anchor="end">{name}</text>'
        f'<rect x="80" y="{44 + 44 * row}" width="{scale * value:.1f}" height="28" rx="3" fill="#3a6ea5"/>'
        f'<text x="{90 + scale * value:.1f}" y="{62 + 44 * row}">{value:g}</text>'
        for row, (name, value) in enumerate(values.items())
    ]
    height = 44 + 44 * len(values)
    return SVG(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="440" height="{height}" role="img" '
        f'font-family="sans-serif" font-size="14"><title>{title}</title><rect width="100%" height="100%" fill="white"/>'
        f'<text x="80" y="26" font-weight="bold">{title}</text>{"".join(rows)}</svg>'
    )


display(bar_chart(bars, "One input, two static modes"))
print(json.dumps(figure_data))

# %% [markdown]
# **Reading it.** The sum is three times the mean, since a mean is a sum divided by the length, and `x` has three
# elements. Other values of the same length would change both bars and leave the ratio. No error came up on the way:
# `mode` was a text during tracing, so Python could compare it, and each of the two texts got a program that contains
# one reduction and no trace of the other. The data of the figure, and what made them, are printed below it.

# %% [markdown]
# ## Read a small program
#
# `jax.make_jaxpr` traces a function and shows what was written down. Its text differs between versions of JAX, so read
# it as you would read a map: what goes in, what comes out, which operations lie between. The cell asks for exactly
# that, without parsing any text.
#
# The function also prints. Watch how often.

# %%
def sum_squares(values):
    """The sum of the squares, with a line from Python."""
    print("  Python runs the body, for shape", values.shape)
    squares = values * values
    return squares.sum()


staged_squares = jax.jit(sum_squares)

print("make_jaxpr:")
staged = jax.make_jaxpr(sum_squares)(x)
program_steps = [equation.primitive.name for equation in staged.jaxpr.eqns]
for side, avals in (("in", staged.in_avals), ("out", staged.out_avals)):
    print(" ", side, [f"{one.dtype}{list(one.shape)}" for one in avals])
print("  steps", program_steps)
print("first call:")
squares_first = float(staged_squares(x))
print("  result", squares_first)
print("second call, other values:")
squares_second = float(staged_squares(x + 1.0))
print("  result", squares_second)
assert (squares_first, squares_second) == (14.0, 29.0)

# %% [markdown]
# Two steps, a product and a reduction, and no step for the `print`: Python ran that line while it wrote the program,
# and the program knows nothing of it. Both results are right, 14 and 29. Perhaps the first call printed nothing either;
# JAX may reuse what `make_jaxpr` traced a moment before. That is its own business, and one more reason not to count
# anything important by printed lines.

# %% [markdown]
# ## Checkpoint 1 · What stays in the program (2 points)
#
# Suppose that this function is traced for an array of four elements.
#
# ```python
# def scaled_mean(values):
#     print("length", values.shape[0])  # A
#     doubled = values * 2.0            # B
#     label = "scaled mean"             # C
#     count = values.shape[0]           # D
#     total = jnp.sum(doubled)          # E
#     return total / count              # F
# ```
#
# Which lines leave an operation that happens in *every* call of the compiled function? Answer `True` or `False` for
# each letter.

# %% [markdown]
# (In the notebook: your answer program-lines)

# %% [markdown]
# ## Checkpoint 2 · A line that did not appear (2 points)
#
# Give one letter for each question.
#
# **Question 1.** `staged_squares(x + 1.0)` printed no line, and its result is right. What do you know from the missing
# line alone?
#
# - **A** The squares were not computed; the result was kept from an earlier call.
# - **B** Python did not run the body in this call, which fits a program that was traced before.
# - **C** Nothing was compiled, neither in this process nor in another one.
# - **D** The compiled program has run exactly once so far.
#
# **Question 2.** In a training run of many steps the line of a jitted function appears twice. How often did the device
# run the function?
#
# - **A** Twice.
# - **B** At most twice.
# - **C** As often as there are processes.
# - **D** That cannot be told from the line.
#
# **Question 3.** You want to see a value in *every* run of the compiled function. What is made for that?
#
# - **A** `print` with an f-string.
# - **B** `jax.debug.print`.
# - **C** Appending the value to a Python list.
# - **D** Making the value static.

# %% [markdown]
# (In the notebook: your answer absent-line)

# %% [markdown]
# ## Prediction 2 · Six calls (1 point)
#
# Now the ledger. One jitted function, with `mode` static, leaves a note whenever Python runs its body. It receives
# these calls in this order:
#
# | call | array | mode | what is different |
# |---|---|---|---|
# | A | `x` | `"sum"` | the first call |
# | B | `x + 10` | `"sum"` | the values |
# | C | five float32 elements | `"sum"` | the length |
# | D | `x` | `"mean"` | the mode |
# | E | three int32 elements | `"sum"` | the dtype |
# | F | `x` | `"sum"` | nothing, compared with A |
#
# In which calls will Python run the body? Put their letters into the list; any letters from A to F count.

# %% [markdown]
# (In the notebook: your answer predict-traced)

# %%
trace_notes = []


def noted(values, mode):
    """reduce_values, leaving a note whenever Python runs it."""
    trace_notes.append({"shape": list(values.shape), "dtype": str(values.dtype), "mode": mode})
    return reduce_values(values, mode)


# Made in this cell, so that running the cell again starts a new ledger with a function that was never traced.
compiled_noted = jax.jit(noted, static_argnames=("mode",))

ledger = []
for call, values, mode in (
    ("A", x, "sum"),
    ("B", x + 10.0, "sum"),
    ("C", jnp.arange(5, dtype=jnp.float32), "sum"),
    ("D", x, "mean"),
    ("E", jnp.array([1, 2, 3], dtype=jnp.int32), "sum"),
    ("F", x, "sum"),
):
    before = len(trace_notes)
    result = float(compiled_noted(values, mode=mode))
    row = {"call": call, "shape": list(values.shape), "dtype": str(values.dtype), "mode": mode}
    ledger.append(row | {"traces": len(trace_notes) - before, "result": result})

for row in ledger:
    print(json.dumps(row))

# %% [markdown]
# **What it shows.** A, C, D and E were traced: the first call, a new shape, a new static text, a new dtype. B brought
# new numbers and F an old combination, and neither needed Python. Compare with your list. Most surprises come from F:
# JAX does not look at the call before, it looks for a combination that it has seen *at any time*, with this function in
# this process.

# %% [markdown]
# ## Checkpoint 3 · What asks for a trace, and why (3 points)
#
# First name the cause of each row above: what did calls B to F bring that no earlier call had? Answer with `"values"`,
# `"shape"`, `"mode"`, `"dtype"` or `"nothing"`.
#
# Then six more calls go to the same `compiled_noted`, one after the other. Will they be traced?
#
# | call | array | mode |
# |---|---|---|
# | G | `x * 0.5` | `"sum"` |
# | H | five float32 elements | `"mean"` |
# | I | a column, `x.reshape(3, 1)` | `"sum"` |
# | J | three float32 elements, all NaN | `"mean"` |
# | K | three other int32 elements | `"sum"` |
# | L | three int32 elements | `"mean"` |

# %% [markdown]
# (In the notebook: your answer retraces)

# %% [markdown]
# ## Checkpoint 4 · How many? (2 points)
#
# A service reduces float32 batches of three different lengths, in two modes. Every combination occurs a thousand times,
# in one process, through one jitted function with a static `mode`.
#
# - `traces_needed`: how many traces does that need?
# - Then the function gets a second argument, a gain, and forty different gains occur with every combination. How many
#   traces with the gain *static*, `traces_static_gain`, and how many with the gain passed as a float32 array,
#   `traces_array_gain`? Count from the start.

# %% [markdown]
# (In the notebook: your answer program-count)

# %% [markdown]
# ## A question that cannot be answered yet
#
# `if value > 0` wants a yes or a no from Python, at once. Outside `jit` there is a number to compare. During tracing
# there is a tracer, and JAX raises `TracerBoolConversionError` rather than guess. The comparison as such is fine, every
# device can compare. It is Python that asks too early.
#
# The next cell catches this one class of error and nothing wider: an `except Exception` would also hide a misspelt
# name.

# %%
def python_branch(value):
    """The square of a positive value, otherwise its negative; Python decides."""
    if value > 0.0:
        return value * value
    return -value


assert python_branch(-2.0) == 2.0 and python_branch(3.0) == 9.0

jitted_branch = jax.jit(python_branch)
refused_as = None
try:
    jitted_branch(jnp.array(-2.0))
except jax.errors.TracerBoolConversionError as refusal:
    refused_as = type(refusal).__name__
    print(refused_as, "-", str(refusal).splitlines()[0])
assert refused_as == "TracerBoolConversionError"

# %% [markdown]
# The repair hands the question over. `jax.lax.cond` takes the condition, two functions and their argument. Both
# functions are traced, the condition is answered while the program runs. One call proves nothing about the other side,
# so the cell tries both.

# %%
def runtime_branch(value):
    """The same choice, made by the program."""
    return jax.lax.cond(value > 0.0, jnp.square, jnp.negative, value)


compiled_branch = jax.jit(runtime_branch)
branch_results = [float(compiled_branch(jnp.array(value))) for value in (-2.0, 3.0)]
assert branch_results == [2.0, 9.0]
print("-2 becomes", branch_results[0], "and 3 becomes", branch_results[1])

# %% [markdown]
# ## Checkpoint 5 · Refused or accepted (3 points)
#
# Which of these calls raise `TracerBoolConversionError`? `python_branch` is the function above, and
#
# ```python
# def by_rank(values):
#     if values.ndim == 1:
#         return jnp.sum(values)
#     return values
# ```
#
# | call | |
# |---|---|
# | A | `python_branch(jnp.array(-2.0))` |
# | B | `jax.jit(python_branch)(3.0)`, a plain Python number |
# | C | `jax.grad(python_branch)(3.0)` |
# | D | `jax.jit(jax.grad(python_branch))(3.0)` |
# | E | `jax.vmap(python_branch)(x)` |
# | F | `jax.jit(by_rank)(x)` |
#
# Decide first, then try them out if you like.

# %% [markdown]
# (In the notebook: your answer refused-calls)

# %% [markdown]
# ## Checkpoint 6 · What may be static (2 points)
#
# JAX looks static arguments up in a table, so they have to be hashable. Which of these does it accept as one?
#
# | name | value |
# |---|---|
# | `text` | `"mean"` |
# | `list` | `[3, 5]` |
# | `tuple` | `(3, 5)` |
# | `array` | `jnp.array([3.0, 5.0])` |
# | `none` | `None` |
# | `dict` | `{"mode": "mean"}` |

# %% [markdown]
# (In the notebook: your answer hashable)

# %% [markdown]
# ## Checkpoint 7 · Everything in its place (3 points)
#
# A step of gradient descent on a batch of $B$ examples:
#
# $$\theta_{t+1} = \theta_t - \eta \cdot \frac{1}{B} \sum_{i=1}^{B} \nabla_\theta\, \ell(\theta_t, x_i, y_i)$$
#
# The step is jitted. Where does each of these belong: `"static"` (an argument that selects the program), `"shape"` (JAX
# reads it off the arrays), or `"runtime"` (numbers, or a decision about numbers)?
#
# | name | what it is |
# |---|---|
# | `learning_rate` | $\eta$, which falls a little with every step |
# | `batch_size` | $B$, the first axis of the batch |
# | `loss_name` | `"squared"` or `"absolute"`, chosen once for a training run |
# | `batch` | the pairs $x_i$, $y_i$ |
# | `layer_count` | how many layers the loop in the model builds, the same for a whole run |
# | `gradient_is_large` | whether this step's gradient is long enough to be shortened |

# %% [markdown]
# (In the notebook: your answer places)

# %% [markdown]
# ## Exercise 1 · A third mode (4 points)
#
# `reduce_values` knows two modes. Write a function that knows a third, `"max"`, keeps the other two as they are, and
# still refuses everything else.
#
# **What your answer must provide**
#
# `choose`, the object that `jax.jit` returned, with `mode` static. It is called as `choose(values, mode=...)`:
#
# - `values` is a one-dimensional float32 array of any length from 1. The result is a scalar.
# - `"sum"`, `"mean"` and `"max"` give the sum, the mean and the largest element. All elements may be negative.
# - Every other text raises `ValueError`, also one in capitals or one that merely resembles a mode.
# - `values` stays dynamic: what was compiled for one mode and one length is right for all values of that length.
#
# **Guide**
#
# 1. Start from `reduce_values`: one case for each mode, and the refusal at the end.
# 2. Wrap it, and name the static argument.
# 3. Try all three modes on `[1, 2, 3]` and on `[-4, -1, -2]`; work the six results out yourself first.
# 4. Try a mode that does not exist.
#
# <details>
# <summary>Hint</summary>
#
# `jax.jit(choose_reduction, static_argnames=("mode",))`; the comma makes it a tuple. The maximum of negative numbers is
# negative: beware of any solution that starts from 0.
#
# </details>

# %% [markdown]
# (In the notebook: your answer static-max)

# %% [markdown]
# ## Exercise 2 · Absolute values that stay dynamic (4 points)
#
# Now the choice is about numbers, and there is one for every element. Write the absolute value of a vector yourself,
# with a selection in the program.
#
# **What your answer must provide**
#
# `compiled_absolute`, the object that `jax.jit` returned. It is called as `compiled_absolute(values)`:
#
# - `values` is a float32 vector of any length. The result has the same shape and dtype: every element without its sign.
# - The choice between an element and its negative is a *selection* in the program, as `jnp.where` or `jax.lax.select`
#   make one. `jnp.abs` and its relatives are for comparing.
# - Nothing is static: what was compiled for one length is right for all values of that length.
# - It works under `jax.vmap`, row by row, and its sum can be differentiated with `jax.grad`. No element will be 0
#   there.
#
# **Guide**
#
# 1. Write down the condition for the whole vector; the result is a vector of booleans.
# 2. Select between two vectors with it.
# 3. Compile, and compare with `jnp.abs` on `[-2, 0, 3]` and on `[5, -4, -1]`.
#
# <details>
# <summary>Hint</summary>
#
# `jnp.where(condition, this, that)` picks element by element. It is no `if`: both vectors are computed, and then one of
# the two is taken at each place.
#
# </details>

# %% [markdown]
# (In the notebook: your answer absolute)

# %% [markdown]
# ## Exercise 3 · An audit of two lengths (4 points)
#
# Take the sum of squares once more, this time with a ledger of your own. It should show two things side by side: that
# the compiled function agrees with a loop in plain Python, and which changes made Python run again.
#
# **What your answer must provide**
#
# - `compiled_squares`, the object that `jax.jit` returned: the sum of the squares of a float32 vector of any length, a
#   scalar.
# - `audit_rows`, a list of four dictionaries, for the lengths 3, 3, 5, 5 in this order. The values are 0, 1, 2, … plus
#   a shift: 0 in the first row of each length, 1 in the second. Nothing calls `compiled_squares` before the first row.
#
# | key | value |
# |---|---|
# | `length`, `shift` | the two numbers that make the values |
# | `dtype` | the dtype of the values as a text, `float32` |
# | `program` | what `compiled_squares` returned, as a `float` |
# | `loop` | the same from a Python loop over the elements, as a `float` |
# | `trace_delta` | how often Python ran the body of your function during the call: what you observed, an `int` |
# | `change` | `"first call"`, `"values"` or `"length"`: the reason for a trace if there was one, else what was new without being a reason |
#
# **Guide**
#
# 1. Let the body of your function leave a note in a list. Compile it once, outside every loop.
# 2. For each row: make the values, count the notes, call, count again.
# 3. Work out the four sums by hand before you compare.
# 4. Fill in `change` last, with the deltas in front of you.
#
# <details>
# <summary>Hint</summary>
#
# A loop that adds up `float(number) ** 2` for each element is plain Python, and JAX has no part in it. Define the
# function once: one that is defined anew in each round is a new function to JAX, and is traced in each round. And leave
# the clock alone; elapsed time does not tell whether a trace took place.
#
# </details>

# %% [markdown]
# (In the notebook: your answer length-audit)

# %% [markdown]
# ## In your own words · Why not make the vector static? (4 points)
#
# A colleague writes the absolute value of exercise 2 with a Python loop and an `if` for each element. It fails under
# `jit`, and the colleague proposes `static_argnums=0`, so that "Python can see the numbers". Explain in five to eight
# sentences why that is the wrong repair for a vector of data. Say what happens to the first call, what would happen if
# the vector were passed as a tuple, what information the program really needs while it is traced, and when a static
# argument *is* the right tool. This answer is read by a person.

# %% [markdown]
# (In the notebook: your answer why-not-static)

# %% [markdown]
# ## Diagnose the result
#
# | what you meet | look here first | usual repair |
# |---|---|---|
# | `TracerBoolConversionError` | the truth test in the traceback: `if`, `while`, `and`, `assert`, `min`, `max` | `lax.cond`, `jnp.where`, or a static argument if it selects a program |
# | a static argument that is not hashable | is it a setting at all, or data? | pass data as arrays, settings as texts, integers, tuples |
# | a trace in every call | is the function defined or wrapped anew each time? then shapes, dtypes, static values | define once, outside the loop; fixed shapes; numbers as arrays |
# | a printed line that is missing | was it Python's line, from tracing? | `jax.debug.print` for runs; the log of `JAX_LOG_COMPILES=1` or a profile for compilations |
# | a plausible result for an impossible mode | the end of the function | a `ValueError` instead of a default |
# | one side right, the other never seen | your own trials | call both sides, and the boundary between them |
#
# A clock is no evidence here. A slow call may have been traced, compiled, queued or merely unlucky.

# %% [markdown]
# ## Carry forward
#
# - Python runs while the program is written; the arrays do the rest.
# - Settings may be static, numbers should not be, and a shape is known without being passed.
# - A decision about data is made by the program, between sides of the same shape and dtype.
# - Traces, results and times are three observations. None of them stands in for another.
#
# The next lessons put random keys, trees of parameters, loops and branches into a function's arguments and results. The
# question stays: is Python building the program here, or is the program choosing by its data?

# %% [markdown]
# ## Your evidence
#
# The last cell gathers what you predicted, observed and answered into one dictionary of plain values. It also works
# when something is missing, and then says so. Your written answer stays in its cell.

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


def tried(function, *arguments, **named):
    """What a function returned, or the name of its error; None while there is no function."""
    if function is None:
        return None
    try:
        return plain(function(*arguments, **named))
    except Exception as error:
        return type(error).__name__


def answered(*names):
    """What you put into these names, None where there is nothing yet."""
    return {name: plain(globals().get(name)) for name in names}


evidence_vectors = (jnp.array([1.0, 2.0, 3.0]), jnp.array([-4.0, -1.0, -2.0]))
evidence = {
    "lesson": "transforms-05",
    "made with": {"python": platform.python_version(), "jax": jax.__version__, "device": jax.devices()[0].device_kind},
    "predictions": answered("predicted_ratio", "predicted_traced"),
    "observations": {
        "figure": plain(globals().get("figure_data")),
        "steps of sum_squares": plain(globals().get("program_steps")),
        "ledger": plain(globals().get("ledger")),
        "python branch refused as": plain(globals().get("refused_as")),
        "repaired branch at -2 and 3": plain(globals().get("branch_results")),
        "choose": {
            mode: [tried(globals().get("choose"), vector, mode=mode) for vector in evidence_vectors]
            for mode in ("sum", "mean", "max", "typo")
        },
        "compiled_absolute": [tried(globals().get("compiled_absolute"), vector) for vector in evidence_vectors],
        "audit_rows": plain(globals().get("audit_rows")),
    },
    "answers": answered(
        "stays",
        "missing_line",
        "causes",
        "traced_again",
        "traces_needed",
        "traces_static_gain",
        "traces_array_gain",
        "refused",
        "may_be_static",
        "belongs",
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
