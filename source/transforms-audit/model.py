"""The transforms audit: one score, computed in several ways, and checks that tell the ways apart.

This is the file you work in. Every function says what it must return; replace the line that raises NotImplementedError.
transforms-audit.ipynb looks at single stages, `python audit.py` runs all four and can keep the evidence.

The score of a number x under a weight asks how far weight * x misses 1. Near the target it is a parabola, farther away a
straight line, so that one wild x cannot outweigh all the others:

    miss  = weight * x - 1
    score = miss**2 / 2       if |miss| is at most 1
            |miss| - 1/2      otherwise
"""

import jax
import jax.numpy as jnp
import numpy as np

# --- Stage 1: independent calculations ------------------------------------------------------------------------------


def scalar_score(weight, x):
    """The score of one number, as a scalar.

    weight and x are scalars: float32 arrays of shape (), or Python floats. jit, vmap and grad will be applied to this
    function, so which of the two formulas holds is decided by the program.
    """
    # TODO: the miss, both formulas, and a choice that needs no Python `if`
    ### BEGIN SOLUTION
    miss = jnp.abs(weight * x - 1.0)
    return jax.lax.cond(miss <= 1.0, lambda near: near**2 / 2.0, lambda far: far - 0.5, miss)
    ### END SOLUTION


def scores_by_loop(weight, xs):
    """The scores of all xs as a list of Python floats.

    Plain arithmetic on Python floats in a loop. It calls neither JAX nor another function of this file, since it is there
    to be compared with them.
    """
    # TODO: loop over xs, convert with float(), and let a Python `if` choose
    ### BEGIN SOLUTION
    scores = []
    for x in xs:
        miss = abs(float(weight) * float(x) - 1.0)
        scores.append(miss**2 / 2.0 if miss <= 1.0 else miss - 0.5)
    return scores
    ### END SOLUTION


def slopes_by_hand(weight, xs):
    """For every x the derivative of its score with respect to weight, as a list of Python floats.

    From a formula that you derived on paper; like scores_by_loop it depends on nothing else.
    """
    # TODO: differentiate both formulas by weight, then loop
    ### BEGIN SOLUTION
    slopes = []
    for x in xs:
        miss = float(weight) * float(x) - 1.0
        slopes.append(float(x) * max(-1.0, min(1.0, miss)))
    return slopes
    ### END SOLUTION


def batch_scores(weight, xs):
    """The scores of a vector xs under one weight: scalar_score, mapped over xs. The result has the shape of xs."""
    # TODO: jax.vmap, with in_axes that say which argument has a row for each example
    ### BEGIN SOLUTION
    return jax.vmap(scalar_score, in_axes=(None, 0))(weight, xs)
    ### END SOLUTION


@jax.jit
def batch_slopes(weight, xs):
    """For every x the derivative of its score with respect to weight, by JAX: compiled, mapped and differentiated.

    The result has the shape of xs: one slope for each example, not their sum. Leave the decorator where it is.
    """
    # TODO: compose jax.vmap and jax.grad
    ### BEGIN SOLUTION
    return jax.vmap(jax.grad(scalar_score), in_axes=(None, 0))(weight, xs)
    ### END SOLUTION


# --- Stage 2: what a changed condition does --------------------------------------------------------------------------


def trace_ledger(function, batches):
    """Send every batch through ONE compiled form of function, in order, and write down what was seen.

    function takes one array. The result is a list with a dictionary for each batch:

        shape        the shape of the batch, as a list
        dtype        the dtype of the batch, as a text
        trace_delta  how often Python ran the compiled body during this call: observed, an int

    Every ledger starts afresh: the first row shows a trace, whatever was done with function before.
    """
    # TODO: inside, define a jitted function that leaves a note and calls `function`; count notes around each call
    ### BEGIN SOLUTION
    notes = []

    @jax.jit
    def noted(batch):
        notes.append(batch.shape)
        return function(batch)

    rows = []
    for batch in batches:
        before = len(notes)
        noted(batch)
        rows.append({"shape": list(batch.shape), "dtype": str(batch.dtype), "trace_delta": len(notes) - before})
    return rows
    ### END SOLUTION


