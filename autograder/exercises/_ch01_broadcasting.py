"""Broadcasting: a column, all differences, normalised rows and the rule itself."""

from __future__ import annotations

import itertools
import math

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- as_column -----------------------------------------------------------------------------------


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

# --- outer_difference ----------------------------------------------------------------------------


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

# --- normalise_rows ------------------------------------------------------------------------------


def _with_positive_sums(rng, *shape):
    """Draw an array whose rows have one negative entry each and a positive sum."""
    matrix = rng.uniform(0.5, 2.0, size=shape)
    matrix[..., 0] *= -0.2
    return rng.permuted(matrix, axis=-1)


def normalise_rows_cases(rng):
    """A matrix, a square one, and zero, two and three leading axes."""
    s = draw_sizes(rng, "first", "second", "rows", "columns", among=(2, 3, 5, 6))
    rows, columns, side = s.rows, s.columns, int(rng.choice((3, 5, 6)))
    matrix = _with_positive_sums(rng, rows, columns)
    yield Case("matrix", {"matrix": matrix}, "a matrix")
    square = _with_positive_sums(rng, side, side)
    yield Case("matrix", {"matrix": square}, "a square matrix, where a wrong axis raises no error")
    three = _with_positive_sums(rng, s.first, rows, columns)
    yield Case("axes", {"matrix": three}, "three axes: a batch of matrices")
    four = _with_positive_sums(rng, s.first, s.second, rows, columns)
    yield Case("axes", {"matrix": four}, "four axes")
    cube = _with_positive_sums(rng, side, side, side)
    yield Case("axes", {"matrix": cube}, "three axes of one length")
    yield Case("axes", {"matrix": _with_positive_sums(rng, columns)}, "a vector: one row")


def normalise_rows_reference(matrix):
    """One row at a time, summed without rounding."""
    result = np.empty(matrix.shape)
    for index in np.ndindex(matrix.shape[:-1]):
        total = math.fsum(matrix[index])
        result[index] = [number / total for number in matrix[index]]
    return result


def keepdims_forgotten(matrix):
    """The sums lose the axis that the division needs."""
    return matrix / matrix.sum(axis=-1)


def first_axis_summed(matrix):
    """Sums down the columns."""
    return matrix / matrix.sum(axis=0, keepdims=True)


def all_entries_summed(matrix):
    """Divides by the sum of everything."""
    return matrix / matrix.sum()


def second_axis_summed(matrix):
    """Axis 1 is the last one only of a matrix."""
    return matrix / matrix.sum(axis=1, keepdims=True)


def new_axis_in_second_place(matrix):
    """Puts the lost axis back in second place, where it was only in a matrix."""
    return matrix / matrix.sum(axis=-1)[:, None]


def last_two_axes_summed(matrix):
    """Sums whole matrices."""
    return matrix / matrix.sum(axis=(-2, -1), keepdims=True)


def normalised_in_place(matrix):
    """Right numbers, written over the caller's array."""
    matrix /= matrix.sum(axis=-1, keepdims=True)
    return matrix


def divided_by_the_length(matrix):
    """Divides by the Euclidean length of each row."""
    return matrix / np.sqrt((matrix**2).sum(axis=-1, keepdims=True))


def divided_by_absolute_sums(matrix):
    """Sums absolute values."""
    return matrix / np.abs(matrix).sum(axis=-1, keepdims=True)


def divided_by_the_maximum(matrix):
    """The largest entry becomes 1, not the sum."""
    return matrix / matrix.max(axis=-1, keepdims=True)


def divided_by_the_mean(matrix):
    """The mean becomes 1, not the sum."""
    return matrix / matrix.mean(axis=-1, keepdims=True)


def softmax_for_division(matrix):
    """Exponentials where only a division is asked."""
    powers = np.exp(matrix)
    return powers / powers.sum(axis=-1, keepdims=True)


def normalised_with_none(matrix):
    """Right: puts the axis back by hand."""
    return matrix / matrix.sum(axis=-1)[..., None]


def normalised_with_einsum(matrix):
    """Right: multiplies each row by the inverse of its sum."""
    return np.einsum("...c,...->...c", matrix, 1 / np.einsum("...c->...", matrix))


def normalised_row_by_row(matrix):
    """Right: applies one function along the last axis."""
    return np.apply_along_axis(lambda row: row / row.sum(), -1, matrix)


