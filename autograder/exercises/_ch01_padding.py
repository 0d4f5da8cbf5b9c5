"""Chapter 01: the mask of padding."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def padding_mask_cases(rng):
    """Unequal lengths, a length of 0, room to spare, and a batch of one."""
    s = draw_sizes(rng, "batch", "longest", among=(3, 5, 6, 7, 8))
    lengths = draw_lengths(rng, s.batch, s.longest)
    yield Case("mask", {"lengths": lengths, "longest": s.longest}, "unequal lengths")
    roomy = draw_lengths(rng, s.batch, s.longest)
    more = s.longest + 2 + (s.longest + 2 == s.batch)
    yield Case("mask", {"lengths": roomy, "longest": more}, "every row has padding")
    empty = draw_lengths(rng, s.batch, s.longest)
    empty[rng.permutation(np.flatnonzero(empty < s.longest))[0]] = 0
    yield Case("mask", {"lengths": empty, "longest": s.longest}, "a row of length 0")
    one = rng.integers(2, s.longest, size=1)
    yield Case("mask", {"lengths": one, "longest": s.longest}, "a batch of one row")


def padding_mask_reference(lengths, longest):
    """Row by row, entry by entry."""
    return np.array([[p in range(length) for p in range(longest)] for length in lengths.tolist()])


def one_token_too_many(lengths, longest):
    """≤ for <: positions count from 0."""
    return np.arange(longest) <= lengths[:, None]


def one_token_too_few(lengths, longest):
    """Counts positions from 1 and still compares with <."""
    return np.arange(1, longest + 1) < lengths[:, None]


def padding_is_true(lengths, longest):
    """The opposite: True marks padding."""
    return np.arange(longest) >= lengths[:, None]


def padding_mask_transposed(lengths, longest):
    """One row per position."""
    return np.arange(longest)[:, None] < lengths[None, :]


def cut_at_the_largest_length(lengths, longest):
    """Sizes the mask by the lengths and ignores `longest`."""
    return np.arange(lengths.max()) < lengths[:, None]


def padding_in_front(lengths, longest):
    """Real tokens at the end of each row."""
    return np.arange(longest) >= longest - lengths[:, None]


def mask_of_integers(lengths, longest):
    """0 and 1 instead of False and True."""
    return (np.arange(longest) < lengths[:, None]).astype(int)


def mask_of_floats(lengths, longest):
    """0.0 and 1.0 instead of False and True."""
    return (np.arange(longest) < lengths[:, None]).astype(float)


def only_the_last_token(lengths, longest):
    """True at one position per row only."""
    return np.arange(longest) == lengths[:, None] - 1


def lengths_without_new_axis(lengths, longest):
    """Lengths and positions both lie along the last axis."""
    return np.arange(longest) < lengths


def padding_mask_by_outer(lengths, longest):
    """Right: the outer form of a comparison."""
    return np.less.outer(np.arange(longest), lengths).T


def padding_mask_by_assignment(lengths, longest):
    """Right: a loop that fills rows."""
    mask = np.zeros((len(lengths), longest), dtype=bool)
    for row, length in enumerate(lengths):
        mask[row, :length] = True
    return mask


def padding_mask_by_lookup(lengths, longest):
    """Right: rows of a triangle, one for every length."""
    return np.tri(longest + 1, longest, -1, dtype=bool)[lengths]


def padding_mask_by_counting_from_one(lengths, longest):
    """Right: counts from 1 and compares with ≤."""
    return np.cumsum(np.ones((len(lengths), longest), dtype=int), axis=1) <= lengths[:, None]


_POSITIONS = "Write the positions 0, 1, 2, … under a row of length 2: which of them are real?"

PADDING_MASK = Exercise(
    id="padding_mask",
    title="Which tokens are real",
    asks="Make a mask, True where there is a real token and False where there is padding.",
    parameters=("lengths", "longest"),
    groups={"mask": Group(1, "real tokens for unequal, full and empty rows")},
    cases=padding_mask_cases,
    reference=padding_mask_reference,
    misconceptions=(
        Misconception(
            one_token_too_many,
            "Every row that has padding has one True too many: positions count from 0.",
            _POSITIONS,
        ),
        Misconception(
            one_token_too_few,
            "The last real token of every row is marked as padding.",
            _POSITIONS,
        ),
        Misconception(
            padding_is_true,
            "The mask is the opposite: True marks padding. In this course True is what counts.",
            "Turn the comparison round.",
        ),
        Misconception(
            padding_mask_transposed,
            "The axes are exchanged: there is one row for each position.",
            "Which of the two vectors must become a column?",
        ),
        Misconception(
            cut_at_the_largest_length,
            "The mask is as wide as the largest length, but `longest` says how wide it must be.",
            "Make the positions from `longest`.",
        ),
        Misconception(
            padding_in_front,
            "The real tokens are marked at the end of each row; here padding comes last.",
            "The first `lengths[b]` positions are real.",
        ),
        Misconception(
            mask_of_integers,
            "The pattern is right, but it is made of 0 and 1; a mask is made of False and True.",
            "A comparison such as `<` gives booleans by itself.",
        ),
        Misconception(
            mask_of_floats,
            "The pattern is right, but it is made of 0.0 and 1.0; a mask is made of False and "
            "True.",
            "A comparison such as `<` gives booleans by itself.",
        ),
        Misconception(
            only_the_last_token,
            "Only one position of each row is True; all real tokens should be.",
            "Compare by size and not for equality.",
        ),
        Misconception(
            lengths_without_new_axis,
            "Lengths and positions lie along the same axis, so they don't fit or pair up.",
            "Give `lengths` a second axis, so that it stretches along the positions.",
        ),
    ),
    accepted=(
        padding_mask_by_outer,
        padding_mask_by_assignment,
        padding_mask_by_lookup,
        padding_mask_by_counting_from_one,
    ),
)
