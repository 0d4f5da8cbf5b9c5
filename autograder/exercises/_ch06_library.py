"""Chapter 06: PyTorch's own attention and its masks."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def library_attention_cases(rng):
    """Padding of unequal lengths, fewer queries than keys, queries that see nothing."""

    def case(group, about, causal, padded=True, empty=False, same_length=False):
        s = draw_sizes(rng, "batch", "heads", "d_v", among=(2, 3, 4))
        longer = draw_sizes(rng, "q", "k", "d_k", among=(5, 6, 7))
        q, k = sorted((longer.q, longer.k))
        q = k if same_length else q
        queries, keys = (rng.normal(size=(s.batch, s.heads, n, longer.d_k)) for n in (q, k))
        values = rng.normal(size=(s.batch, s.heads, k, s.d_v))
        lengths = draw_lengths(rng, s.batch, k) if padded else np.full(s.batch, k)
        padding = np.arange(k) >= lengths[:, None]
        if empty:
            padding[rng.integers(s.batch)] = True
        elif padded:
            # Padding in front, so that a causal query may have padding before it.
            padding = np.where(rng.random((s.batch, 1)) < 0.5, padding[:, ::-1], padding)
            padding[:, k - q] = False
        hidden = padding[:, None, :, None]
        keys = np.where(hidden, 20 * keys, keys)
        values = np.where(hidden, values + 100.0, values)
        inputs = {"queries": queries, "keys": keys, "values": values, "padding": padding}
        return Case(group, {**inputs, "causal": causal}, about)

    yield case("padding", "padding, fewer queries than keys", False)
    yield case("causal", "causal, no padding, fewer queries than keys", True, padded=False)
    yield case("causal", "causal with padding, as many queries as keys", True, same_length=True)
    yield case("empty", "a sentence of padding only", False, empty=True)
    yield case("empty", "such a sentence, causal", True, empty=True)


def library_attention_reference(queries, keys, values, padding, causal):
    """Query by query, over the keys that it sees."""
    q, k, d_k = queries.shape[-2], keys.shape[-2], queries.shape[-1]
    output = torch.zeros(*queries.shape[:-1], values.shape[-1], dtype=queries.dtype)
    for b, h, i in np.ndindex(queries.shape[:-1]):
        last = k - q + i if causal else k - 1
        seen = [j for j in range(last + 1) if not padding[b, j]]
        if seen:
            scores = keys[b, h, seen] @ queries[b, h, i] / math.sqrt(d_k)
            output[b, h, i] = torch.exp(scores - scores.logsumexp(0)) @ values[b, h, seen]
    return output


def visible(queries, keys, padding, causal, first=None, diagonal=None):
    """The mask as it should be: (batch, 1, q, k), True where a query may look."""
    q, k = queries.shape[-2], keys.shape[-2]
    mask = ~padding[:, None, None, :]
    if causal:
        first = k - q if first is None else first
        mask = mask & torch.ones(q, k, dtype=torch.bool).tril(first)
    return mask


def padding_passed_as_it_is(queries, keys, values, padding, causal):
    """Passes True where padding is, which PyTorch's function reads as visible."""
    mask = padding[:, None, None, :]
    if causal:
        q, k = queries.shape[-2], keys.shape[-2]
        mask = mask & torch.ones(q, k, dtype=torch.bool).tril(k - q)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def all_of_it_inverted(queries, keys, values, padding, causal):
    """Builds a mask that is True where nothing may be seen."""
    mask = ~visible(queries, keys, padding, causal)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def mask_of_ones_and_zeros(queries, keys, values, padding, causal):
    """Passes 1.0 and 0.0, which are added to the scores."""
    mask = visible(queries, keys, padding, causal).to(queries.dtype)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def causal_from_the_first_key(queries, keys, values, padding, causal):
    """Aligns the triangle at the first key, as `is_causal=True` does."""
    mask = visible(queries, keys, padding, causal, first=0)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def both_masks_at_once(queries, keys, values, padding, causal):
    """Passes a mask and `is_causal`, which PyTorch refuses."""
    mask = visible(queries, keys, padding, False)
    return F.scaled_dot_product_attention(queries, keys, values, mask, is_causal=causal)