def normalised_by_product_with_ones(matrix):
    """Right: a product with a square of ones gives every entry its row's sum."""
    columns = matrix.shape[-1]
    return matrix / (matrix @ np.ones((columns, columns)))


def normalised_transposed(matrix):
    """Right: with all axes reversed, the sums line up by themselves."""
    return (matrix.T / matrix.T.sum(axis=0)).T


NORMALISE_ROWS = Exercise(
    id="normalise_rows",
    title="Rows that sum to 1",
    asks="Divide every row (the last axis) by its sum, for any number of leading axes.",
    parameters=("matrix",),
    groups={
        "matrix": Group(1, "rows of a matrix"),
        "axes": Group(1, "any number of leading axes"),
    },
    cases=normalise_rows_cases,
    reference=normalise_rows_reference,
    misconceptions=(
        Misconception(
            keepdims_forgotten,
            "The sums have lost the last axis, so they line up with the columns: an error, or, "
            "if the matrix is square, the sum of another row.",
            "Print the shape of the sums under the shape of the matrix, aligned on the right.",
        ),
        Misconception(
            first_axis_summed,
            "The sums run along the first axis, so columns sum to 1 and not rows.",
            "`axis` names the axis that disappears in the sum. Which one is that?",
        ),
        Misconception(
            all_entries_summed,
            "Everything is divided by one number, the sum of the whole array.",
            "There must be as many sums as there are rows.",
        ),
        Misconception(
            second_axis_summed,
            "Axis 1 is the last axis of a matrix only: with more or fewer axes it is another one.",
            "Count axes from the right: they then keep their meaning whatever stands in front.",
        ),
        Misconception(
            new_axis_in_second_place,
            "The lost axis is put back in second place, and that is its place in a matrix only.",
            "Find a way to keep the axis that does not count from the left.",
        ),
        Misconception(
            last_two_axes_summed,
            "Two axes are summed away, so whole matrices sum to 1 and not rows.",
            "A row is one axis: the last.",
        ),
        Misconception(
            normalised_in_place,
            "The numbers are right, but `/=` has written them into the caller's array.",
            "Divide into a new array: `matrix / …` makes one.",
        ),
        Misconception(
            divided_by_the_length,
            "Rows are divided by their Euclidean length; then squares sum to 1, not the entries.",
            "Sum one row of your result.",
        ),
        Misconception(
            divided_by_absolute_sums,
            "Absolute values are summed, so a row with a negative entry does not sum to 1.",
            "Divide by the plain sum.",
        ),
        Misconception(
            divided_by_the_maximum,
            "Rows are divided by their largest entry and not by their sum.",
            "Sum one row of your result.",
        ),
        Misconception(
            divided_by_the_mean,
            "Rows are divided by their mean, so each sums to its number of columns.",
            "Sum one row of your result.",
        ),
        Misconception(
            softmax_for_division,
            "This is a softmax; only a division by the row's sum is asked for.",
            "No exponentials yet: they come in the next chapter.",
        ),
    ),
    accepted=(
        normalised_with_none,
        normalised_with_einsum,
        normalised_row_by_row,
        normalised_by_product_with_ones,
        normalised_transposed,
    ),
)

# --- broadcast_shape -----------------------------------------------------------------------------


def broadcast_shape_cases(rng):
    """Pairs that fit, in either order, then pairs that clash, one of them by multiples."""
    a, b, c, d = (int(n) for n in rng.choice((2, 3, 5, 6, 7), size=4, replace=False))
    full = [a, b, c, d]
    ones = rng.random(4) < 0.5
    mixed = tuple(1 if one else n for n, one in zip(full, ones, strict=True))
    other = tuple(n if one else 1 for n, one in zip(full, ones, strict=True))
    n = int(rng.choice((2, 3, 5)))
    for first, second, about in (
        ((a, 1, c), (1, b, c), "equally many axes"),
        ((b, c), (a, 1, c), "fewer axes first"),
        ((a, b, 1, d), (c, 1), "four axes and two"),
        ((c,), (a, b, c), "a vector and three axes"),
        ((a, b), (), "a number without axes"),
        (mixed, other, "each axis stretched on one side"),
        ((a, 1, b), (1, b), "an axis of length 1 on both sides"),
    ):
        yield Case("shapes", {"first": first, "second": second}, about)
    for first, second, about in (
        ((a, b), (a, c), "the last axes clash"),
        ((a, b, c), (d, 1, c), "the first axes clash"),
        ((b, c), (b,), "would only fit if shapes were aligned on the left"),
        ((a, n), (a, 2 * n), "one length is twice the other, which is still a clash"),
        ((c, 1, a), (c, b, d), "one axis stretches, another clashes"),
    ):
        yield Case("clashes", {"first": first, "second": second}, about)


