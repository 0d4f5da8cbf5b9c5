"""Chapter 01: one entry of every row."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


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
