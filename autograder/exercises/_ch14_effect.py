"""Chapter 14: what hiding one key does to the output of attention."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.case_making import draw_mask, draw_sizes
from autograder.exercise import Exercise, Group, Misconception

BATCH = 2


def masking_effect_cases(rng):
    """All keys visible; some hidden; queries that see a single key."""

    def inputs(make_mask):
        s = draw_sizes(rng, "queries", "keys", "d_k", "d_v", among=(3, 4, 5, 6))
        return {
            "queries": 1.5 * rng.normal(size=(BATCH, s.queries, s.d_k)),
            "keys": rng.normal(size=(BATCH, s.keys, s.d_k)),
            "values": rng.normal(size=(BATCH, s.keys, s.d_v)) + 0.7,
            "mask": make_mask(BATCH, s.queries, s.keys),
        }

    def several(*shape):
        mask = draw_mask(rng, *shape)
        hidden = rng.integers(shape[-1], size=(*shape[:-1], 1))
        alone = mask.sum(axis=-1, keepdims=True) == 1  # those see all keys but one
        return np.where(alone, np.arange(shape[-1]) != hidden, mask)

    def single(*shape):
        mask = draw_mask(rng, *shape)
        mask[:, 0] = np.arange(shape[-1]) == rng.integers(shape[-1], size=(shape[0], 1))
        return mask

    yield Case("values", inputs(lambda *shape: np.ones(shape, dtype=bool)), "all keys are visible")
    yield Case("values", inputs(several), "some are hidden already")
    yield Case("single", inputs(single), "queries that see a single key")


def _weights(queries, keys, mask, scale=True):
    scores = queries @ keys.mT / (math.sqrt(queries.shape[-1]) if scale else 1)
    # a row without any key gives zeros, as PyTorch's own attention does
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1).nan_to_num(0.0)


def _changes(queries, keys, values, mask, scale=True):
    """What hiding each key takes away, (batch, queries, keys, d_v)."""
    output = _weights(queries, keys, mask, scale) @ values
    changes = []
    for key in range(keys.shape[1]):
        fewer = mask.clone()
        fewer[..., key] = False
        changes.append(output - _weights(queries, keys, fewer, scale) @ values)
    return torch.stack(changes, dim=2)


def masking_effect_reference(queries, keys, values, mask):
    """PyTorch's own attention, a key at a time; where nothing is left it gives zeros by itself."""

    def attend(mask):
        output = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return torch.where(mask.any(dim=-1, keepdim=True), output, 0.0)

    effects = []
    for key in range(keys.shape[1]):
        visible = torch.arange(keys.shape[1]) != key
        effects.append(torch.linalg.vector_norm(attend(mask) - attend(mask & visible), dim=-1))
    return torch.stack(effects, dim=-1)


def the_weight_itself(queries, keys, values, mask):
    """Takes the weight for the effect."""
    return _weights(queries, keys, mask)


def the_keys_share(queries, keys, values, mask):
    """The length of the key's own summand."""
    return _weights(queries, keys, mask) * values.norm(dim=-1)[:, None]


def not_shared_out_again(queries, keys, values, mask):
    """The distance from the output, weighed, but not shared out again."""
    weights = _weights(queries, keys, mask)
    gaps = values[:, None] - (weights @ values)[:, :, None]
    return weights * gaps.norm(dim=-1)


def squared(queries, keys, values, mask):
    """The square of the length."""
    return _changes(queries, keys, values, mask).square().sum(dim=-1)


def mean_over_features(queries, keys, values, mask):
    """Mean of absolute changes."""
    return _changes(queries, keys, values, mask).abs().mean(dim=-1)


def sum_over_features(queries, keys, values, mask):
    """Sum of absolute changes."""
    return _changes(queries, keys, values, mask).abs().sum(dim=-1)


def not_scaled(queries, keys, values, mask):
    """Scores are not divided by the root of the width."""
    return _changes(queries, keys, values, mask, scale=False).norm(dim=-1)


def mask_forgotten(queries, keys, values, mask):
    """Keys that were hidden before are seen."""
    return _changes(queries, keys, values, torch.ones_like(mask)).norm(dim=-1)


def hidden_for_one_query(queries, keys, values, mask):
    """Hides key k from query k only."""
    effects = _changes(queries, keys, values, mask).norm(dim=-1)
    own = torch.eye(*effects.shape[1:], dtype=torch.bool)
    return torch.where(own, effects, 0.0)


def score_set_to_zero(queries, keys, values, mask):
    """Sets the hidden key's score to 0 instead of minus infinity."""
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    output = _weights(queries, keys, mask) @ values
    effects = []
    for key in range(keys.shape[1]):
        changed = scores.index_fill(2, torch.tensor([key]), 0.0)
        weights = changed.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        effects.append((output - weights @ values).norm(dim=-1))
    return torch.stack(effects, dim=-1)


def value_set_to_zero_and_others_kept(queries, keys, values, mask):
    """The output without the key's summand, compared in length only."""
    weights = _weights(queries, keys, mask)
    output = weights @ values
    rest = output[:, :, None] - weights[..., None] * values[:, None]
    return (output.norm(dim=-1)[..., None] - rest.norm(dim=-1)).abs()


def only_key_leaves_nothing(queries, keys, values, mask):
    """Where a single key is visible, hiding it counts as no change."""
    effects = _changes(queries, keys, values, mask).norm(dim=-1)
    return torch.where(mask.sum(dim=-1, keepdim=True) == 1, 0.0, effects)


