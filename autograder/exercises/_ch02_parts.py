"""What the exercises of chapter 02 share: right weights to build on, and inputs for attention."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from autograder.case_making import draw_lengths, draw_mask


def stable_softmax(scores, axis=-1):
    """Softmax that survives large scores and rows without any finite score (all zeros then)."""
    largest = scores.max(axis=axis, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(largest), largest, 0.0))
    total = powers.sum(axis=axis, keepdims=True)
    return powers / np.where(total == 0, 1.0, total)


def scores_of(queries, keys, scale=None):
    """Products of every query with every key, times `scale` (default: 1/√d_k)."""
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    return queries @ np.swapaxes(keys, -1, -2) * scale


def weights_of(queries, keys, mask=None, scale=None, axis=-1):
    """Attention weights, right unless `scale` or `axis` says otherwise."""
    scores = scores_of(queries, keys, scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return stable_softmax(scores, axis)


def causal_mask(queries, keys):
    """Mask (q, k) by which the last query sees every key and each earlier one a key less."""
    return np.tri(queries, keys, keys - queries, dtype=bool)


def draw_attention_sizes(rng):
    """Draw batch, heads, q, k, d_k, d_v and d_model: all differ, and arrays stay small.

    There are more keys than queries and at least 5, so that masks leave several keys a row. d_k is
    never 4, where a division by 2 would be right.
    """
    while True:
        q, k, d_k, d_v, d_model = (int(size) for size in rng.permutation([4, 5, 6, 7, 8]))
        if q < k <= 6 and d_k != 4:
            return SimpleNamespace(batch=2, heads=3, q=q, k=k, d_k=d_k, d_v=d_v, d_model=d_model)


def draw_qkv(rng, sizes, *lead):
    """Draw queries, keys and values with the sizes q, k, d_k, d_v after the axes `lead`."""
    return (
        rng.normal(size=(*lead, sizes.q, sizes.d_k)),
        rng.normal(size=(*lead, sizes.k, sizes.d_k)),
        rng.normal(size=(*lead, sizes.k, sizes.d_v)),
    )


def draw_weights(rng, sizes):
    """Draw `w_q`, `w_k` and `w_v` of such a size that vectors keep their length on average."""
    shapes = [(sizes.d_model, sizes.d_k), (sizes.d_model, sizes.d_k), (sizes.d_model, sizes.d_v)]
    return [rng.normal(size=shape) / np.sqrt(sizes.d_model) for shape in shapes]


def with_large_scores(queries, keys):
    """Change the last feature so that scaled scores lie near 900, 1800, ...: one level a query."""
    queries, keys = queries.copy(), keys.copy()
    queries[..., -1] = 30.0 * (1 + np.arange(queries.shape[-2]))
    keys[..., -1] = 30.0 * np.sqrt(queries.shape[-1])
    return queries, keys


def draw_mask_with_empty_row(rng, *shape):
    """Draw a mask with one query, never the first one, that may look at nothing."""
    mask = draw_mask(rng, *shape)
    mask[..., rng.integers(1, shape[-2]), :] = False
    return mask


def draw_padding(rng, batch, keys, values, factor=20):
    """Draw a padding mask (batch, keys) and put poison into keys and values that it hides.

    `keys` and `values` are (batch, ..., k, d) and come back changed. The poison is large but
    finite; `factor` is small enough for masking after the softmax to work still.
    """
    k = keys.shape[-2]
    mask = np.arange(k) < draw_lengths(rng, batch, k)[:, None]
    hidden = ~mask.reshape(batch, *[1] * (keys.ndim - 3), k, 1)
    return mask, np.where(hidden, factor * keys, keys), np.where(hidden, 1e5 + values, values)


def output_and_weights(weights, values):
    """Return (weighted sums of values, weights), as attention gives them."""
    return weights @ values, weights
