"""What chapter 04's exercises share: layers to draw, and one whose every step can be wrong.

Matrices stand to the right of the vectors, `x @ w`. The columns of `w_qkv` are in three chunks
(queries, keys, values); in each chunk head 0 has the first d_head columns, head 1 the next ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor


def draw_layer(rng: np.random.Generator, d_model: int) -> dict[str, np.ndarray]:
    """Draw `w_qkv` (d_model, 3·d_model), `b_qkv`, `w_out` (d_model, d_model) and `b_out`."""
    scale = d_model**-0.5
    return {
        "w_qkv": scale * rng.normal(size=(d_model, 3 * d_model)),
        "b_qkv": rng.normal(size=3 * d_model),
        "w_out": scale * rng.normal(size=(d_model, d_model)),
        "b_out": rng.normal(size=d_model),
    }


def draw_head_sizes(rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Draw (batch, heads, length, d_head), small, for answers with many outputs.

    Only batch and d_head are equal: three axes lie between them, so nobody exchanges them. Who
    scales by the batch is found out by a smaller case beside.
    """
    batch, heads = (int(n) for n in rng.permutation((2, 3)))
    return batch, heads, 4, batch


# --- the steps of the layer, right ones first ----------------------------------------------------


def in_three_chunks(projected: Tensor, heads: int) -> tuple[Tensor, ...]:
    """All queries, all keys, all values."""
    return projected.chunk(3, dim=-1)


def keys_first(projected: Tensor, heads: int) -> tuple[Tensor, ...]:
    """Keys, queries, values."""
    keys, queries, values = projected.chunk(3, dim=-1)
    return queries, keys, values


def values_first(projected: Tensor, heads: int) -> tuple[Tensor, ...]:
    """Values, queries, keys."""
    values, queries, keys = projected.chunk(3, dim=-1)
    return queries, keys, values


def head_by_head(projected: Tensor, heads: int) -> tuple[Tensor, ...]:
    """Head 0's queries, keys and values, then those of head 1: another layout."""
    parts = projected.unflatten(-1, (heads, 3, -1))
    return tuple(parts[..., i, :].flatten(-2) for i in range(3))


