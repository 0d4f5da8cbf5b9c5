"""Chapter 04: one mask of padding and future for a batch of heads."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from attention_course.judging import Case
from autograder.case_making import draw_lengths
from autograder.exercise import Exercise, Group, Misconception


def attend_with_padding_cases(rng):
    """Square and not, causal and not, large numbers in the padding, and an empty sentence."""
    batch, heads = (int(n) for n in rng.permutation((2, 3)))
    for group, queries, keys, causal, about in (
        ("square", 3, 3, False, "padding only"),
        ("square", 4, 4, True, "padding and future"),
        ("unequal", 2, 4, True, "fewer queries than keys"),
        ("empty", 2, 3, True, "a sentence of length 0"),
    ):
        lengths = draw_lengths(rng, batch, keys)
        if batch == 2:  # the longest is always there; the other shall not fit by accident
            lengths[lengths < keys] = keys // 2
        if group == "empty":
            lengths[int(rng.integers(batch))] = 0
        inputs = {
            "queries": rng.normal(size=(batch, heads, queries, 3)),
            "keys": rng.normal(size=(batch, heads, keys, 3)),
            "values": rng.normal(size=(batch, heads, keys, 2)),
        }
        for b, length in enumerate(lengths):
            inputs["keys"][b, :, length:] *= 20
            inputs["values"][b, :, length:] *= 1e6
        yield Case(group, {**inputs, "lengths": lengths, "causal": causal}, about)


def attend_with_padding_reference(queries, keys, values, lengths, causal):
    """One query at a time, over the keys that it may see."""
    batch, heads, q, _ = queries.shape
    k = keys.shape[2]
    mask = torch.zeros(batch, 1, q, k, dtype=torch.bool)
    output = values.new_zeros(batch, heads, q, values.shape[-1])
    for b in range(batch):
        for i in range(q):
            seen = min(int(lengths[b]), i + k - q + 1) if causal else int(lengths[b])
            if seen <= 0:
                continue
            mask[b, 0, i, :seen] = True
            one = (queries[b, :, i : i + 1], keys[b, :, :seen], values[b, :, :seen])
            output[b, :, i] = F.scaled_dot_product_attention(*one)[:, 0]
    return output, mask


def _padding(keys, lengths):
    return torch.arange(keys.shape[2]) < lengths[:, None, None, None]


def _triangle(queries, keys, offset=0):
    q, k = queries.shape[2], keys.shape[2]
    return torch.ones(q, k, dtype=torch.bool).tril(k - q + offset)


def _full(queries, keys, mask):
    return mask.expand(len(queries), 1, queries.shape[2], keys.shape[2])


def _mask(queries, keys, lengths, causal):
    mask = _padding(keys, lengths)
    return _full(queries, keys, mask & _triangle(queries, keys) if causal else mask)


def _attend(queries, keys, values, mask):
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


def _scores(queries, keys):
    return queries @ keys.mT / queries.shape[-1] ** 0.5


def padding_ignored(queries, keys, values, lengths, causal):
    """Only the triangle."""
    mask = _triangle(queries, keys) if causal else torch.ones_like(_triangle(queries, keys))
    mask = _full(queries, keys, mask)
    return _attend(queries, keys, values, mask), mask


def future_ignored(queries, keys, values, lengths, causal):
    """Only the padding."""
    mask = _full(queries, keys, _padding(keys, lengths))
    return _attend(queries, keys, values, mask), mask


def always_causal(queries, keys, values, lengths, causal):
    """Does not look at `causal`."""
    mask = _mask(queries, keys, lengths, True)
    return _attend(queries, keys, values, mask), mask


def either_will_do(queries, keys, values, lengths, causal):
    """Or for and."""
    mask = _padding(keys, lengths)
    mask = _full(queries, keys, mask | _triangle(queries, keys) if causal else mask)
    return _attend(queries, keys, values, mask), mask


def one_padding_token_seen(queries, keys, values, lengths, causal):
    """<= for <."""
    mask = _mask(queries, keys, lengths + 1, causal)
    return _attend(queries, keys, values, mask), mask


def true_means_hidden(queries, keys, values, lengths, causal):
    """Right output, inverted mask."""
    mask = _mask(queries, keys, lengths, causal)
    return _attend(queries, keys, values, mask), ~mask


def mask_used_inverted(queries, keys, values, lengths, causal):
    """Hides what may be seen."""
    mask = _mask(queries, keys, lengths, causal)
    return _attend(queries, keys, values, ~mask), mask


def mask_inverted_from_the_start(queries, keys, values, lengths, causal):
    """True = hidden, used and returned."""
    mask = _mask(queries, keys, lengths, causal)
    return _attend(queries, keys, values, ~mask), ~mask


def rows_hidden_instead_of_columns(queries, keys, values, lengths, causal):
    """The padding mask stands on the side of the queries."""
    places = torch.arange(queries.shape[2]) + keys.shape[2] - queries.shape[2]
    mask = (places < lengths[:, None])[:, None, :, None]
    mask = _full(queries, keys, mask & _triangle(queries, keys) if causal else mask)
    return _attend(queries, keys, values, mask), mask


def triangle_in_the_upper_corner(queries, keys, values, lengths, causal):
    """Right for square masks only."""
    mask = _padding(keys, lengths)
    if causal:
        mask = mask & torch.ones(queries.shape[2], keys.shape[2], dtype=torch.bool).tril()
    mask = _full(queries, keys, mask)
    return _attend(queries, keys, values, mask), mask


def next_token_seen(queries, keys, values, lengths, causal):
    """A triangle that is one too large."""
    mask = _padding(keys, lengths)
    mask = _full(queries, keys, mask & _triangle(queries, keys, 1) if causal else mask)
    return _attend(queries, keys, values, mask), mask


def own_token_not_seen(queries, keys, values, lengths, causal):
    """A triangle that is one too small."""
    mask = _padding(keys, lengths)
    mask = _full(queries, keys, mask & _triangle(queries, keys, -1) if causal else mask)
    return _attend(queries, keys, values, mask), mask


def mask_without_an_axis_for_heads(queries, keys, values, lengths, causal):
    """(batch, queries, keys)."""
    mask = _mask(queries, keys, lengths, causal)
    return _attend(queries, keys, values, mask), mask[:, 0]


def mask_repeated_for_heads(queries, keys, values, lengths, causal):
    """(batch, heads, queries, keys)."""
    mask = _mask(queries, keys, lengths, causal)
    return _attend(queries, keys, values, mask), mask.expand(-1, queries.shape[1], -1, -1)


def mask_tiled_in_the_wrong_order(queries, keys, values, lengths, causal):
    """Folds (batch, heads) into one axis and repeats the masks as (heads, batch)."""
    mask = _mask(queries, keys, lengths, causal)
    tiled = mask.repeat(queries.shape[1], 1, 1, 1).view(*queries.shape[:2], *mask.shape[2:])
    return _attend(queries, keys, values, tiled), mask


def not_a_number_in_empty_rows(queries, keys, values, lengths, causal):
    """Softmax of nothing but −∞."""
    mask = _mask(queries, keys, lengths, causal)
    weights = _scores(queries, keys).masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ values, mask


def mean_of_everything_in_empty_rows(queries, keys, values, lengths, causal):
    """A row of equal scores is uniform: it reads the padding."""
    mask = _mask(queries, keys, lengths, causal)
    return _scores(queries, keys).masked_fill(~mask, -1e9).softmax(dim=-1) @ values, mask


def rows_not_renormalised(queries, keys, values, lengths, causal):
    """Masks the weights; rows sum to less than 1."""
    mask = _mask(queries, keys, lengths, causal)
    return (_scores(queries, keys).softmax(dim=-1) * mask) @ values, mask


def hidden_scores_zero(queries, keys, values, lengths, causal):
    """e to the 0 is 1."""
    mask = _mask(queries, keys, lengths, causal)
    return (_scores(queries, keys) * mask).softmax(dim=-1) @ values, mask


def outputs_of_padding_zeroed(queries, keys, values, lengths, causal):
    """Sets outputs at padded positions to zero, which nobody asked for."""
    mask = _mask(queries, keys, lengths, causal)
    places = torch.arange(queries.shape[2]) + keys.shape[2] - queries.shape[2]
    real = (places < lengths[:, None])[:, None, :, None]
    return _attend(queries, keys, values, mask) * real, mask


def attend_by_sdpa(queries, keys, values, lengths, causal):
    """Right: comparisons that broadcast, PyTorch's attention."""
    q, k = queries.shape[-2], keys.shape[-2]
    mask = torch.arange(k).expand(q, k) < lengths.reshape(-1, 1, 1, 1)
    if causal:
        mask = mask & (torch.arange(k) <= torch.arange(q)[:, None] + k - q)
    return F.scaled_dot_product_attention(queries, keys, values, mask), mask


