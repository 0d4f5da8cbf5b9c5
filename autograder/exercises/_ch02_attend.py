"""Chapter 02: scaled dot-product attention."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_mask
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import (
    draw_attention_sizes,
    draw_mask_with_empty_row,
    draw_padding,
    draw_qkv,
    output_and_weights,
    scores_of,
    stable_softmax,
    weights_of,
    with_large_scores,
)


def attention_cases(rng):
    """No mask, leading axes, masks of several shapes with poison, large scores."""
    names = ("queries", "keys", "values", "mask")

    def case(group, about, *arrays):
        return Case(group, dict(zip(names, arrays, strict=False)), about)

    s = draw_attention_sizes(rng)
    yield case("plain", "unequal sizes, no mask", *draw_qkv(rng, s))
    s = draw_attention_sizes(rng)
    s.q = s.k
    yield case("plain", "as many queries as keys, no mask", *draw_qkv(rng, s))
    s = draw_attention_sizes(rng)
    yield case("leading", "four axes: batch and heads", *draw_qkv(rng, s, s.batch, s.heads))
    mask = draw_mask(rng, s.batch, s.q, s.k)
    yield case("masked", "a mask for each sequence", *draw_qkv(rng, s, s.batch), mask)
    queries, keys, values = draw_qkv(rng, s, s.batch, s.heads)
    padding, keys, values = draw_padding(rng, s.batch, keys, values)
    padding = padding[:, None, None, :]
    yield case("masked", "padding (batch, 1, 1, k), poison in it", queries, keys, values, padding)
    mask = draw_mask_with_empty_row(rng, s.q, s.k)
    yield case("masked", "a query that sees nothing", *draw_qkv(rng, s), mask)
    queries, keys, values = draw_qkv(rng, s)
    yield case("large", "scores near 900, 1800, …", *with_large_scores(queries, keys), values)


def attention_reference(queries, keys, values, mask=None):
    """Query by query, over its visible keys only."""
    shape = (*queries.shape[:-1], keys.shape[-2])
    visible = np.broadcast_to(True if mask is None else mask, shape)
    weights = np.zeros(shape)
    output = np.zeros((*queries.shape[:-1], values.shape[-1]))
    for *lead, q in np.ndindex(shape[:-1]):
        row, lead = (*lead, q), tuple(lead)
        seen = np.flatnonzero(visible[row])
        if len(seen) == 0:
            continue
        products = [np.dot(queries[row], keys[lead][k]) for k in seen]
        scores = np.array(products) / np.sqrt(queries.shape[-1])
        weights[row][seen] = np.exp(scores - np.logaddexp.reduce(scores))
        for k in seen:
            output[row] += weights[row][k] * values[lead][k]
    return output, weights


def not_scaled(queries, keys, values, mask=None):
    """No division at all."""
    return output_and_weights(weights_of(queries, keys, mask, scale=1.0), values)


def scaled_by_d_k(queries, keys, values, mask=None):
    """Divides by d_k."""
    return output_and_weights(weights_of(queries, keys, mask, scale=1 / queries.shape[-1]), values)


def scaled_by_root_of_d_v(queries, keys, values, mask=None):
    """Divides by the root of the values' width."""
    return output_and_weights(
        weights_of(queries, keys, mask, scale=values.shape[-1] ** -0.5), values
    )


def scaled_by_two(queries, keys, values, mask=None):
    """Divides by the constant 2."""
    return output_and_weights(weights_of(queries, keys, mask, scale=0.5), values)


def scaled_after_softmax(queries, keys, values, mask=None):
    """Divides the weights instead of the scores."""
    weights = weights_of(queries, keys, mask, scale=1.0) / np.sqrt(queries.shape[-1])
    return output_and_weights(weights, values)


def softmax_over_queries(queries, keys, values, mask=None):
    """Softmax along the axis of queries."""
    return output_and_weights(weights_of(queries, keys, mask, axis=-2), values)


def softmax_over_axis_1(queries, keys, values, mask=None):
    """Softmax along axis 1: the keys of a matrix, something else of a batch."""
    return output_and_weights(weights_of(queries, keys, mask, axis=1), values)


def softmax_over_all_pairs(queries, keys, values, mask=None):
    """One softmax over all queries and keys of a sequence together."""
    return output_and_weights(weights_of(queries, keys, mask, axis=(-2, -1)), values)


