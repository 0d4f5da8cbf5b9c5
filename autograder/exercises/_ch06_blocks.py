"""Chapter 06: attention block by block, which never holds all scores."""

from __future__ import annotations

import math

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_mask, draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch06_merge import (
    merge_changed,
    merged_with_a_floor,
    nothing_rescaled,
    only_the_sum_rescaled,
    unseen_row_is_nan,
)


def blocked_attention_cases(rng):
    """Blocks that fit and that don't; padding, causal; queries that see nothing; large scores."""

    def case(group, about, ragged=True, causal=False, hidden=False, scale=1.0, shift=0.0):
        s = draw_sizes(rng, "block", "d_k", "d_v", among=(2, 3, 5))
        batch, q = 2, int(rng.integers(12, 15))
        blocks = -(-q // s.block) + 1
        k = blocks * s.block + (1 if ragged else 0)
        queries = scale * rng.normal(size=(batch, q, s.d_k))
        keys, values = rng.normal(size=(batch, k, s.d_k)), rng.normal(size=(batch, k, s.d_v))
        visible = None
        if hidden:
            visible = draw_mask(rng, batch, k)
            visible[0, : s.block] = False  # a first block without any
            visible[1] = np.arange(k) >= k - 2  # the first causal queries see nothing
            keys = np.where(visible[..., None], keys, 9 * keys)
            values = np.where(visible[..., None], values, 50 + values)
        if shift:
            queries[..., 0], keys[..., 0] = shift, np.where(keys[..., 0] > 0, 1.0, 1.1)
        inputs = {"queries": queries, "keys": keys, "values": values, "block": s.block}
        allowed = batch * max(q, k) * max(s.block, s.d_k, s.d_v)
        inputs |= {"visible": visible, "causal": causal, "allowed": allowed}
        return Case(group, inputs, about)

    yield case("values", "a last block that is not full")
    yield case("masks", "hidden keys, blocks that fit", hidden=True, ragged=False)
    yield case("masks", "causal, fewer queries than keys", causal=True)
    yield case(
        "masks", "causal with hidden keys, queries that see nothing", hidden=True, causal=True
    )
    yield case("large", "large scores", scale=400.0)
    yield case("large", "very negative scores", shift=-2000.0)


def blocked_attention_reference(queries, keys, values, block, visible=None, causal=False):
    """One query at a time, over all keys that it sees."""
    batch, q, d_k = queries.shape
    k = keys.shape[1]
    output = torch.zeros(batch, q, values.shape[-1], dtype=queries.dtype)
    for b, i in np.ndindex(batch, q):
        seen = torch.ones(k, dtype=torch.bool) if visible is None else visible[b].clone()
        if causal:
            seen[k - q + i + 1 :] = False
        if seen.any():
            scores = keys[b, seen] @ queries[b, i] / math.sqrt(d_k)
            output[b, i] = torch.exp(scores - scores.logsumexp(0)) @ values[b, seen]
    return output


def _mask_of_block(queries, keys, start, stop, visible, causal, first=None):
    """Booleans (batch or 1, q or 1, stop − start), or None."""
    q, k = queries.shape[1], keys.shape[1]
    mask = None if visible is None else visible[:, None, start:stop]
    if causal:
        first = k - q if first is None else first
        rows = torch.arange(q)[:, None] + first
        earlier = torch.arange(start, stop) <= rows
        mask = earlier if mask is None else mask & earlier
    return mask


def _blocked(queries, keys, values, block, visible, causal, merge=merge_changed, **changes):
    """Attention in blocks with single parts exchanged."""
    batch, q, d_k = queries.shape
    k = keys.shape[1]
    first = changes.get("first_largest", -torch.inf)
    largest = torch.full((batch, q), first, dtype=queries.dtype)
    total = torch.zeros_like(largest)
    output = torch.zeros(batch, q, values.shape[-1], dtype=queries.dtype)
    for start in range(0, changes.get("end", k), block):
        stop = min(start + block, k)
        scores = queries @ keys[:, start:stop].mT / changes.get("root", math.sqrt(d_k))
        mask = _mask_of_block(queries, keys, start, stop, visible, causal, changes.get("first_row"))
        if mask is not None:
            scores = changes.get("hide", lambda s, m: s.masked_fill(~m, -torch.inf))(scores, mask)
        largest, total, output = merge(scores, values[:, start:stop], largest, total, output)
    if changes.get("undivided"):
        return output
    return output / torch.where(total == 0, 1.0, total)[..., None]


def last_block_dropped(queries, keys, values, block, visible=None, causal=False):
    """Goes through full blocks only."""
    end = keys.shape[1] // block * block
    return _blocked(queries, keys, values, block, visible, causal, end=end)


def blocks_without_rescaling(queries, keys, values, block, visible=None, causal=False):
    """Adds sums that count from different maxima."""
    return _blocked(queries, keys, values, block, visible, causal, nothing_rescaled)


def blocks_with_stale_output(queries, keys, values, block, visible=None, causal=False):
    """Rescales the sum and not the output."""
    return _blocked(queries, keys, values, block, visible, causal, only_the_sum_rescaled)


def softmax_of_each_block(queries, keys, values, block, visible=None, causal=False):
    """Takes a softmax in each block and averages the blocks' outputs."""

    def merge(scores, values, largest, total, output):
        weights = torch.nan_to_num(scores.softmax(-1))
        return largest, total + 1, output + weights @ values

    return _blocked(queries, keys, values, block, visible, causal, merge)


def first_maximum_zero(queries, keys, values, block, visible=None, causal=False):
    """Starts the running maximum at 0."""
    return _blocked(queries, keys, values, block, visible, causal, first_largest=0.0)


def never_divided(queries, keys, values, block, visible=None, causal=False):
    """Forgets the division at the end."""
    return _blocked(queries, keys, values, block, visible, causal, undivided=True)


def blocks_not_scaled(queries, keys, values, block, visible=None, causal=False):
    """Forgets the root."""
    return _blocked(queries, keys, values, block, visible, causal, root=1.0)


def hides_the_visible(queries, keys, values, block, visible=None, causal=False):
    """Reads `visible` the wrong way round."""
    turned = None if visible is None else ~visible
    return _blocked(queries, keys, values, block, turned, causal)


def mask_added_as_number(queries, keys, values, block, visible=None, causal=False):
    """Adds 0 or 1 to the scores."""
    hide = lambda scores, mask: scores + mask  # noqa: E731
    return _blocked(queries, keys, values, block, visible, causal, hide=hide)


def triangle_from_the_first_key(queries, keys, values, block, visible=None, causal=False):
    """Takes the queries for the first tokens."""
    return _blocked(queries, keys, values, block, visible, causal, first_row=0)


def causal_within_blocks(queries, keys, values, block, visible=None, causal=False):
    """Counts the keys of each block from 0."""

    batch, q, d_k = queries.shape
    k = keys.shape[1]
    largest = torch.full((batch, q), -torch.inf, dtype=queries.dtype)
    state = (largest, torch.zeros_like(largest), torch.zeros_like(queries @ values[:, :d_k]))
    for start in range(0, k, block):
        part = slice(start, start + block)
        scores = queries @ keys[:, part].mT / math.sqrt(d_k)
        shown = None if visible is None else visible[:, part]
        mask = _mask_of_block(queries, keys, 0, scores.shape[-1], shown, causal)
        scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
        state = merge_changed(scores, values[:, part], *state)
    return state[2] / torch.where(state[1] == 0, 1.0, state[1])[..., None]


def unseen_query_is_nan(queries, keys, values, block, visible=None, causal=False):
    """Subtracts −∞ from −∞ in blocks where a query sees nothing."""
    return _blocked(queries, keys, values, block, visible, causal, unseen_row_is_nan)


def division_unguarded(queries, keys, values, block, visible=None, causal=False):
    """Divides 0 by 0 where a query has seen no key at all."""
    total = _blocked(queries, keys, torch.ones_like(values), block, visible, causal, undivided=True)
    return _blocked(queries, keys, values, block, visible, causal, undivided=True) / total


def hidden_by_a_low_score(queries, keys, values, block, visible=None, causal=False):
    """Puts −1e9 for −∞: a query that sees nothing then sees all keys alike."""
    hide = lambda scores, mask: scores.masked_fill(~mask, -1e9)  # noqa: E731
    return _blocked(queries, keys, values, block, visible, causal, hide=hide)


def blocks_overflow(queries, keys, values, block, visible=None, causal=False):
    """Takes exp of scores as they are; then no block needs rescaling."""

    def merge(scores, values, largest, total, output):
        powers = torch.exp(scores)
        return largest, total + powers.sum(-1), output + powers @ values

    return _blocked(queries, keys, values, block, visible, causal, merge)


def all_scores_at_once(queries, keys, values, block, visible=None, causal=False):
    """Makes all scores and cuts them into blocks afterwards."""
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    mask = _mask_of_block(queries, keys, 0, keys.shape[1], visible, causal)
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return torch.nan_to_num(scores.softmax(-1)) @ values


def whole_mask_at_once(queries, keys, values, block, visible=None, causal=False):
    """Has blocks of scores, and a mask for all pairs."""
    whole = _mask_of_block(queries, keys, 0, keys.shape[1], visible, True)
    assert whole is not None
    return _blocked(queries, keys, values, block, visible, causal)


def blocked_by_lists(queries, keys, values, block, visible=None, causal=False):
    """Right: `split`, and the merge with a floor."""
    batch, q, d_k = queries.shape
    queries = queries / d_k**0.5
    state = (
        queries.new_full((batch, q), -torch.inf),
        queries.new_zeros(batch, q),
        queries.new_zeros(batch, q, values.shape[-1]),
    )
    rows, start = torch.arange(keys.shape[1] - q, keys.shape[1])[:, None], 0
    for part, some in zip(keys.split(block, 1), values.split(block, 1), strict=True):
        stop = start + part.shape[1]
        scores = torch.einsum("bqd,bkd->bqk", queries, part)
        if visible is not None:
            scores = torch.where(visible[:, None, start:stop], scores, -torch.inf)
        if causal:
            scores = torch.where(torch.arange(start, stop) <= rows, scores, -torch.inf)
        state, start = merged_with_a_floor(scores, some, *state), stop
    return torch.nan_to_num(state[2] / state[1].unsqueeze(-1))


def blocked_by_logsumexp(queries, keys, values, block, visible=None, causal=False):
    """Right: keeps averages and the logarithm of the sum instead."""
    log_total = queries.new_full((*queries.shape[:2], 1), -torch.inf)
    output = queries.new_zeros(*queries.shape[:2], values.shape[-1])
    for start in range(0, keys.shape[1], block):
        stop = min(start + block, keys.shape[1])
        scores = queries @ keys[:, start:stop].mT / math.sqrt(queries.shape[-1])
        mask = _mask_of_block(queries, keys, start, stop, visible, causal)
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e300)
        block_log = scores.logsumexp(-1, keepdim=True)
        block_log = torch.where(block_log < -1e299, -torch.inf, block_log)
        both = torch.logaddexp(log_total, block_log)
        part = scores.softmax(-1) @ values[:, start:stop]
        shares = torch.nan_to_num(torch.exp(torch.stack([log_total, block_log]) - both))
        output, log_total = shares[0] * output + shares[1] * part, both
    return output


