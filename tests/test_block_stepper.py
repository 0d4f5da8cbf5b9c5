"""The block stepper without a browser: arguments, and what it says in words."""

from __future__ import annotations

import numpy as np
import pytest

from attention_course.explorers import block_stepper

SCORES = np.array([[900.0, 902.0, 901.0], [-5.0, -6.0, -9.0]])
VALUES = [[1.0], [3.0], [-2.0]]


def test_words_hold_the_running_numbers():
    lines = block_stepper(SCORES, VALUES, block=2, step=1).text().splitlines()
    assert lines[0].startswith("1 of 2 blocks of 2 keys done; 2 queries, 3 keys.")
    weights = np.exp([-2.0, 0.0])
    output = weights @ [1.0, 3.0] / weights.sum()
    assert lines[1] == f"  1: 902.00, {weights.sum():.2f}, ({output:.2f})"


def test_after_the_last_block_it_is_the_softmax():
    largest, total, output = block_stepper(SCORES, VALUES, block=2, step=2).running()
    weights = np.exp(SCORES - SCORES.max(axis=1, keepdims=True))
    np.testing.assert_allclose(largest, SCORES.max(axis=1))
    np.testing.assert_allclose(output / total[:, None], weights @ VALUES / total[:, None])


def test_before_the_first_block_nothing_has_been_seen():
    assert block_stepper(SCORES, VALUES).text().count("nothing yet") == 2


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: block_stepper(SCORES[0]), ValueError, r"scores must have shape \(queries, keys\)"),
        (lambda: block_stepper(np.zeros((7, 2))), ValueError, "at most 6"),
        (lambda: block_stepper(np.zeros((2, 13))), ValueError, "at most 12"),
        (lambda: block_stepper(SCORES, VALUES[:2]), ValueError, "values must have one row"),
        (lambda: block_stepper(SCORES, np.zeros((3, 5))), ValueError, "at most 4"),
        (lambda: block_stepper(SCORES, block=4), ValueError, "block must be a whole number from 1"),
        (lambda: block_stepper(SCORES, block=True), ValueError, "block must be a whole number"),
        (lambda: block_stepper(SCORES, block=2, step=3), ValueError, "step must be .* from 0 to 2"),
        (lambda: block_stepper([[1.0, -np.inf]]), ValueError, r"scores\[0, 1\] is -inf"),
    ],
)
def test_errors_name_the_argument(make, error, says):
    with pytest.raises(error, match=says):
        make()