def causal_only(queries, keys, values, padding, causal):
    """Drops the padding mask where the causal one is asked for."""
    if not causal:
        mask = visible(queries, keys, padding, False)
        return F.scaled_dot_product_attention(queries, keys, values, mask)
    mask = visible(queries, keys, torch.zeros_like(padding), True)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def padding_ignored(queries, keys, values, padding, causal):
    """Has a causal mask, and none for padding."""
    mask = visible(queries, keys, torch.zeros_like(padding), causal)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def causal_ignored(queries, keys, values, padding, causal):
    """Has a padding mask and no causal one."""
    mask = visible(queries, keys, padding, False)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def blind_to_itself(queries, keys, values, padding, causal):
    """Hides the query's own position too."""
    first = keys.shape[-2] - queries.shape[-2] - 1
    mask = visible(queries, keys, padding, causal, first=first)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def either_of_the_two(queries, keys, values, padding, causal):
    """Joins the two masks by "or"."""
    mask = visible(queries, keys, padding, False)
    if causal:
        mask = mask | visible(queries, keys, torch.zeros_like(padding), True)
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def padded_sentence_is_nan(queries, keys, values, padding, causal):
    """Computes it by hand and divides zero by zero where nothing is visible."""
    mask = visible(queries, keys, padding, causal)
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ values


def hidden_by_a_billion(queries, keys, values, padding, causal):
    """Adds −1e9: where all scores are that low, the hidden keys share the weight."""
    mask = visible(queries, keys, padding, causal)
    added = torch.zeros(mask.shape, dtype=queries.dtype).masked_fill(~mask, -1e9)
    return F.scaled_dot_product_attention(queries, keys, values, added)


def hidden_by_the_lowest_number(queries, keys, values, padding, causal):
    """Adds the smallest number of the type: rows that see nothing become means."""
    mask = visible(queries, keys, padding, causal)
    lowest = torch.finfo(queries.dtype).min
    added = torch.zeros(mask.shape, dtype=queries.dtype).masked_fill(~mask, lowest)
    return F.scaled_dot_product_attention(queries, keys, values, added)


def no_axis_for_the_heads(queries, keys, values, padding, causal):
    """Lets the batch of the mask meet the heads of the scores."""
    mask = visible(queries, keys, padding, causal)[:, 0]
    return F.scaled_dot_product_attention(queries, keys, values, mask)


def attention_by_boolean_mask(queries, keys, values, padding, causal):
    """Right: a boolean mask, two conditions on positions."""
    q, k = queries.shape[-2], keys.shape[-2]
    mask = ~padding[:, None, None, :]
    if causal:
        mask = mask & (torch.arange(k) <= torch.arange(k - q, k)[:, None])
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


def attention_by_added_mask(queries, keys, values, padding, causal):
    """Right: −inf is added to what is hidden."""
    mask = ~visible(queries, keys, padding, causal)
    added = torch.zeros(mask.shape, dtype=queries.dtype).masked_fill(mask, -torch.inf)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=added)


def attention_by_hand(queries, keys, values, padding, causal):
    """Right: no library function; zeros where nothing is visible."""
    mask = visible(queries, keys, padding, causal)
    scores = torch.einsum("bhqd,bhkd->bhqk", queries, keys) * queries.shape[-1] ** -0.5
    weights = scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return torch.einsum("bhqk,bhkv->bhqv", weights, values)


