"""What the exercises of chapter 10 share: padded batches, and cases on which mistakes show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attention_course.drivers.tensors import as_tensors
from autograder.case_making import draw_lengths

IGNORED = -100  # the label of a place that gets no loss
TRIES = 2_000


def draw_padding(rng, batch, length, left=False):
    """Draw a mask (batch, length), True for tokens: unequal lengths, padded right or left."""
    mask = np.arange(length) < draw_lengths(rng, batch, length)[:, None]
    return mask[:, ::-1].copy() if left else mask


def draw_telling(
    draw: Callable[[], dict[str, Any]],
    right: Callable[..., Any],
    wrong: Sequence[Callable[..., Any]],
    tensors: bool = False,
) -> dict[str, Any]:
    """Draw inputs until no two of the functions agree on them.

    Results must be comparable with `==`. Raises RuntimeError if that does not come about.
    """
    for _ in range(TRIES):
        inputs = draw()
        given = as_tensors(inputs) if tensors else inputs
        results = [function(**given) for function in (right, *wrong)]
        if all(a != b for place, a in enumerate(results) for b in results[:place]):
            return inputs
    raise RuntimeError(f"no telling inputs for {right.__name__} in {TRIES} tries")