def nan_where_nothing_is_left(queries, keys, values, mask):
    """The softmax of a row without any key is NaN."""
    effects = _changes(queries, keys, values, mask).norm(dim=-1)
    return torch.where((mask.sum(dim=-1, keepdim=True) == 1) & mask, torch.nan, effects)


def mean_where_nothing_is_left(queries, keys, values, mask):
    """A very negative number for minus infinity: with nothing left, all keys weigh the same."""
    effects = _changes(queries, keys, values, mask).norm(dim=-1)
    output = _weights(queries, keys, mask) @ values
    average = (output - values.mean(dim=1, keepdim=True)).norm(dim=-1)
    return torch.where((mask.sum(dim=-1, keepdim=True) == 1) & mask, average[..., None], effects)


def by_formula(queries, keys, values, mask):
    """Right: w / (1 - w) · |value - output|, and the output's length for a single key."""
    weights = _weights(queries, keys, mask)
    output = weights @ values
    gaps = (values[:, None] - output[:, :, None]).norm(dim=-1)
    alone = mask.sum(dim=-1, keepdim=True) == 1
    ratio = weights / (1 - weights).masked_fill(alone, 1.0)
    return torch.where(alone & mask, output.norm(dim=-1)[..., None], ratio * gaps)


def by_all_masks_at_once(queries, keys, values, mask):
    """Right: one mask for every hidden key, all in one batch."""
    count = keys.shape[1]
    fewer = mask[:, None] & ~torch.eye(count, dtype=torch.bool)[None, :, None]
    scores = (queries @ keys.mT / queries.shape[-1] ** 0.5)[:, None]
    powers = torch.exp(scores - scores.amax(-1, keepdim=True)) * fewer
    weights = powers / powers.sum(-1, keepdim=True).clamp(min=1e-300)
    outputs = weights @ values[:, None]
    whole = _weights(queries, keys, mask) @ values
    return (outputs - whole[:, None]).pow(2).sum(-1).sqrt().permute(0, 2, 1)


def by_deleting_keys(queries, keys, values, mask):
    """Right: query by query, the key is taken out of the list."""
    result = torch.zeros(mask.shape, dtype=queries.dtype)

    def output(b, q, kept):
        if not kept:
            return torch.zeros_like(values[b, 0])
        scores = keys[b, kept] @ queries[b, q] / queries.shape[-1] ** 0.5
        return scores.softmax(0) @ values[b, kept]

    for b, q, k in torch.nonzero(mask).tolist():
        kept = torch.nonzero(mask[b, q]).flatten().tolist()
        rest = [key for key in kept if key != k]
        result[b, q, k] = torch.dist(output(b, q, kept), output(b, q, rest))
    return result


MASKING_EFFECT = Exercise(
    id="masking_effect",
    title="What one key does",
    asks="Hide each key in turn and measure by how much the output changes.",
    parameters=("queries", "keys", "values", "mask"),
    outputs=("effects",),
    driver="tensor_function",
    groups={
        "values": Group(2, "effects of hidden keys"),
        "single": Group(1, "queries that see a single key"),
    },
    cases=masking_effect_cases,
    reference=masking_effect_reference,
    misconceptions=(
        Misconception(
            the_weight_itself,
            "These are the attention weights: how bright the line is, not what it does.",
            "Compute the output twice, with the key and without it.",
        ),
        Misconception(
            the_keys_share,
            "This is the length of weight times value, as if the other weights stayed.",
            "If a key is hidden, the remaining weights still sum to 1.",
        ),
        Misconception(
            not_shared_out_again,
            "The remaining weights are not shared out again: they must sum to 1.",
            "Compute the softmax again, with the key hidden.",
        ),
        Misconception(
            squared,
            "This is the squared length of the change.",
            "Which step is missing between a sum of squares and a length?",
        ),
        Misconception(
            mean_over_features,
            "This is the mean of the absolute changes; the Euclidean length is asked.",
            "Square, sum, square root.",
        ),
        Misconception(
            sum_over_features,
            "This is the sum of the absolute changes; the Euclidean length is asked.",
            "Square, sum, square root.",
        ),
        Misconception(
            not_scaled,
            "The scores are not divided by the square root of the queries' width.",
            "Which factor stands before the softmax?",
        ),
        Misconception(
            mask_forgotten,
            "Keys that `mask` hides take part.",
            "What is the effect of hiding a key that is hidden already?",
        ),
        Misconception(
            hidden_for_one_query,
            "Each key is hidden from one query only; all queries are asked.",
            "How many effects does hiding one key have?",
        ),
        Misconception(
            score_set_to_zero,
            "The hidden key's score becomes 0, which still has weight.",
            "Which score gives the weight 0?",
        ),
        Misconception(
            value_set_to_zero_and_others_kept,
            "Two lengths are compared; the length of the difference is asked, after the remaining "
            "weights have been shared out again.",
            "A vector may turn without getting longer.",
        ),
        Misconception(
            only_key_leaves_nothing,
            "Hiding the only visible key counts as no change.",
            "What is the output if nothing is left, by point 3, and what was it before?",
        ),
        Misconception(
            nan_where_nothing_is_left,
            "A query that has lost its only key gets NaN: the softmax of nothing.",
            "Point 3 says what the output is if nothing is left.",
        ),
        Misconception(
            mean_where_nothing_is_left,
            "A query that has lost its only key gets the mean of all values: all its scores are "
            "equally low.",
            "Point 3 says what the output is if nothing is left.",
        ),
    ),
    accepted=(by_formula, by_all_masks_at_once, by_deleting_keys),
    equivalent_mutants={
        "`output - attend(fewer)` → `attend(fewer) - output`": "the length of the difference is "
        "the same",
    },
)
