"""Exercises of chapter 01: shapes. Broadcasting, masks, picking, products, and splitting heads.

Masks are True where something counts: a real token, a key that may be seen.
"""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch01_broadcasting import (
    AS_COLUMN,
    BROADCAST_SHAPE,
    NORMALISE_ROWS,
    OUTER_DIFFERENCE,
)
from autograder.exercises._ch01_heads import MERGE_HEADS, SPLIT_HEADS
from autograder.exercises._ch01_masks import CAUSAL_MASK, MASKED_MEAN, PADDING_MASK

# --- pick_per_row --------------------------------------------------------------------------------


def _indices(rng, count, *shape):
    """Draw indices below `count`, the first and the last among them, not all in order."""
    flat = rng.integers(count, size=int(np.prod(shape)))
    flat[: min(2, flat.size)] = (count - 1, 0)[: flat.size]
    return flat.reshape(shape)


def pick_per_row_cases(rng):
    """Wide and high matrices, a square one, one row, and two and three leading axes."""
    s = draw_sizes(rng, "first", "second", "third", "entries", among=(2, 3, 5, 6))
    few, many, side = 3, int(rng.choice((5, 6, 7))), int(rng.choice((5, 6)))
    for group, shape, about in (
        ("matrix", (few, many), "a matrix, fewer rows than columns"),
        ("matrix", (many, few), "a matrix, more rows than columns"),
        ("matrix", (side, side), "a square matrix"),
        ("matrix", (1, many), "a single row"),
        ("axes", (s.first, s.second, s.entries), "three axes: a batch of matrices"),
        ("axes", (s.first, s.second, s.third, s.entries), "four axes"),
    ):
        indices = _indices(rng, shape[-1], *shape[:-1])
        yield Case(group, {"rows": rng.normal(size=shape), "indices": indices}, about)


def pick_per_row_reference(rows, indices):
    """One row at a time."""
    result = np.empty(indices.shape)
    for place in np.ndindex(indices.shape):
        result[place] = rows[place][int(indices[place])]
    return result


def every_index_in_every_row(rows, indices):
    """A colon takes all rows for each index."""
    return rows[..., indices]


def whole_rows_picked(rows, indices):
    """Indexes the first axis."""
    return rows[indices]


def rows_and_columns_exchanged(rows, indices):
    """Column i at row indices[i]."""
    return rows[indices, np.arange(len(indices))]


def index_into_the_flat_array(rows, indices):
    """Forgets where each row begins."""
    return rows.ravel()[indices]


def counted_from_one(rows, indices):
    """One entry too early."""
    return np.take_along_axis(rows, indices[..., None] - 1, axis=-1)[..., 0]


def only_for_a_matrix(rows, indices):
    """Counts the first axis only."""
    return rows[np.arange(len(rows)), indices]


def picked_axis_left_over(rows, indices):
    """take_along_axis keeps an axis of length 1."""
    return np.take_along_axis(rows, indices[..., None], axis=-1)


def first_index_for_all(rows, indices):
    """The same column in every row."""
    return rows[..., indices.flat[0]]


def largest_entry(rows, indices):
    """Ignores the indices."""
    return rows.max(axis=-1)


def picked_entries_kept_in_place(rows, indices):
    """Multiplies by a one-hot array and forgets to sum."""
    return rows * (np.arange(rows.shape[-1]) == indices[..., None])


def picked_by_one_hot(rows, indices):
    """Right: one-hot weights, then a sum."""
    return (rows * np.eye(rows.shape[-1])[indices]).sum(axis=-1)


def picked_along_axis(rows, indices):
    """Right: take_along_axis without the axis of length 1."""
    return np.take_along_axis(rows, indices[..., None], axis=-1).squeeze(axis=-1)


def picked_from_flat(rows, indices):
    """Right: the flat index knows where each row begins."""
    starts = np.arange(indices.size).reshape(indices.shape) * rows.shape[-1]
    return rows.ravel()[starts + indices]


def picked_by_fancy_index(rows, indices):
    """Right: one index array per axis."""
    return rows[(*np.indices(indices.shape), indices)]


def picked_by_comprehension(rows, indices):
    """Right: Python picks."""
    flat = rows.reshape(-1, rows.shape[-1])
    picked = [row[i] for row, i in zip(flat, indices.ravel(), strict=True)]
    return np.array(picked).reshape(indices.shape)


PICK_PER_ROW = Exercise(
    id="pick_per_row",
    title="One entry of every row",
    asks="From every row (the last axis) pick the entry that its own index names.",
    parameters=("rows", "indices"),
    groups={
        "matrix": Group(1, "one entry of every row of a matrix"),
        "axes": Group(1, "more leading axes"),
    },
    cases=pick_per_row_cases,
    reference=pick_per_row_reference,
    misconceptions=(
        Misconception(
            every_index_in_every_row,
            "A `:` or `...` for the rows takes every index in every row, so there is an axis "
            "too many.",
            "Rows need an index array of their own, which pairs up with `indices`.",
        ),
        Misconception(
            whole_rows_picked,
            "The indices are used on the first axis, so they pick whole rows.",
            "The indices belong to the last axis.",
        ),
        Misconception(
            rows_and_columns_exchanged,
            "Rows and columns are exchanged in the index.",
            "The first place in the square brackets belongs to the first axis.",
        ),
        Misconception(
            index_into_the_flat_array,
            "The array was flattened, so all entries come from its first row.",
            "Where in the flat array does row i begin?",
        ),
        Misconception(
            counted_from_one,
            "Every pick is one entry too early: indices count from 0.",
            "Index 0 is the first entry.",
        ),
        Misconception(
            only_for_a_matrix,
            "Only the first axis has its index array, so this works for a matrix alone.",
            "With three axes there are two leading ones: each needs an index array, or use a "
            "function that works along the last axis.",
        ),
        Misconception(
            picked_axis_left_over,
            "The picked axis is still there with length 1.",
            "Compare the shape of your result with the shape of `indices`.",
        ),
        Misconception(
            first_index_for_all,
            "The same column is taken from every row.",
            "Every row has an index of its own.",
        ),
        Misconception(
            largest_entry,
            "The largest entry of each row is returned; the indices are not used.",
            "Use `indices`.",
        ),
        Misconception(
            picked_entries_kept_in_place,
            "All other entries are set to 0, but the axis is still there.",
            "Only one entry of each row is not 0: how do you get rid of the others?",
        ),
    ),
    accepted=(
        picked_by_one_hot,
        picked_along_axis,
        picked_from_flat,
        picked_by_fancy_index,
        picked_by_comprehension,
    ),
    equivalent_mutants={
        "`np.take_along_axis(rows, indices[..., None], axis=-1)[..., 0]` → "
        "`np.take_along_axis(rows, indices[..., None], axis=-1)[..., -1]`": (
            "the axis that is taken from has length 1"
        ),
    },
)

# --- pairwise_scores -----------------------------------------------------------------------------


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

EXERCISES = [
    AS_COLUMN,
    OUTER_DIFFERENCE,
    NORMALISE_ROWS,
    BROADCAST_SHAPE,
    PADDING_MASK,
    MASKED_MEAN,
    CAUSAL_MASK,
    PICK_PER_ROW,
    PAIRWISE_SCORES,
    SPLIT_HEADS,
    MERGE_HEADS,
]