def broadcast_shape_reference(first, second):
    """NumPy's own answer."""
    return np.broadcast_shapes(first, second)


def _padded(first, second):
    """Give both shapes equally many axes, ones in front."""
    axes = max(len(first), len(second))
    return (1,) * (axes - len(first)) + first, (1,) * (axes - len(second)) + second


def _stretched(a, b):
    """Give the length of two aligned axes."""
    if a != b and 1 not in (a, b):
        raise ValueError(f"lengths {a} and {b} clash")
    return b if a == 1 else a


def aligned_on_the_left(first, second):
    """Adds the missing ones behind."""
    axes = max(len(first), len(second))
    first = first + (1,) * (axes - len(first))
    second = second + (1,) * (axes - len(second))
    return tuple(_stretched(a, b) for a, b in zip(first, second, strict=True))


def aligned_on_the_left_unchecked(first, second):
    """Adds the missing ones behind and takes the larger length."""
    axes = max(len(first), len(second))
    first = first + (1,) * (axes - len(first))
    second = second + (1,) * (axes - len(second))
    return tuple(max(a, b) for a, b in zip(first, second, strict=True))


def larger_length_unchecked(first, second):
    """Takes the larger length without asking whether the smaller is 1."""
    return tuple(max(a, b) for a, b in zip(*_padded(first, second), strict=True))


def extra_axes_dropped(first, second):
    """zip stops at the shorter shape."""
    pairs = list(zip(first[::-1], second[::-1], strict=False))
    return tuple(_stretched(a, b) for a, b in pairs)[::-1]


def never_turned_back(first, second):
    """Works from the right and forgets to reverse the result."""
    pairs = zip(*_padded(first, second), strict=True)
    return tuple(_stretched(a, b) for a, b in pairs)[::-1]


def longer_shape_wins(first, second):
    """Returns the shape with more axes after checking for clashes."""
    for a, b in zip(*_padded(first, second), strict=True):
        _stretched(a, b)
    return max(first, second, key=len)


def equal_lengths_only(first, second):
    """Forgets that a 1 stretches."""
    lengths = []
    for a, b in zip(*_padded(first, second), strict=True):
        if a != b:
            raise ValueError(f"lengths {a} and {b} clash")
        lengths.append(a)
    return tuple(lengths)


def only_the_first_stretches(first, second):
    """A 1 in the second shape counts as a clash."""
    lengths = []
    for a, b in zip(*_padded(first, second), strict=True):
        if a not in (1, b):
            raise ValueError(f"lengths {a} and {b} clash")
        lengths.append(b)
    return tuple(lengths)


def equal_ranks_only(first, second):
    """Refuses shapes with different numbers of axes."""
    if len(first) != len(second):
        raise ValueError("the shapes have different numbers of axes")
    return tuple(_stretched(a, b) for a, b in zip(first, second, strict=True))


def multiples_stretch(first, second):
    """Lets a length stretch to any multiple of itself."""
    lengths = []
    for a, b in zip(*_padded(first, second), strict=True):
        if max(a, b) % min(a, b):
            raise ValueError(f"lengths {a} and {b} clash")
        lengths.append(max(a, b))
    return tuple(lengths)


def clash_returns_none(first, second):
    """Gives None where an exception is asked for."""
    lengths = []
    for a, b in zip(*_padded(first, second), strict=True):
        if a != b and 1 not in (a, b):
            return None
        lengths.append(max(a, b))
    return tuple(lengths)


def clash_is_an_assertion(first, second):
    """Uses assert, which raises AssertionError."""
    for a, b in zip(*_padded(first, second), strict=True):
        assert a == b or 1 in (a, b), f"lengths {a} and {b} clash"
    return larger_length_unchecked(first, second)


def only_last_axis_checked(first, second):
    """Looks for a clash in the last axis only."""
    if first and second:
        _stretched(first[-1], second[-1])
    return larger_length_unchecked(first, second)


def shape_by_zip_longest(first, second):
    """Right: pairs from the right, with ones where a shape has run out of axes."""
    pairs = itertools.zip_longest(reversed(first), reversed(second), fillvalue=1)
    return tuple(_stretched(a, b) for a, b in pairs)[::-1]


