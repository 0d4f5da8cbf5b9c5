"""Chapter 01: a column, and all differences."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- as_column ------------------------------------------------------------------------------------


def as_column_cases(rng):
    """Two lengths, then a vector of one number."""
    s = draw_sizes(rng, "short", "long")
    yield Case("column", {"vector": rng.normal(size=s.short)}, "a vector")
    yield Case("column", {"vector": rng.normal(size=s.long)}, "a vector of another length")
    yield Case("column", {"vector": rng.normal(size=1)}, "a vector of one number")


def as_column_reference(vector):
    """One row for each number."""
    return np.array([[number] for number in vector])


def transpose_of_a_vector(vector):
    """A vector has one axis, so .T changes nothing."""
    return vector.T


def row_for_column(vector):
    """Puts the new axis in front: one row."""
    return vector[None, :]


def square_of_copies(vector):
    """Repeats the vector until the result is square."""
    return np.tile(vector[:, None], (1, len(vector)))


def one_axis_too_many(vector):
    """Adds two axes."""
    return vector[:, None, None]


def list_of_lists(vector):
    """Right numbers in a Python list."""
    return [[float(number)] for number in vector]


def column_by_reshape(vector):
    """Right: reshape with a free length."""
    return vector.reshape(-1, 1)


def column_by_expand_dims(vector):
    """Right: expand_dims."""
    return np.expand_dims(vector, axis=1)


def column_by_transposing_a_row(vector):
    """Right: a row with two axes can be transposed."""
    return np.atleast_2d(vector).T


AS_COLUMN = Exercise(
    id="as_column",
    title="A vector as a column",
    asks="Turn a vector of n numbers into a column, an array of shape (n, 1).",
    parameters=("vector",),
    groups={"column": Group(1, "the column's shape and numbers")},
    cases=as_column_cases,
    reference=as_column_reference,
    misconceptions=(
        Misconception(
            transpose_of_a_vector,
            "The result still has one axis. Transposing reverses the order of the axes, and a "
            "vector has only one.",
            "You need a second axis before anything can be turned: look at `None` in an index.",
        ),
        Misconception(
            row_for_column,
            "The new axis is in front, so this is one row, (1, n), and not a column, (n, 1).",
            "Axes are listed from the left. On which side of the old axis does the new one go?",
        ),
        Misconception(
            square_of_copies,
            "The numbers are copied along the second axis; a column has length 1 there.",
            "Add an axis without copying: NumPy stretches an axis of length 1 when it has to.",
        ),
        Misconception(
            one_axis_too_many,
            "Two axes were added; a column has one axis more than the vector.",
            "Count the `None`s in your index.",
        ),
        Misconception(
            list_of_lists,
            "The numbers are right, but a Python list has no shape and does not broadcast.",
            "Index the array itself, or wrap the list in `np.array(...)`.",
        ),
    ),
    accepted=(column_by_reshape, column_by_expand_dims, column_by_transposing_a_row),
)


# --- outer_difference -----------------------------------------------------------------------------


def outer_difference_cases(rng):
    """More keys, more queries, equally many, and a single key."""
    s = draw_sizes(rng, "few", "many")
    few, many = sorted((s.few, s.many))
    for queries, keys, about in (
        (few, many, "fewer queries than keys"),
        (many, few, "more queries than keys"),
        (many, many, "as many queries as keys"),
        (many, 1, "a single key"),
    ):
        inputs = {"queries": rng.normal(size=queries), "keys": rng.normal(size=keys)}
        yield Case("differences", inputs, about)


def outer_difference_reference(queries, keys):
    """Two loops."""
    result = np.empty((len(queries), len(keys)))
    for i, query in enumerate(queries):
        for j, key in enumerate(keys):
            result[i, j] = query - key
    return result


def key_minus_query(queries, keys):
    """The sign is turned round."""
    return keys[None, :] - queries[:, None]


def keys_along_the_rows(queries, keys):
    """One row per key."""
    return queries[None, :] - keys[:, None]


def keys_along_the_rows_and_sign_turned(queries, keys):
    """Both: one row per key, and key minus query."""
    return keys[:, None] - queries[None, :]


def pairs_one_to_one(queries, keys):
    """No new axis: first with first, second with second."""
    return queries - keys


def distance_for_difference(queries, keys):
    """Loses the sign."""
    return np.abs(queries[:, None] - keys[None, :])


def product_for_difference(queries, keys):
    """Multiplies each pair."""
    return np.outer(queries, keys)


def sum_for_difference(queries, keys):
    """Adds each pair."""
    return queries[:, None] + keys[None, :]


def difference_flattened(queries, keys):
    """All pairs, in one long vector."""
    return (queries[:, None] - keys[None, :]).ravel()


def outer_by_ufunc(queries, keys):
    """Right: NumPy's own outer form of subtraction."""
    return np.subtract.outer(queries, keys)


def outer_by_repeat(queries, keys):
    """Right: copies both until their shapes agree."""
    rows = np.repeat(queries, len(keys)).reshape(len(queries), len(keys))
    return rows - np.tile(keys, (len(queries), 1))


def outer_row_by_row(queries, keys):
    """Right: one row at a time."""
    return np.stack([query - keys for query in queries])


def outer_by_products(queries, keys):
    """Right: two outer products with ones."""
    return np.outer(queries, np.ones(len(keys))) - np.outer(np.ones(len(queries)), keys)


OUTER_DIFFERENCE = Exercise(
    id="outer_difference",
    title="All pairwise differences",
    asks="Subtract every key from every query: one row for each query, one column for each key.",
    parameters=("queries", "keys"),
    groups={"differences": Group(1, "all differences of queries and keys")},
    cases=outer_difference_cases,
    reference=outer_difference_reference,
    misconceptions=(
        Misconception(
            key_minus_query,
            "The sign is turned round: this is key minus query.",
            "Check entry [0, 0] by hand: the first query minus the first key.",
        ),
        Misconception(
            keys_along_the_rows,
            "Rows and columns are exchanged: there is one row for each key.",
            "Which of the two vectors must become the column, of shape (n, 1)?",
        ),
        Misconception(
            keys_along_the_rows_and_sign_turned,
            "The roles are exchanged: this is every key minus every query, one row for each key.",
            "Result[i, j] belongs to query i and key j, in this order.",
        ),
        Misconception(
            pairs_one_to_one,
            "Neither vector got a new axis, so they are paired one to one, or they don't fit.",
            "Write the two shapes under each other: the queries need an axis of length 1 to "
            "stretch along the keys.",
        ),
        Misconception(
            distance_for_difference,
            "The absolute value was taken; the sign of the difference is asked for too.",
            "Leave the difference as it is.",
        ),
        Misconception(
            product_for_difference,
            "Each pair is multiplied; the difference is asked for.",
            "The shapes are right: look at the operation.",
        ),
        Misconception(
            sum_for_difference,
            "Each pair is added; the difference is asked for.",
            "The shapes are right: look at the operation.",
        ),
        Misconception(
            difference_flattened,
            "All differences are there, but in one long vector.",
            "Keep the two axes that broadcasting made.",
        ),
    ),
    accepted=(outer_by_ufunc, outer_by_repeat, outer_row_by_row, outer_by_products),
)
