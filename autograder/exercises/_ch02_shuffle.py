"""Chapter 02: attention does not see order."""

from __future__ import annotations

import itertools

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import (
    draw_attention_sizes,
    draw_weights,
    weights_of,
)


def _draw_order(rng, length):
    """Draw an order that differs from its own inverse at every place but a few, and moves all."""
    while True:
        order = rng.permutation(length)
        moved = np.all(order != np.arange(length))
        if moved and np.sum(order != np.argsort(order)) >= 3:
            return order


def shuffle_cases(rng):
    """Tokens without and with position vectors; the largest difference has either sign."""

    def draw():
        s = draw_attention_sizes(rng)
        names = ("w_q", "w_k", "w_v")
        weights = dict(zip(names, draw_weights(rng, s), strict=True))
        x, positions = rng.normal(size=(2, s.k, s.d_model))
        return {"x": x, "order": _draw_order(rng, s.k), **weights}, positions

    yield Case("bag", draw()[0], "no positions")
    yield Case("bag", draw()[0], "other sizes, no positions")
    for sign, about in [(-1, "position vectors are added"), (1, "other sizes, position vectors")]:
        while True:
            inputs, positions = draw()
            inputs["positions"] = positions
            differences = sign * _differences(**inputs)
            if differences.max() > 1.1 * -differences.min():
                break
        yield Case("positions", inputs, about)


def _differences(x, order, w_q, w_k, w_v, positions):
    restored = _layer(x[order] + positions, w_q, w_k, w_v)[np.argsort(order)]
    return restored - _layer(x + positions, w_q, w_k, w_v)


def shuffle_reference(x, order, w_q, w_k, w_v, positions=None):
    """Follows each token by name through dictionaries."""
    length = len(x)
    positions = np.zeros(x.shape) if positions is None else positions

    def attend(tokens):
        total = {}
        for i, token in enumerate(tokens):
            scores = np.array([(token @ w_q) @ (other @ w_k) for other in tokens])
            scores = scores / np.sqrt(w_q.shape[1])
            weights = np.exp(scores - np.logaddexp.reduce(scores))
            total[i] = sum(w * (other @ w_v) for w, other in zip(weights, tokens, strict=True))
        return total

    original = attend([x[i] + positions[i] for i in range(length)])
    by_place = attend([x[order[place]] + positions[place] for place in range(length)])
    by_token = {int(order[place]): by_place[place] for place in range(length)}
    shuffled = np.array([by_place[i] for i in range(length)])
    restored = np.array([by_token[i] for i in range(length)])
    gap = max(float(np.max(np.abs(by_token[i] - original[i]))) for i in range(length))
    return shuffled, restored, gap


def _layer(x, w_q, w_k, w_v):
    return weights_of(x @ w_q, x @ w_k) @ (x @ w_v)


def _with(x, positions):
    return x if positions is None else x + positions


def undone_with_order(x, order, w_q, w_k, w_v, positions=None):
    """Applies the order a second time instead of its inverse."""
    shuffled = _layer(_with(x[order], positions), w_q, w_k, w_v)
    restored = shuffled[order]
    gap = np.abs(restored - _layer(_with(x, positions), w_q, w_k, w_v)).max()
    return shuffled, restored, gap


def never_undone(x, order, w_q, w_k, w_v, positions=None):
    """Compares outputs in shuffled order with outputs in the first order."""
    shuffled = _layer(_with(x[order], positions), w_q, w_k, w_v)
    gap = np.abs(shuffled - _layer(_with(x, positions), w_q, w_k, w_v)).max()
    return shuffled, shuffled, gap


def shuffled_with_inverse(x, order, w_q, w_k, w_v, positions=None):
    """Shuffles with the inverse and undoes it with the order: token and place change roles."""
    shuffled = _layer(_with(x[np.argsort(order)], positions), w_q, w_k, w_v)
    restored = shuffled[order]
    gap = np.abs(restored - _layer(_with(x, positions), w_q, w_k, w_v)).max()
    return shuffled, restored, gap


def positions_shuffled_too(x, order, w_q, w_k, w_v, positions=None):
    """Adds positions before the shuffle, so that they travel with the tokens."""
    shuffled = _layer(_with(x, positions)[order], w_q, w_k, w_v)
    restored = shuffled[np.argsort(order)]
    gap = np.abs(restored - _layer(_with(x, positions), w_q, w_k, w_v)).max()
    return shuffled, restored, gap


def positions_forgotten(x, order, w_q, w_k, w_v, positions=None):
    """Ignores the position vectors."""
    shuffled = _layer(x[order], w_q, w_k, w_v)
    restored = shuffled[np.argsort(order)]
    return shuffled, restored, np.abs(restored - _layer(x, w_q, w_k, w_v)).max()