def attention_sentence_by_sentence(queries, keys, values, padding, causal):
    """Right: one sentence at a time, with its hidden keys cut out."""
    q, k = queries.shape[-2], keys.shape[-2]
    triangle = torch.ones(q, k, dtype=torch.bool)
    triangle = triangle.tril(k - q) if causal else triangle
    outputs = []
    for sentence in range(len(queries)):
        real = ~padding[sentence]
        parts = (queries[sentence], keys[sentence][:, real], values[sentence][:, real])
        if real.any():
            outputs.append(F.scaled_dot_product_attention(*parts, triangle[:, real]))
        else:
            outputs.append(torch.zeros(*parts[0].shape[:-1], values.shape[-1], dtype=values.dtype))
    return torch.stack(outputs)


LIBRARY_ATTENTION = Exercise(
    id="library_attention",
    title="PyTorch's own attention, masked right",
    asks="Call PyTorch's attention so that padding and later tokens stay hidden.",
    parameters=("queries", "keys", "values", "padding", "causal"),
    groups={
        "padding": Group(1, "padding"),
        "causal": Group(1, "no look into the future"),
        "empty": Group(1, "sentences of padding only"),
    },
    cases=library_attention_cases,
    reference=library_attention_reference,
    driver="tensor_function",
    misconceptions=(
        Misconception(
            padding_passed_as_it_is,
            "`padding` is True where nothing may be seen; PyTorch's attention reads it as visible.",
            "What does True mean in `padding`, and what in `attn_mask`?",
        ),
        Misconception(
            all_of_it_inverted,
            "The whole mask is the wrong way round: True should be what may be seen.",
            "What does True mean in `attn_mask`?",
        ),
        Misconception(
            mask_of_ones_and_zeros,
            "A mask of floating-point numbers is added to the scores: 1 and 0 hide nothing.",
            "Of which type must a mask be that is not added?",
        ),
        Misconception(
            causal_from_the_first_key,
            "The triangle starts at the first key, so the last query misses keys.",
            "The queries are the last tokens: which keys may the last query see?",
        ),
        Misconception(
            both_masks_at_once,
            "PyTorch takes a mask or `is_causal`, not both.",
            "Can one mask say both things?",
        ),
        Misconception(
            causal_only,
            "With `causal`, padding is no longer hidden.",
            "A key must be no padding *and* not later. How do you join two masks?",
        ),
        Misconception(
            padding_ignored,
            "Padding has weight: `padding` has no effect.",
            "Where does `padding` enter your mask?",
        ),
        Misconception(
            causal_ignored,
            "Queries look at later tokens: `causal` has no effect.",
            "Where does `causal` enter your mask?",
        ),
        Misconception(
            blind_to_itself,
            "A query does not see its own position.",
            "Does the diagonal belong to the visible part?",
        ),
        Misconception(
            either_of_the_two,
            "A key is visible if one of the two masks says so; both must.",
            "A key must be no padding *and* not later. How do you join two masks?",
        ),
        Misconception(
            padded_sentence_is_nan,
            "A query that sees nothing becomes 0/0; the contract asks for zeros.",
            "What does the library's function give for such a query?",
        ),
        Misconception(
            hidden_by_a_billion,
            "Hidden keys get a very low score and not −∞: a query that sees nothing sees them all.",
            "What is the softmax of scores that are all equally low?",
        ),
        Misconception(
            hidden_by_the_lowest_number,
            "Hidden keys get a very low score and not −∞: a query that sees nothing sees them all.",
            "What is the softmax of scores that are all equally low?",
        ),
        Misconception(
            no_axis_for_the_heads,
            "The mask has no axis for the heads, so its sentences meet the heads of the scores.",
            "Write the four axes of the scores and under them those of your mask, from the right.",
        ),
    ),
    accepted=(
        attention_by_boolean_mask,
        attention_by_added_mask,
        attention_by_hand,
        attention_sentence_by_sentence,
    ),
    equivalent_mutants={
        "`queries.shape[-2]` → `queries.shape[2]`": "queries have four axes",
        "`keys.shape[-2]` → `keys.shape[2]`": "keys have four axes",
    },
)
