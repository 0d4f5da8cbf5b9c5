"""Exercise of chapter 10 on two sentences: features of a pair."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def pair_features_cases(rng):
    """A batch, a batch with two axes, one pair."""
    for batch, about in (((5,), "a batch"), ((2, 3), "two axes of pairs"), ((), "one pair")):
        d_model = int(rng.choice([6, 7, 8]))
        first, second = rng.normal(size=(2, *batch, d_model))
        yield Case("features", {"first": first, "second": second}, about)


def pair_features_reference(first, second):
    """NumPy."""
    u, v = first.numpy(), second.numpy()
    return torch.from_numpy(np.concatenate([u, v, np.abs(u - v), u * v], axis=-1))


def difference_with_sign(first, second):
    """Without the absolute value."""
    return torch.cat([first, second, first - second, first * second], dim=-1)


def second_sentence_first(first, second):
    """Exchanges the two."""
    return pair_features_reference(second, first)


def product_before_difference(first, second):
    """Another order of the parts."""
    return torch.cat([first, second, first * second, (first - second).abs()], dim=-1)


def squared_difference(first, second):
    """Squares instead of absolute values."""
    return torch.cat([first, second, (first - second) ** 2, first * second], dim=-1)


def sum_for_product(first, second):
    """Adds instead of multiplying."""
    return torch.cat([first, second, (first - second).abs(), first + second], dim=-1)


def only_the_two_vectors(first, second):
    """Just puts them side by side."""
    return torch.cat([first, second], dim=-1)


def features_stacked(first, second):
    """Puts the parts on a new axis."""
    return torch.stack([first, second, (first - second).abs(), first * second], dim=-2)


def by_pieces(first, second):
    """Right: writes into an empty tensor."""
    d_model = first.shape[-1]
    result = first.new_empty(*first.shape[:-1], 4 * d_model)
    parts = (first, second, torch.abs(second - first), second * first)
    for place, part in enumerate(parts):
        result[..., place * d_model : (place + 1) * d_model] = part
    return result


def by_flattening(first, second):
    """Right: stacks and flattens."""
    return torch.stack([first, second, (first - second).abs(), first * second], -2).flatten(-2)


def by_hstack(first, second):
    """Right: larger minus smaller."""
    gap = torch.maximum(first, second) - torch.minimum(first, second)
    return torch.concat((first, second, gap, first.mul(second)), dim=first.ndim - 1)


PAIR_FEATURES = Exercise(
    id="pair_features",
    title="Features of a pair",
    asks="Put two vectors, their distance in each feature, and their product side by side.",
    parameters=("first", "second"),
    driver="tensor_function",
    groups={"features": Group(1, "the four parts, in order")},
    cases=pair_features_cases,
    reference=pair_features_reference,
    misconceptions=(
        Misconception(
            difference_with_sign,
            "The difference keeps its sign; its size is asked for.",
            "Should |u − v| change if the sentences are exchanged?",
        ),
        Misconception(
            second_sentence_first,
            "The second sentence's vector comes first.",
            "Compare the first features of your result with `first`.",
        ),
        Misconception(
            product_before_difference,
            "The parts stand in another order than the contract says.",
            "Which part comes third?",
        ),
        Misconception(
            squared_difference,
            "The difference is squared; its absolute value is asked for.",
            "What is |−3|?",
        ),
        Misconception(
            sum_for_product,
            "The last part is the sum, not the product.",
            "What is the fourth part of the contract?",
        ),
        Misconception(
            only_the_two_vectors,
            "Difference and product are missing.",
            "How wide should the result be?",
        ),
        Misconception(
            features_stacked,
            "The parts stand on an axis of their own; they belong side by side on the last one.",
            "How many axes should the result have?",
        ),
    ),
    accepted=(by_pieces, by_flattening, by_hstack),
    equivalent_mutants={
        "`first - second` → `second - first`": "its absolute value is the same",
    },
)
