"""Chapter 01: rows that sum to 1."""

from __future__ import annotations

import math

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


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