def shape_by_padding(first, second):
    """Right: ones in front, then axis by axis."""
    return tuple(_stretched(a, b) for a, b in zip(*_padded(first, second), strict=True))


def shape_from_the_right(first, second):
    """Right: walks from the right with an index."""
    result = []
    for place in range(1, max(len(first), len(second)) + 1):
        lengths = {shape[-place] for shape in (first, second) if place <= len(shape)} - {1}
        if len(lengths) > 1:
            raise ValueError("clash")
        result.insert(0, lengths.pop() if lengths else 1)
    return tuple(result)


def shape_by_recursion(first, second):
    """Right: the last axes, then the rest."""
    if not first or not second:
        return first or second
    return (*shape_by_recursion(first[:-1], second[:-1]), _stretched(first[-1], second[-1]))


BROADCAST_SHAPE = Exercise(
    id="broadcast_shape",
    title="The broadcasting rule",
    asks="Give the shape that two shapes broadcast to, or raise ValueError if they clash.",
    parameters=("first", "second"),
    forbidden=("numpy.*", "scipy.*", "torch.*"),
    groups={
        "shapes": Group(2, "shapes that fit"),
        "clashes": Group(1, "clashes raise ValueError"),
    },
    cases=broadcast_shape_cases,
    reference=broadcast_shape_reference,
    misconceptions=(
        Misconception(
            aligned_on_the_left,
            "The shapes are aligned on the left; NumPy aligns them on the right.",
            "Write (5, 3) above (3,): which axis of the first does the 3 belong to?",
        ),
        Misconception(
            aligned_on_the_left_unchecked,
            "The shapes are aligned on the left (and no clash is noticed); NumPy aligns them on "
            "the right.",
            "Write (5, 3) above (3,): which axis of the first does the 3 belong to?",
        ),
        Misconception(
            larger_length_unchecked,
            "The larger length is taken, though an axis stretches only if its length is 1.",
            "What should happen to lengths 2 and 3?",
        ),
        Misconception(
            extra_axes_dropped,
            "Axes that only the longer shape has are dropped: `zip` stops at the shorter one.",
            "Where one shape has run out of axes, act as if it had a 1 there.",
        ),
        Misconception(
            never_turned_back,
            "The result is in reverse order.",
            "If you walk from the right, the axis you find first is the last one of the result.",
        ),
        Misconception(
            longer_shape_wins,
            "The shape with more axes is returned as it is, but its ones may stretch too.",
            "Try (1, 3) with (2, 1) on paper: neither of them is the result.",
        ),
        Misconception(
            equal_lengths_only,
            "Only equal lengths are let through; a length of 1 stretches to any length.",
            "There are two ways to fit: equal, or one of the two is 1.",
        ),
        Misconception(
            only_the_first_stretches,
            "A 1 stretches in the first shape only; the rule is the same for both.",
            "Exchange the arguments in one case: the result must not change.",
        ),
        Misconception(
            equal_ranks_only,
            "Shapes with different numbers of axes are refused; the shorter one gets ones in "
            "front instead.",
            "Which axes can be added to an array without changing its numbers?",
        ),
        Misconception(
            multiples_stretch,
            "A length is stretched to a multiple of itself; NumPy stretches only a 1.",
            "Try `np.ones(3) + np.ones(6)`.",
        ),
        Misconception(
            clash_returns_none,
            "A clash returns None; the text asks for an exception.",
            "`raise ValueError(...)` in the branch where the lengths clash.",
        ),
        Misconception(
            clash_is_an_assertion,
            "`assert` raises AssertionError; the text asks for ValueError.",
            "Use `raise`: unlike `assert`, it also works when Python runs with -O.",
        ),
        Misconception(
            only_last_axis_checked,
            "Only the last axes are checked for a clash.",
            "Do the same for every pair of aligned axes.",
        ),
    ),
    accepted=(shape_by_zip_longest, shape_by_padding, shape_from_the_right, shape_by_recursion),
    equivalent_mutants={
        "`(a, b)` → `(b, a)`": "stretching is symmetric",
        "`zip(first, second, strict=True)` → `zip(second, first, strict=True)`": (
            "stretching is symmetric"
        ),
        "`return tuple(result)` → `return result`": "a list of lengths is accepted",
    },
)