def compared_without_positions(x, order, w_q, w_k, w_v, positions=None):
    """Positions are added to the shuffled tokens, but not to those it compares with."""
    shuffled = _layer(_with(x[order], positions), w_q, w_k, w_v)
    restored = shuffled[np.argsort(order)]
    return shuffled, restored, np.abs(restored - _layer(x, w_q, w_k, w_v)).max()


def mean_gap(x, order, w_q, w_k, w_v, positions=None):
    """Takes the mean of the differences instead of the largest."""
    shuffled = _layer(_with(x[order], positions), w_q, w_k, w_v)
    restored = shuffled[np.argsort(order)]
    gap = np.abs(restored - _layer(_with(x, positions), w_q, w_k, w_v)).mean()
    return shuffled, restored, gap


def largest_with_sign(x, order, w_q, w_k, w_v, positions=None):
    """Takes the largest difference without its absolute value."""
    shuffled = _layer(_with(x[order], positions), w_q, w_k, w_v)
    restored = shuffled[np.argsort(order)]
    return shuffled, restored, (restored - _layer(_with(x, positions), w_q, w_k, w_v)).max()


def shuffle_by_assignment(x, order, w_q, w_k, w_v, positions=None):
    """Right: writes each row to its token's place."""
    shuffled = _layer(_with(x[order], positions), w_q, w_k, w_v)
    restored = np.empty_like(shuffled)
    restored[order] = shuffled
    return shuffled, restored, np.max(np.abs(restored - _layer(_with(x, positions), w_q, w_k, w_v)))


def shuffle_by_matrix(x, order, w_q, w_k, w_v, positions=None):
    """Right: a permutation matrix and its transpose."""
    matrix = np.eye(len(x))[order]
    positions = np.zeros_like(x) if positions is None else positions
    shuffled = _layer(matrix @ x + positions, w_q, w_k, w_v)
    restored = matrix.T @ shuffled
    gap = np.linalg.norm((restored - _layer(x + positions, w_q, w_k, w_v)).ravel(), ord=np.inf)
    return shuffled, restored, float(gap)


def shuffle_by_search(x, order, w_q, w_k, w_v, positions=None):
    """Right: looks for the place of each token; the gap by a loop."""
    shuffled = _layer(_with(x[order], positions), w_q, w_k, w_v)
    original = _layer(_with(x, positions), w_q, w_k, w_v)
    places = [list(order).index(token) for token in range(len(x))]
    restored = np.stack([shuffled[place] for place in places])
    pairs = itertools.chain.from_iterable(restored - original)
    return shuffled, restored, max(abs(float(value)) for value in pairs)


SHUFFLE_TEST = Exercise(
    id="shuffle_test",
    title="Shuffle the tokens",
    asks="Shuffle tokens, attend, put the outputs back, and measure what has changed.",
    parameters=("x", "order", "w_q", "w_k", "w_v", "positions"),
    outputs=("shuffled", "restored", "gap"),
    groups={
        # Positions first: without them, undone and never shuffled cannot be told apart.
        "positions": Group(2, "tokens with position vectors"),
        "bag": Group(1, "tokens without positions"),
    },
    cases=shuffle_cases,
    reference=shuffle_reference,
    misconceptions=(
        Misconception(
            undone_with_order,
            "`[order]` a second time shuffles further; it does not undo the first.",
            "Row 0 of `shuffled` belongs to token `order[0]`. Where must it go?",
        ),
        Misconception(
            never_undone,
            "The outputs stay in shuffled order, so rows of different tokens are compared.",
            "To which token does row 0 of `shuffled` belong, and to which row 0 of the original?",
        ),
        Misconception(
            shuffled_with_inverse,
            "The tokens are shuffled with the inverse of `order`.",
            "Which token should be first after shuffling? The contract says `order[0]`.",
        ),
        Misconception(
            positions_shuffled_too,
            "The position vectors travel with the tokens (or only outputs are shuffled): the layer "
            "cannot notice the shuffle.",
            "Place 0 has the vector `positions[0]`, whichever token stands there.",
        ),
        Misconception(
            positions_forgotten,
            "The position vectors are not used.",
            "To what are `positions` added, and when?",
        ),
        Misconception(
            compared_without_positions,
            "The outputs are compared with those of tokens without positions.",
            "Both sides of the comparison get position vectors.",
        ),
        Misconception(
            mean_gap,
            "The gap is the mean difference; the contract asks for the largest one.",
            "Could one wrong row hide in a mean?",
        ),
        Misconception(
            largest_with_sign,
            "The largest difference is taken with its sign, so large negative ones are missed.",
            "Which word of point 5 turns a negative difference into a gap?",
        ),
    ),
    accepted=(shuffle_by_assignment, shuffle_by_matrix, shuffle_by_search),
    equivalent_mutants={
        "`restored - self_attention(x + positions, w_q, w_k, w_v)` → "
        "`self_attention(x + positions, w_q, w_k, w_v) - restored`": "abs drops the sign",
    },
)