def attend_by_fill(queries, keys, values, lengths, causal):
    """Right: −∞, softmax, NaN to zero."""
    mask = torch.stack([torch.arange(keys.shape[2]) < n for n in lengths])[:, None, None]
    mask = mask.repeat(1, 1, queries.shape[2], 1)
    if causal:
        mask &= torch.ones(mask.shape[2:]).tril(keys.shape[2] - queries.shape[2]).bool()
    scores = torch.einsum("bhqd,bhkd->bhqk", queries, keys) / math.sqrt(queries.shape[-1])
    weights = scores.masked_fill(mask == 0, -math.inf).softmax(-1).nan_to_num(0.0)
    return weights @ values, mask


def attend_by_renormalising(queries, keys, values, lengths, causal):
    """Right: softmax first, masked weights made to sum to 1 again."""
    mask = _mask(queries, keys, lengths, causal)
    weights = _scores(queries, keys).softmax(dim=-1) * mask
    total = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(total == 0, 1.0, total) @ values, mask


def attend_by_large_negative(queries, keys, values, lengths, causal):
    """Right: −1e9, and empty rows zeroed at the end."""
    mask = _mask(queries, keys, lengths, causal).clone()
    scores = torch.where(mask, _scores(queries, keys), -1e9)
    return scores.softmax(dim=-1) * mask.any(dim=-1, keepdim=True) @ values, mask