def into_neighbours(x: Tensor, heads: int) -> Tensor:
    """(batch, length, d_model) to (batch, heads, length, d_head)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def by_reshape(x: Tensor, heads: int) -> Tensor:
    """The right shape, but the heads get whole tokens."""
    batch, length, d_model = x.shape
    return x.reshape(batch, heads, length, d_model // heads)


def every_other_feature(x: Tensor, heads: int) -> Tensor:
    """Head h gets features h, h + heads, ..."""
    return x.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)


def side_by_side(x: Tensor) -> Tensor:
    """(batch, heads, length, d_head) to (batch, length, d_model)."""
    return x.transpose(1, 2).flatten(2)


def merged_by_reshape(x: Tensor) -> Tensor:
    """The right shape, but each row mixes tokens."""
    batch, heads, length, d_head = x.shape
    return x.reshape(batch, length, heads * d_head)


def merged_feature_by_feature(x: Tensor) -> Tensor:
    """The first features of all heads, then the second ones."""
    return x.permute(0, 2, 3, 1).flatten(2)


def by_root_of_head(d_head: int, heads: int) -> float:
    """1/√d_head."""
    return d_head**-0.5


def over_keys(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the visible keys."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1)


def over_queries(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Columns sum to 1."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=-2)


def over_heads(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The heads share out each pair."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=1)


def shared_by_all_heads(scores: Tensor, mask: Tensor | None) -> Tensor:
    """One set of weights, the mean over the heads."""
    return over_keys(scores, mask).mean(dim=1, keepdim=True).expand_as(scores)


def layer(
    x: Tensor,
    w_qkv: Tensor,
    b_qkv: Tensor,
    w_out: Tensor,
    b_out: Tensor,
    heads: int,
    mask: Tensor | None = None,
    *,
    chunk: Callable[..., tuple[Tensor, ...]] = in_three_chunks,
    split: Callable[..., Tensor] = into_neighbours,
    scale: Callable[..., float] = by_root_of_head,
    weigh: Callable[..., Tensor] = over_keys,
    merge: Callable[..., Tensor] = side_by_side,
) -> tuple[Tensor, Tensor]:
    """Multi-head self-attention, right unless a step is replaced.

    x: (batch, length, d_model). Returns (output, weights) of shapes (batch, length, d_model) and
    (batch, heads, length, length).
    """
    projected = chunk(x @ w_qkv + b_qkv, heads)
    queries, keys, values = (split(part, heads) for part in projected)
    scores = queries @ keys.mT * scale(queries.shape[-1], heads)
    weights = weigh(scores, mask)
    return merge(weights @ values) @ w_out + b_out, weights


WRONG_STEPS: dict[str, dict[str, Callable]] = {
    "split_by_reshape": {"split": by_reshape},
    "merged_by_reshape": {"merge": merged_by_reshape},
    "split_and_merged_by_reshape": {"split": by_reshape, "merge": merged_by_reshape},
    "heads_of_every_other_feature": {
        "split": every_other_feature,
        "merge": merged_feature_by_feature,
    },
    "merged_feature_by_feature": {"merge": merged_feature_by_feature},
    "keys_before_queries": {"chunk": keys_first},
    "values_before_queries": {"chunk": values_first},
    "chunked_head_by_head": {"chunk": head_by_head},
    "scaled_by_d_model": {"scale": lambda d_head, heads: (d_head * heads) ** -0.5},
    "divided_by_d_head": {"scale": lambda d_head, heads: 1 / d_head},
    "not_scaled": {"scale": lambda d_head, heads: 1.0},
    "softmax_over_queries": {"weigh": over_queries},
    "softmax_over_heads": {"weigh": over_heads},
    "one_set_of_weights": {"weigh": shared_by_all_heads},
}
"""Mistakes that are one wrong step, by the name that verdicts report."""

_ONE_RESHAPE = (
    "First cut the last axis in two (a reshape), then exchange two axes. Draw which token each "
    "number belongs to."
)

HELP: dict[str, tuple[str, str]] = {
    "split_by_reshape": (
        "The heads were made by one reshape: the shape is right, but each head gets whole tokens "
        "and not its own features of every token.",
        _ONE_RESHAPE,
    ),
    "merged_by_reshape": (
        "The heads were put together by one reshape, so each row mixes numbers of several tokens.",
        "Heads and d_head must be neighbours, in this order, before a reshape makes one axis of "
        "them.",
    ),
    "split_and_merged_by_reshape": (
        "Splitting and merging are both one reshape. The two mistakes do not cancel: attention "
        "between them already mixed the wrong tokens.",
        _ONE_RESHAPE,
    ),
    "heads_of_every_other_feature": (
        "Each head gets every `heads`-th feature; it should get d_head neighbouring ones.",
        "Cut the last axis into (heads, d_head), in this order.",
    ),
    "merged_feature_by_feature": (
        "After attention the features of all heads are interleaved; each head's should stay "
        "together.",
        "In the merged vector, head 0 owns the first d_head numbers, head 1 the next ones.",
    ),
    "keys_before_queries": (
        "Queries and keys are exchanged: the first chunk of the columns was taken for the keys.",
        "The exercise states the order of the chunks: read it again.",
    ),
    "values_before_queries": (
        "The first chunk of the columns was taken for the values.",
        "The exercise states the order of the chunks: read it again.",
    ),
    "chunked_head_by_head": (
        "The columns were read head by head (queries, keys and values of head 0, then of head 1). "
        "That is a layout too, but not the one stated here.",
        "First three chunks of d_model columns; only then heads within each chunk.",
    ),
    "scaled_by_d_model": (
        "The scores are divided by the root of d_model. A head only sums over its own d_head "
        "features.",
        "How many products does one score of one head add up?",
    ),
    "divided_by_d_head": (
        "The scores are divided by d_head and not by its root.",
        "Variances add up; what about standard deviations?",
    ),
    "not_scaled": (
        "The scores are not scaled.",
        "What does the formula of attention divide QKᵀ by?",
    ),
    "softmax_over_queries": (
        "The softmax runs over the queries: columns of the weights sum to 1, not rows.",
        "Each query shares out its attention over the keys. Which axis is that?",
    ),
    "softmax_over_heads": (
        "The softmax runs over the heads: for each pair of tokens the heads sum to 1.",
        "Count axes from the end; the axis of the heads stands apart from the softmax.",
    ),
    "one_set_of_weights": (
        "All heads use the same weights, their mean. Then there is one head only.",
        "Each head keeps its own weights for its own values.",
    ),
}
"""Cause and next step of each of the mistakes in `WRONG_STEPS`."""
