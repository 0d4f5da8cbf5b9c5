"""What the exercises of chapter 07 share: sentences as numbers, and weights of modules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autograder.case_making import draw_lengths

IGNORED = -100  # marks a place of the targets that holds no word


def draw_targets(rng, batch, longest, words, end, least=2):
    """Draw target sentences of unequal lengths, int (batch, longest): words, `end`, `IGNORED` …

    `words` are the ids to draw from. A length counts the end token and is at least `least`.
    """
    lengths = np.full(batch, longest)
    if least < longest:
        lengths = least - 1 + draw_lengths(rng, batch, longest - least + 1)
    targets = rng.choice(words, size=(batch, longest))
    places = np.arange(longest)
    targets[places == lengths[:, None] - 1] = end
    targets[places >= lengths[:, None]] = IGNORED
    return targets.astype(np.int64)


def draw_source_mask(rng, batch, longest):
    """Draw a mask (batch, longest), True for words: sentences of unequal lengths."""
    return np.arange(longest) < draw_lengths(rng, batch, longest)[:, None]


def draw_weights(rng, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Draw an array for each name: matrices of rows of unit length on average, gains around 1."""
    weights = {}
    for name, shape in shapes.items():
        array = rng.normal(size=shape)
        if len(shape) == 2:
            array /= np.sqrt(shape[1])
        elif "norm" in name and name.endswith("weight"):
            array = 1 + 0.5 * array
        weights[name] = array
    return weights


def shapes_of(module) -> dict[str, tuple[int, ...]]:
    """Give the shape of each parameter of a module by its name."""
    return {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