_AND = "A pair counts only if *both* conditions allow it."
_WHERE_IS_Q0 = (
    "The last query belongs to the last key: query i stands at place i + k − q. Try 1 query and 4 "
    "keys on paper."
)
_EMPTY = "The text says what a query that sees nothing gets. Give such rows a step of their own."
_SHAPE = "The text states the mask's shape: (batch, 1, queries, keys)."
_BEFORE = "A hidden key needs a score whose exp is 0, before the softmax."

ATTEND_WITH_PADDING = Exercise(
    id="attend_with_padding",
    title="One mask for all heads",
    asks="Combine padding and causal mask, and attend with it in all heads.",
    parameters=("queries", "keys", "values", "lengths", "causal"),
    driver="tensor_function",
    outputs=("output", "mask"),
    groups={
        "square": Group(2, "as many queries as keys"),
        "unequal": Group(1, "fewer queries than keys"),
        "empty": Group(1, "a sentence without tokens"),
    },
    cases=attend_with_padding_cases,
    reference=attend_with_padding_reference,
    misconceptions=(
        Misconception(padding_ignored, "The padding is not hidden.", "Use `lengths`."),
        Misconception(future_ignored, "The future is not hidden.", "Use `causal`."),
        Misconception(
            always_causal, "The future is hidden although `causal` is False.", "Use `causal`."
        ),
        Misconception(either_will_do, "The two masks are joined with `or`.", _AND),
        Misconception(
            one_padding_token_seen,
            "One padding token of each shorter sentence is visible.",
            "A sentence of length 3 has the positions 0, 1 and 2.",
        ),
        Misconception(
            true_means_hidden,
            "The output is right, but the mask that you return is inverted.",
            "In this course True = may be seen.",
        ),
        Misconception(
            mask_used_inverted,
            "What may be seen is hidden, and what may not is seen.",
            "Look up what your function does with True: libraries differ.",
        ),
        Misconception(
            mask_inverted_from_the_start,
            "The mask is inverted: it is True for what should be hidden.",
            "In this course True = may be seen. `F.scaled_dot_product_attention` agrees.",
        ),
        Misconception(
            rows_hidden_instead_of_columns,
            "The padding mask lies on the side of the queries, so real tokens still look at "
            "padded keys.",
            "Which axis of the mask belongs to the keys? `lengths` must line up with the batch.",
        ),
        Misconception(
            triangle_in_the_upper_corner,
            "With fewer queries than keys the triangle is in the wrong corner.",
            _WHERE_IS_Q0,
        ),
        Misconception(next_token_seen, "Each query sees one token of its future.", _WHERE_IS_Q0),
        Misconception(own_token_not_seen, "No query sees its own token.", _WHERE_IS_Q0),
        Misconception(
            mask_without_an_axis_for_heads, "The mask has no axis for the heads.", _SHAPE
        ),
        Misconception(
            mask_repeated_for_heads,
            "The mask is repeated for every head; an axis of length 1 is enough, and asked for.",
            _SHAPE,
        ),
        Misconception(
            mask_tiled_in_the_wrong_order,
            "The masks were repeated in the wrong order: head 1 of sentence 0 got the mask of "
            "sentence 1.",
            "Let broadcasting repeat the mask: give it an axis of length 1 for the heads.",
        ),
        Misconception(
            not_a_number_in_empty_rows,
            "A row in which every score is −∞ gives 0/0, which is NaN.",
            _EMPTY,
        ),
        Misconception(
            mean_of_everything_in_empty_rows,
            "In a row without visible keys all scores are equal, so it reads all of the padding.",
            _EMPTY,
        ),
        Misconception(
            rows_not_renormalised,
            "The mask is applied after the softmax, so rows sum to less than 1.",
            _BEFORE,
        ),
        Misconception(hidden_scores_zero, "Hidden scores are set to 0, and e⁰ is 1.", _BEFORE),
        Misconception(
            outputs_of_padding_zeroed,
            "Outputs of padded *queries* are set to zero; the text hides padded *keys* only.",
            "A padded query's output is junk that nobody reads. Leave it.",
        ),
    ),
    accepted=(
        attend_by_sdpa,
        attend_by_fill,
        attend_by_renormalising,
        attend_by_large_negative,
    ),
    equivalent_mutants={
        "`queries.shape[-2]` → `queries.shape[2]`": "there are always four axes",
        "`keys.shape[-2]` → `keys.shape[2]`": "there are always four axes",
    },
)