def keys_times_queries(queries, keys, values, mask=None):
    """Has keys in the rows: the product fits only when there are as many queries as keys."""
    return output_and_weights(weights_of(keys, queries), values)


def weights_turned_round(queries, keys, values, mask=None):
    """Multiplies by the transposed weights."""
    weights = weights_of(queries, keys, mask)
    return np.swapaxes(weights, -1, -2) @ values, weights


def keys_for_values(queries, keys, values, mask=None):
    """Averages keys instead of values."""
    return output_and_weights(weights_of(queries, keys, mask), keys)


def all_axes_turned_round(queries, keys, values, mask=None):
    """`keys.T` turns round the batch too."""
    scores = queries @ keys.T / np.sqrt(queries.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    return output_and_weights(stable_softmax(scores), values)


def mask_not_used(queries, keys, values, mask=None):
    """Ignores the mask."""
    return output_and_weights(weights_of(queries, keys), values)


def mask_turned_round(queries, keys, values, mask=None):
    """Hides what may be seen."""
    return output_and_weights(weights_of(queries, keys, None if mask is None else ~mask), values)


def mask_after_softmax(queries, keys, values, mask=None):
    """Zeros weights after the softmax, without dividing by what is left."""
    weights = weights_of(queries, keys)
    return output_and_weights(weights if mask is None else weights * mask, values)


def mask_times_scores(queries, keys, values, mask=None):
    """Hidden keys get the score 0."""
    scores = scores_of(queries, keys)
    return output_and_weights(stable_softmax(scores if mask is None else scores * mask), values)


def blind_query_is_nan(queries, keys, values, mask=None):
    """A query that sees nothing becomes NaN."""
    scores = scores_of(queries, keys)
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return output_and_weights(powers / powers.sum(axis=-1, keepdims=True), values)


def blind_query_sees_all(queries, keys, values, mask=None):
    """A query that sees nothing gets the mean of all values."""
    scores = scores_of(queries, keys)
    scores = scores if mask is None else np.where(mask, scores, -1e9)
    return output_and_weights(stable_softmax(scores), values)


def overflowing_attention(queries, keys, values, mask=None):
    """exp overflows for large scores."""
    powers = np.exp(scores_of(queries, keys)) * (1.0 if mask is None else mask)
    total = powers.sum(axis=-1, keepdims=True)
    return output_and_weights(powers / np.where(total == 0, 1.0, total), values)


def weights_come_first(queries, keys, values, mask=None):
    """Returns (weights, output)."""
    weights = weights_of(queries, keys, mask)
    return weights, weights @ values


def attention_by_einsum(queries, keys, values, mask=None):
    """Right: scaled queries, einsum, −1e9, hidden weights zeroed."""
    mask = np.ones((1, 1), dtype=bool) if mask is None else mask
    scores = np.einsum("...qd,...kd->...qk", queries / np.sqrt(queries.shape[-1]), keys)
    scores = np.where(mask, scores, -1e9)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / np.sum(powers, axis=-1, keepdims=True) * mask
    return np.einsum("...qk,...kv->...qv", weights, values), weights


def attention_one_by_one(queries, keys, values, mask=None):
    """Right: takes leading axes apart, then goes query by query."""
    if queries.ndim > 2:
        lead = queries.shape[:-2]
        shape = (*lead, queries.shape[-2], keys.shape[-2])
        full = None if mask is None else np.broadcast_to(mask, shape)
        parts = [
            attention_one_by_one(queries[i], keys[i], values[i], None if full is None else full[i])
            for i in np.ndindex(lead)
        ]
        first, second = (np.array(part) for part in zip(*parts, strict=True))
        return first.reshape(*lead, *first.shape[1:]), second.reshape(shape)
    weights = np.zeros((len(queries), len(keys)))
    for i, query in enumerate(queries):
        seen = np.ones(len(keys), bool) if mask is None else np.broadcast_to(mask, weights.shape)[i]
        if seen.any():
            scores = keys[seen] @ query / len(query) ** 0.5
            powers = np.exp(scores - scores.max())
            weights[i, seen] = powers / powers.sum()
    return weights @ values, weights


def attention_renormalised(queries, keys, values, mask=None):
    """Right: masks after the softmax and divides by what is left; quarter roots on both sides."""
    root = queries.shape[-1] ** 0.25
    scores = (queries / root) @ np.swapaxes(keys / root, -2, -1)
    weights = stable_softmax(scores)
    if mask is not None:
        weights = weights * mask
        kept = weights.sum(axis=-1, keepdims=True)
        weights = np.divide(weights, kept, out=np.zeros_like(weights), where=kept > 0)
    return weights @ values, weights


ATTENTION = Exercise(
    id="scaled_dot_product_attention",
    title="Scaled dot-product attention",
    asks="Average the values, weighted by how well each query fits each visible key.",
    parameters=("queries", "keys", "values", "mask"),
    outputs=("output", "weights"),
    forbidden=("*attention*",),
    groups={
        "plain": Group(1, "one sequence, no mask"),
        "leading": Group(1, "leading axes: batch, heads"),
        "masked": Group(2, "masks"),
        "large": Group(1, "large scores"),
    },
    cases=attention_cases,
    reference=attention_reference,
    misconceptions=(
        Misconception(
            not_scaled,
            "The scores are not scaled.",
            "By what does the formula divide QKᵀ?",
        ),
        Misconception(
            scaled_by_d_k,
            "The scores are divided by d_k instead of by its square root.",
            "The variance of a score grows like d_k. How does its standard deviation grow?",
        ),
        Misconception(
            scaled_by_root_of_d_v,
            "The root is taken of the values' width, not of the keys'.",
            "Which width does the product of a query and a key sum over?",
        ),
        Misconception(
            scaled_by_two,
            "The scores are divided by the constant 2, which fits only one width.",
            "Read the width off the shape of `queries`.",
        ),
        Misconception(
            scaled_after_softmax,
            "The weights are divided, not the scores, so they no longer sum to 1.",
            "Is the root inside or outside of the softmax in the formula?",
        ),
        Misconception(
            softmax_over_queries,
            "The weights sum to 1 over queries; each query shares its weight among keys.",
            "Sum your weights along each axis: for which one should all sums be 1?",
        ),
        Misconception(
            softmax_over_axis_1,
            "The softmax runs along axis 1, which is no longer the keys once there is a batch.",
            "Count the axis of the keys from the end.",
        ),
        Misconception(
            softmax_over_all_pairs,
            "One softmax covers all pairs of a query and a key: each row must sum to 1.",
            "Sum the weights of one query: what should it be?",
        ),
        Misconception(
            keys_times_queries,
            "The scores have keys in their rows; each row should belong to a query.",
            "Which of the two matrices comes first in the product?",
        ),
        Misconception(
            weights_turned_round,
            "The weights are transposed before they meet the values.",
            "Which axis of the weights does the product with the values sum over?",
        ),
        Misconception(
            keys_for_values,
            "The average is taken of keys; keys are for finding, values for answering.",
            "What is the width of an output vector?",
        ),
        Misconception(
            all_axes_turned_round,
            "`.T` turns round all axes, the batch too; only the last two should change places.",
            "`np.swapaxes` takes the two axes to exchange.",
        ),
        Misconception(
            mask_not_used,
            "The mask has no effect.",
            "Where does `mask` enter your computation?",
        ),
        Misconception(
            mask_turned_round,
            "The mask is read the wrong way round: True means that a key may be seen.",
            "Look at which weights are zero in your result, and where the mask is True.",
        ),
        Misconception(
            mask_after_softmax,
            "Hidden weights become zero after the softmax, and rows no longer sum to 1.",
            "Hide the scores before the softmax, or divide by what is left.",
        ),
        Misconception(
            mask_times_scores,
            "Hidden keys get the score 0, and exp(0) is 1, not 0.",
            "Which score has the weight zero after a softmax?",
        ),
        Misconception(
            blind_query_is_nan,
            "A query that may look at nothing becomes NaN; the contract asks for zeros.",
            "Your `masked_softmax` of exercise 4 solves this: can you use it here?",
        ),
        Misconception(
            blind_query_sees_all,
            "A query that may look at nothing gets the mean of all values: a leak.",
            "Your `masked_softmax` of exercise 4 solves this: can you use it here?",
        ),
        Misconception(
            overflowing_attention,
            "exp of a large score overflows to infinity, and infinity / infinity is NaN.",
            "What can be subtracted from all scores of a row without changing the weights?",
        ),
        Misconception(
            weights_come_first,
            "The two results come in the wrong order.",
            "The contract names the order: which of the two is first?",
        ),
    ),
    accepted=(attention_by_einsum, attention_one_by_one, attention_renormalised),
)
