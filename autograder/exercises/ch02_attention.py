"""Exercises of chapter 02: attention in NumPy, up to a self-attention layer and its gradient.

Masks are True where a query may look at a key. A row that may look at nothing gives zeros.
"""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- softmax -------------------------------------------------------------------------------------


def softmax_cases(rng):
    """Any axis, negative ones too; large scores; very unequal rows."""
    s = draw_sizes(rng, "batch", "rows", "columns")
    scores = rng.normal(size=(s.batch, s.rows, s.columns))
    yield Case("values", {"scores": scores, "axis": -1}, "three axes, last axis")
    yield Case("values", {"scores": 3 * scores[0], "axis": -1}, "a matrix, last axis")
    yield Case("axes", {"scores": scores, "axis": 0}, "three axes, first axis")
    yield Case("axes", {"scores": scores, "axis": 1}, "three axes, middle axis")
    yield Case("axes", {"scores": scores, "axis": -2}, "a negative axis that is not the last")
    large = scores[0] + 900.0
    yield Case("large", {"scores": large, "axis": -1}, "scores near 900")
    uneven = scores[0] + 2000.0 * np.arange(s.rows)[:, None]
    yield Case("large", {"scores": uneven, "axis": -1}, "rows of very different size")


def softmax_reference(scores, axis):
    """One line at a time, with Python's own arithmetic on the logarithm of the sum."""
    moved = np.moveaxis(scores, axis, -1)
    result = np.empty_like(moved)
    for index in np.ndindex(moved.shape[:-1]):
        result[index] = np.exp(moved[index] - np.logaddexp.reduce(moved[index]))
    return np.moveaxis(result, -1, axis)


def no_maximum_subtracted(scores, axis):
    """exp overflows for large scores."""
    powers = np.exp(scores)
    return powers / powers.sum(axis=axis, keepdims=True)


def one_maximum_for_all(scores, axis):
    """Subtracts the maximum of the whole array: rows far below it become 0/0."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum(axis=axis, keepdims=True)


def always_last_axis(scores, axis):
    """Ignores the argument `axis`."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def sum_over_everything(scores, axis):
    """Divides by the sum of all entries."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def sum_without_keepdims(scores, axis):
    """Loses the axis that the division needs."""
    powers = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis)


def with_moved_axis(scores, axis):
    """Right: works on the last axis and moves it back."""
    moved = np.moveaxis(scores, axis, -1)
    powers = np.exp(moved - moved.max(axis=-1)[..., None])
    return np.moveaxis(powers / powers.sum(axis=-1)[..., None], -1, axis)


def with_logarithms(scores, axis):
    """Right: exp of the log-softmax."""
    return np.exp(scores - np.logaddexp.reduce(scores, axis=axis, keepdims=True))


def in_place_on_a_copy(scores, axis):
    """Right: changes only its own copy."""
    result = np.array(scores, dtype=np.float64)
    result -= result.max(axis=axis, keepdims=True)
    np.exp(result, out=result)
    result /= result.sum(axis=axis, keepdims=True)
    return result


SOFTMAX = Exercise(
    id="softmax",
    title="Stable softmax over any axis",
    asks="Turn scores into weights that are positive and sum to 1 along `axis`, for any scores.",
    parameters=("scores", "axis"),
    groups={
        "values": Group(1, "weights along the last axis"),
        "axes": Group(1, "any axis"),
        "large": Group(1, "large and very unequal scores"),
    },
    cases=softmax_cases,
    reference=softmax_reference,
    misconceptions=(
        Misconception(
            no_maximum_subtracted,
            "exp of a large score overflows to infinity, and infinity / infinity is NaN.",
            "What can be subtracted from all scores of a row without changing the weights?",
        ),
        Misconception(
            one_maximum_for_all,
            "One maximum is subtracted from the whole array, so rows far below it become 0/0.",
            "Which maximum belongs to which row? Think of `axis` and `keepdims`.",
        ),
        Misconception(
            always_last_axis,
            "The softmax runs along the last axis whatever `axis` says.",
            "Find every place of your code where an axis is named.",
        ),
        Misconception(
            sum_over_everything,
            "The weights sum to 1 over the whole array and not along `axis`.",
            "Sum your result along `axis`: what should every one of these sums be?",
        ),
        Misconception(
            sum_without_keepdims,
            "The sum loses an axis, so the division lines up with the wrong axis or none.",
            "Print the shape of the sum; `keepdims=True` keeps the axis with length 1.",
        ),
    ),
    accepted=(with_moved_axis, with_logarithms, in_place_on_a_copy),
)

EXERCISES = [SOFTMAX]
