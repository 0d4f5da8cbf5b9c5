"""Inputs for cases: distinct sizes, random arrays, masks. Every helper takes the generator."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

# No 1 (hides missing axes) and no 4 (for d = 4 the wrong d/2 equals the right √d).
SIZES = (2, 3, 5, 6, 7, 8)


def draw_sizes(rng: np.random.Generator, *names: str, among: tuple[int, ...] = SIZES):
    """Draw a different size for every name: `draw_sizes(rng, "batch", "keys").keys`.

    All sizes differ, so that a mixed-up axis shows. Raises ValueError for too many names.
    """
    if len(names) > len(among):
        raise ValueError(f"{len(names)} names, but only {len(among)} sizes to draw from: {among}")
    drawn = rng.choice(among, size=len(names), replace=False)
    return SimpleNamespace(**{name: int(size) for name, size in zip(names, drawn, strict=True)})


def draw_lengths(rng: np.random.Generator, batch: int, longest: int) -> np.ndarray:
    """Draw unequal lengths for a batch: integers of shape (batch,), from 1 to `longest`.

    The longest is always among them, and as long as sizes allow all differ.
    """
    lengths = 1 + rng.permutation(longest - 1)[: batch - 1]
    lengths = np.concatenate([lengths, rng.integers(1, longest, batch - 1 - len(lengths))])
    return rng.permutation(np.append(lengths, longest)).astype(np.int64)


def draw_mask(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw a mask (True: may be seen) whose last axis always keeps and always hides something."""
    mask = rng.random(shape) < 0.5
    keys = shape[-1]
    order = rng.permuted(np.broadcast_to(np.arange(keys), shape), axis=-1)
    return (mask | (order == 0)) & (order != keys - 1)
