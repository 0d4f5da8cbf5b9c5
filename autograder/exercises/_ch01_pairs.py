"""Chapter 01: every query with every key."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def pairwise_scores_cases(rng):
    """Matrices, equally many queries and keys, then one and two leading axes."""
    s = draw_sizes(rng, "batch", "heads", among=(2, 3))
    t = draw_sizes(rng, "queries", "keys", "width", among=(5, 6, 7, 8))
    for group, leading, queries, keys, about in (
        ("matrix", (), t.queries, t.keys, "two matrices"),
        ("matrix", (), t.keys, t.keys, "as many queries as keys"),
        ("axes", (s.batch,), t.queries, t.keys, "a batch axis"),
        ("axes", (s.batch, s.heads), t.queries, t.keys, "a batch axis and a head axis"),
        ("axes", (1,), 1, t.keys, "a batch of one with one query"),
    ):
        inputs = {
            "queries": rng.normal(size=(*leading, queries, t.width)),
            "keys": rng.normal(size=(*leading, keys, t.width)),
        }
        yield Case(group, inputs, about)


def pairwise_scores_reference(queries, keys):
    """Every score is one sum in Python."""
    result = np.empty((*queries.shape[:-1], keys.shape[-2]))
    for place in np.ndindex(result.shape):
        query, key = queries[place[:-1]], keys[(*place[:-2], place[-1])]
        result[place] = sum(a * b for a, b in zip(query.tolist(), key.tolist(), strict=True))
    return result


def all_axes_reversed(queries, keys):
    """.T reverses the leading axes too."""
    return queries @ keys.T


def first_two_axes_swapped(queries, keys):
    """Swaps axes 0 and 1, which are the last two only of a matrix."""
    return queries @ np.swapaxes(keys, 0, 1)


def keys_by_queries(queries, keys):
    """K·Qᵀ: one row per key."""
    return keys @ np.swapaxes(queries, -1, -2)


def keys_not_transposed(queries, keys):
    """The inner lengths don't fit."""
    return queries @ keys


def keys_reshaped(queries, keys):
    """Right shape, scrambled numbers."""
    return queries @ keys.reshape(*keys.shape[:-2], keys.shape[-1], keys.shape[-2])


def scores_scaled(queries, keys):
    """Divides by √d_k, which comes in the next chapter."""
    return queries @ np.swapaxes(keys, -1, -2) / np.sqrt(queries.shape[-1])


def every_batch_with_every_batch(queries, keys):
    """np.dot pairs all leading axes with each other."""
    return np.dot(queries, np.swapaxes(keys, -1, -2))


def products_not_summed(queries, keys):
    """Leaves the axis of the width."""
    return queries[..., :, None, :] * keys[..., None, :, :]


def scores_one_to_one(queries, keys):
    """Only query i with key i."""
    return (queries * keys).sum(axis=-1)


def cosines(queries, keys):
    """Divides by both lengths."""
    queries = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    return queries @ np.swapaxes(keys, -1, -2)


def sums_multiplied(queries, keys):
    """Sums the features first: einsum with two different letters."""
    return np.einsum("...qd,...ke->...qk", queries, keys)


def distances(queries, keys):
    """Squared distances for products."""
    return ((queries[..., :, None, :] - keys[..., None, :, :]) ** 2).sum(axis=-1)


def only_three_axes(queries, keys):
    """einsum with a fixed letter for one leading axis."""
    return np.einsum("bqd,bkd->bqk", queries, keys)


def scores_by_matmul(queries, keys):
    """Right: the last two axes of the keys are exchanged."""
    return queries @ np.swapaxes(keys, -1, -2)


def scores_by_einsum(queries, keys):
    """Right: one repeated letter is summed."""
    return np.einsum("...qd,...kd->...qk", queries, keys)


def scores_by_broadcasting(queries, keys):
    """Right: all products, then a sum."""
    return (queries[..., :, None, :] * keys[..., None, :, :]).sum(axis=-1)


def scores_by_loop(queries, keys):
    """Right: one matrix product for each place of the leading axes."""
    result = np.empty((*queries.shape[:-1], keys.shape[-2]))
    for place in np.ndindex(queries.shape[:-2]):
        result[place] = queries[place] @ keys[place].T
    return result


def scores_from_the_other_side(queries, keys):
    """Right: K·Qᵀ, transposed at the end."""
    return np.swapaxes(keys @ np.moveaxis(queries, -1, -2), -1, -2)


_WHICH_TRANSPOSE = (
    "Only the last two axes change places. `np.swapaxes` takes negative axes; einsum needs none."
)

PAIRWISE_SCORES = Exercise(
    id="pairwise_scores",
    title="Every query with every key",
    asks="Take the dot product of every query with every key, for any leading axes.",
    parameters=("queries", "keys"),
    groups={
        "matrix": Group(1, "dot products of two matrices"),
        "axes": Group(1, "leading axes"),
    },
    cases=pairwise_scores_cases,
    reference=pairwise_scores_reference,
    misconceptions=(
        Misconception(
            all_axes_reversed,
            "`.T` reverses all axes, so the batch axis of the keys ends up last.",
            _WHICH_TRANSPOSE,
        ),
        Misconception(
            first_two_axes_swapped,
            "Axes 0 and 1 are exchanged: those are the last two only if there are no others.",
            _WHICH_TRANSPOSE,
        ),
        Misconception(
            keys_by_queries,
            "Queries and keys are exchanged: there is one row for each key.",
            "The row belongs to the query, the column to the key.",
        ),
        Misconception(
            keys_not_transposed,
            "Without a transpose the inner lengths of the product don't fit.",
            "Write the two shapes side by side: in a matrix product the inner lengths must agree.",
        ),
        Misconception(
            keys_reshaped,
            "The keys were reshaped and not transposed: the shape is right, the numbers are "
            "scrambled.",
            "Reshape keeps the order of numbers in memory, transpose exchanges axes.",
        ),
        Misconception(
            scores_scaled,
            "The scores are divided by √d; here the plain dot product is asked for.",
            "Scaling comes in the next chapter.",
        ),
        Misconception(
            every_batch_with_every_batch,
            "`np.dot` pairs every batch entry with every other one, which makes extra axes.",
            "`@` works batch entry by batch entry.",
        ),
        Misconception(
            products_not_summed,
            "The products are there, but they are not summed over the width.",
            "Which axis does not occur in the result?",
        ),
        Misconception(
            scores_one_to_one,
            "Query i only meets key i; every query must meet every key.",
            "The result needs an axis of queries and an axis of keys.",
        ),
        Misconception(
            cosines,
            "The vectors are divided by their lengths; here the plain dot product is asked for.",
            "Leave out the division.",
        ),
        Misconception(
            sums_multiplied,
            "Each vector is summed by itself before they are multiplied.",
            "In einsum, the axis to be summed over must have the same letter in both.",
        ),
        Misconception(
            distances,
            "These are squared distances; the dot product is asked for.",
            "Multiply, then sum.",
        ),
        Misconception(
            only_three_axes,
            "This works with exactly one leading axis; there may be none, or two.",
            "In einsum, `...` stands for any number of axes.",
        ),
    ),
    accepted=(
        scores_by_matmul,
        scores_by_einsum,
        scores_by_broadcasting,
        scores_by_loop,
        scores_from_the_other_side,
    ),
)