def blocked_key_by_key(queries, keys, values, block, visible=None, causal=False):
    """Right: one key at a time, whatever the block; in place on its own arrays."""
    batch, q, d_k = queries.shape
    k = keys.shape[1]
    largest = torch.full((batch, q, 1), -torch.inf, dtype=queries.dtype)
    total, output = torch.zeros_like(largest), torch.zeros(batch, q, values.shape[-1]).to(queries)
    position = torch.arange(k - q, k)[None, :, None]
    for key in range(k):
        score = (queries * keys[:, key, None]).sum(-1, keepdim=True) / d_k**0.5
        hidden = torch.zeros_like(score, dtype=torch.bool)
        if visible is not None:
            hidden |= ~visible[:, key, None, None]
        if causal:
            hidden |= position < key
        score = torch.where(hidden, largest, score)
        highest = torch.maximum(largest, score)
        base = torch.where(highest.isinf(), 0.0, highest)
        old, new = torch.exp(largest - base), torch.where(hidden, 0.0, torch.exp(score - base))
        total.mul_(old).add_(new)
        output.mul_(old).add_(new * values[:, key, None])
        largest = highest
    return output.div_(total.masked_fill(total == 0, 1.0))


BLOCKED_ATTENTION = Exercise(
    id="blocked_attention",
    title="Attention that never holds all scores",
    asks="Compute attention exactly, block by block, with no array of all pairs.",
    parameters=("queries", "keys", "values", "block", "visible", "causal", "allowed"),
    groups={
        "values": Group(2, "no mask"),
        "masks": Group(2, "hidden keys, causal"),
        "large": Group(1, "large and very negative scores"),
    },
    cases=blocked_attention_cases,
    reference=blocked_attention_reference,
    outputs=("result", "elements of the largest tensor"),
    driver="measured_function",
    seconds=6.0,  # every operation is watched, which is slow on a busy machine
    forbidden=("*scaled_dot_product*", "*multi_head_attention*"),
    misconceptions=(
        Misconception(
            last_block_dropped,
            "Keys after the last full block are left out.",
            "How many blocks are there if the block's size does not divide the number of keys?",
        ),
        Misconception(
            blocks_without_rescaling,
            "Sums of blocks are added though they count from different maxima.",
            "By which factor are the old sums too large when the maximum rises?",
        ),
        Misconception(
            blocks_with_stale_output,
            "The running sum is rescaled and the running output is not.",
            "Both are sums of the same powers: what happens to one happens to the other.",
        ),
        Misconception(
            softmax_of_each_block,
            "Each block has a softmax of its own, and all blocks count alike.",
            "Should a block with high scores weigh as much as one with low scores?",
        ),
        Misconception(
            first_maximum_zero,
            "The running maximum starts at 0, so very negative scores all vanish.",
            "What is the maximum of nothing?",
        ),
        Misconception(
            never_divided,
            "The output is a weighted sum whose weights do not sum to 1.",
            "What is left to do after the last block?",
        ),
        Misconception(
            blocks_not_scaled,
            "The scores are not scaled.",
            "By what does the formula divide QKᵀ?",
        ),
        Misconception(
            hides_the_visible,
            "`visible` is read the wrong way round: True means that a key may be seen.",
            "Which scores become −∞ in your code?",
        ),
        Misconception(
            mask_added_as_number,
            "The mask is added as 0 and 1: it hides nothing.",
            "Which score has the weight 0?",
        ),
        Misconception(
            triangle_from_the_first_key,
            "The queries are taken for the first tokens; they are the last ones.",
            "At which position does the first of q queries stand among k keys?",
        ),
        Misconception(
            causal_within_blocks,
            "Positions of keys are counted from 0 again in every block.",
            "At which position does the first key of a block stand?",
        ),
        Misconception(
            unseen_query_is_nan,
            "−∞ minus −∞ is NaN where a query has seen nothing yet.",
            "What may be subtracted from −∞ so that exp gives 0?",
        ),
        Misconception(
            blocks_overflow,
            "exp is taken of scores from which nothing was subtracted.",
            "Which number makes the largest power equal to 1?",
        ),
        Misconception(
            all_scores_at_once,
            "An array of all queries times all keys is made: no memory is saved.",
            "Which line makes a tensor with both q and k in its shape?",
        ),
        Misconception(
            whole_mask_at_once,
            "The scores come in blocks, but a mask for all pairs is made.",
            "Which part of the mask does one block need?",
        ),
        Misconception(
            division_unguarded,
            "A query that has seen no key is divided 0 by 0 at the end.",
            "What is the running sum of such a query, and what does the contract ask for?",
        ),
        Misconception(
            hidden_by_a_low_score,
            "Hidden keys get a very low score and not −∞: a query that sees nothing sees them all.",
            "What is exp of a score minus the largest score, if all are equally low?",
        ),
    ),
    accepted=(blocked_by_lists, blocked_by_logsumexp, blocked_key_by_key),
    equivalent_mutants={
        "`keys[:, part].transpose(1, 2)` → "
        "`keys[:, part].transpose(2, 1)`": "two axes change places either way",
        "`total.masked_fill(total == 0, 1.0)` → "
        "`total.masked_fill(total == 0, 2.0)`": "0 / 2 is 0 like 0 / 1",
    },
)