def causes(rows):
    """Say for every row of a ledger what it brought that no earlier row had, as a list of texts.

        first call           there is no earlier row
        seen before          an earlier row has this shape together with this dtype
        new shape            no earlier row has this shape, but one has this dtype
        new dtype            no earlier row has this dtype, but one has this shape
        new shape and dtype  no earlier row has either
        new combination      earlier rows have both, but none has them together
    """
    # TODO: for each row look at ALL rows before it, not only at the last
    ### BEGIN SOLUTION
    found = []
    for place, row in enumerate(rows):
        earlier = rows[:place]
        shape_known = any(one["shape"] == row["shape"] for one in earlier)
        dtype_known = any(one["dtype"] == row["dtype"] for one in earlier)
        if not earlier:
            found.append("first call")
        elif any(one["shape"] == row["shape"] and one["dtype"] == row["dtype"] for one in earlier):
            found.append("seen before")
        elif shape_known and dtype_known:
            found.append("new combination")
        elif dtype_known:
            found.append("new shape")
        elif shape_known:
            found.append("new dtype")
        else:
            found.append("new shape and dtype")
    return found
    ### END SOLUTION


# --- Stage 3: evidence that can be kept ------------------------------------------------------------------------------


def evidence_row(name, independent, observed):
    """Compare an independent calculation with what JAX gave, as a dictionary of plain values.

    independent is a list of floats, observed a list or an array. The result has four entries, which json.dumps accepts:

        name                the given text
        length              how many values independent has, an int
        largest_difference  the largest |independent - observed|, computed in float64, a float; None where the shapes
                            differ, where there is nothing to compare, or where it is not a finite number
        agrees              a bool: the shapes are the same, there is at least one value, and everywhere
                            |independent - observed| <= 1e-5 + 1e-5 * |independent|; NaN agrees with nothing
    """
    # TODO: compare shapes first, since NumPy would broadcast; then the values; convert what you return
    ### BEGIN SOLUTION
    left = np.asarray(independent, dtype=np.float64)
    right = np.asarray(observed, dtype=np.float64)
    if left.shape != right.shape or left.size == 0:
        return {"name": name, "length": len(left), "largest_difference": None, "agrees": False}
    gaps = np.abs(left - right)
    largest = float(gaps.max())
    return {
        "name": name,
        "length": len(left),
        "largest_difference": largest if np.isfinite(largest) else None,
        "agrees": bool(np.all(gaps <= 1e-5 + 1e-5 * np.abs(left))),
    }
    ### END SOLUTION


# --- Stage 4: integrated checks --------------------------------------------------------------------------------------


def integrated_checks(parts):
    """Check the five functions of stage 1 against each other, as a dictionary of five bools.

    parts maps the names scalar_score, scores_by_loop, slopes_by_hand, batch_scores and batch_slopes to functions; take
    them from there, since broken ones will be put in. Choose five numbers, and then eight, whose misses are small, far
    below -1 and far above 1.

        scalar         scalar_score, one number after the other, agrees with scores_by_loop on the five numbers
        vmap           batch_scores agrees with scores_by_loop on them
        autodiff       batch_slopes agrees with slopes_by_hand on them
        jit            jax.jit(batch_scores) agrees with batch_scores on them
        changed shape  batch_scores and batch_slopes agree with the independent calculations on the eight numbers

    Agreeing means the same shape and values within 1e-4. A part that raises an error agrees with nothing: the check is
    then False, and the others are still made.
    """
    # TODO: one helper that compares two calculations and catches their errors, then five lines
    ### BEGIN SOLUTION
    weight = 0.5
    five, eight = (jnp.linspace(-6.0, 9.0, count) for count in (5, 8))

    def agree(one, other):
        try:
            left, right = np.asarray(one()), np.asarray(other())
        except Exception:
            return False
        return left.shape == right.shape and bool(np.all(np.abs(left - right) <= 1e-4))

    def loop(xs):
        return lambda: parts["scores_by_loop"](weight, xs)

    def scores(xs):
        return lambda: parts["batch_scores"](weight, xs)

    def slopes(xs):
        return lambda: parts["batch_slopes"](weight, xs)

    def hand(xs):
        return lambda: parts["slopes_by_hand"](weight, xs)

    return {
        "scalar": agree(lambda: [parts["scalar_score"](weight, x) for x in five], loop(five)),
        "vmap": agree(scores(five), loop(five)),
        "autodiff": agree(slopes(five), hand(five)),
        "jit": agree(lambda: jax.jit(parts["batch_scores"])(weight, five), scores(five)),
        "changed shape": agree(scores(eight), loop(eight)) and agree(slopes(eight), hand(eight)),
    }
    ### END SOLUTION
