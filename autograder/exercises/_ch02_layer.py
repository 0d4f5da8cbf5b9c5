"""Chapter 02: self-attention with projections."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_mask
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import (
    draw_attention_sizes,
    draw_mask_with_empty_row,
    draw_padding,
    draw_weights,
    stable_softmax,
    weights_of,
)


def self_attention_cases(rng):
    """One sequence, a batch, masks; all widths differ."""
    names = ("x", "w_q", "w_k", "w_v", "mask")

    def case(group, about, *arrays):
        return Case(group, dict(zip(names, arrays, strict=False)), about)

    for about in ["one sequence", "another one"]:
        s = draw_attention_sizes(rng)
        yield case("values", about, rng.normal(size=(s.k, s.d_model)), *draw_weights(rng, s))
    s = draw_attention_sizes(rng)
    weights = draw_weights(rng, s)
    x = rng.normal(size=(s.batch, s.k, s.d_model))
    yield case("batch", "a batch", x, *weights)
    yield case("batch", "two leading axes", np.stack([x, rng.normal(size=x.shape)]), *weights)
    yield case("masked", "a mask for each sequence", x, *weights, draw_mask(rng, s.batch, s.k, s.k))
    padding, x, _ = draw_padding(rng, s.batch, x, x, factor=5)
    yield case("masked", "padding (batch, 1, length)", x, *weights, padding[:, None])
    mask = draw_mask_with_empty_row(rng, s.k, s.k)
    yield case("masked", "a token that sees nothing", x, *weights, mask)


def self_attention_reference(x, w_q, w_k, w_v, mask=None):
    """Token by token, each with its own query, over the tokens that it may see."""
    length = x.shape[-2]
    visible = np.broadcast_to(True if mask is None else mask, (*x.shape[:-1], length))
    output = np.zeros((*x.shape[:-1], w_v.shape[1]))
    for place in np.ndindex(x.shape[:-1]):
        tokens = x[place[:-1]][visible[place]]
        if len(tokens) == 0:
            continue
        query = w_q.T @ x[place]
        scores = np.array([query @ (w_k.T @ token) for token in tokens]) / np.sqrt(len(query))
        total = np.logaddexp.reduce(scores)
        for score, token in zip(scores, tokens, strict=True):
            output[place] += np.exp(score - total) * (w_v.T @ token)
    return output


def layer_not_scaled(x, w_q, w_k, w_v, mask=None):
    """No division at all."""
    return weights_of(x @ w_q, x @ w_k, mask, scale=1.0) @ (x @ w_v)


def scaled_by_d_model(x, w_q, w_k, w_v, mask=None):
    """Divides by the root of the tokens' width."""
    return weights_of(x @ w_q, x @ w_k, mask, scale=x.shape[-1] ** -0.5) @ (x @ w_v)


def layer_scaled_by_d_k(x, w_q, w_k, w_v, mask=None):
    """Divides by d_k instead of by its root."""
    return weights_of(x @ w_q, x @ w_k, mask, scale=1 / w_q.shape[-1]) @ (x @ w_v)


def layer_scaled_by_root_of_d_v(x, w_q, w_k, w_v, mask=None):
    """Divides by the root of the values' width."""
    return weights_of(x @ w_q, x @ w_k, mask, scale=w_v.shape[-1] ** -0.5) @ (x @ w_v)


def queries_and_keys_swapped(x, w_q, w_k, w_v, mask=None):
    """Makes queries with w_k and keys with w_q."""
    return weights_of(x @ w_k, x @ w_q, mask) @ (x @ w_v)


def same_projection_twice(x, w_q, w_k, w_v, mask=None):
    """Makes queries and keys with the same matrix."""
    return weights_of(x @ w_q, x @ w_q, mask) @ (x @ w_v)


def values_not_projected(x, w_q, w_k, w_v, mask=None):
    """Averages the tokens themselves."""
    return weights_of(x @ w_q, x @ w_k, mask) @ x


def values_from_keys(x, w_q, w_k, w_v, mask=None):
    """Averages the keys."""
    return weights_of(x @ w_q, x @ w_k, mask) @ (x @ w_k)


def nothing_projected(x, w_q, w_k, w_v, mask=None):
    """Uses the tokens as queries and keys, without w_q and w_k."""
    return weights_of(x, x, mask) @ (x @ w_v)


def layer_softmax_over_queries(x, w_q, w_k, w_v, mask=None):
    """Softmax along the axis of queries."""
    return weights_of(x @ w_q, x @ w_k, mask, axis=-2) @ (x @ w_v)


def layer_ignores_mask(x, w_q, w_k, w_v, mask=None):
    """Ignores the mask."""
    return weights_of(x @ w_q, x @ w_k) @ (x @ w_v)


def mask_on_the_query_side(x, w_q, w_k, w_v, mask=None):
    """Hides rows instead of columns: the mask is transposed."""
    mask = None if mask is None else np.swapaxes(mask, -1, -2)
    return weights_of(x @ w_q, x @ w_k, mask) @ (x @ w_v)


def layer_by_einsum(x, w_q, w_k, w_v, mask=None):
    """Right: the two matrices of the score are merged into one; values are projected last."""
    scores = np.einsum("...qi,ij,...kj->...qk", x, w_q @ w_k.T, x) / np.sqrt(w_k.shape[1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return np.einsum("...qk,...ki->...qi", stable_softmax(scores), x) @ w_v


def layer_with_scaled_weights(x, w_q, w_k, w_v, mask=None):
    """Right: the scaling sits in w_q; masks after the softmax and divides by what is left."""
    queries, keys, values = np.dot(x, w_q / np.sqrt(w_q.shape[1])), np.dot(x, w_k), np.dot(x, w_v)
    weights = stable_softmax(np.matmul(queries, keys.swapaxes(-2, -1)))
    if mask is not None:
        weights = weights * mask
        kept = weights.sum(axis=-1, keepdims=True)
        weights = weights / np.where(kept > 0, kept, 1.0)
    return weights @ values


def layer_token_by_token(x, w_q, w_k, w_v, mask=None):
    """Right: loops over sequences and tokens."""
    length = x.shape[-2]
    visible = np.broadcast_to(np.True_ if mask is None else mask, (*x.shape[:-1], length))
    output = np.zeros((*x.shape[:-1], w_v.shape[1]))
    for lead in np.ndindex(x.shape[:-2]):
        queries, keys, values = x[lead] @ w_q, x[lead] @ w_k, x[lead] @ w_v
        for i in range(length):
            seen = visible[lead][i]
            if seen.any():
                scores = keys[seen] @ queries[i] / np.sqrt(w_q.shape[1])
                powers = np.exp(scores - scores.max())
                output[(*lead, i)] = powers / powers.sum() @ values[seen]
    return output


SELF_ATTENTION = Exercise(
    id="self_attention",
    title="A self-attention layer",
    asks="Make queries, keys and values of the same tokens, and attend.",
    parameters=("x", "w_q", "w_k", "w_v", "mask"),
    groups={
        "values": Group(1, "one sequence"),
        "batch": Group(1, "leading axes"),
        "masked": Group(1, "masks"),
    },
    cases=self_attention_cases,
    reference=self_attention_reference,
    misconceptions=(
        Misconception(
            layer_not_scaled,
            "The scores are not scaled.",
            "By what does the formula divide QKᵀ?",
        ),
        Misconception(
            scaled_by_d_model,
            "The root is taken of d_model; the product of query and key sums over d_k terms.",
            "Read the width off the queries, after the projection.",
        ),
        Misconception(
            layer_scaled_by_d_k,
            "The scores are divided by d_k instead of by its square root.",
            "The variance of a score grows like d_k. How does its standard deviation grow?",
        ),
        Misconception(
            layer_scaled_by_root_of_d_v,
            "The root is taken of the values' width, not of the keys'.",
            "Which width does the product of a query and a key sum over?",
        ),
        Misconception(
            queries_and_keys_swapped,
            "Queries are made with w_k and keys with w_q, so rows and columns change roles.",
            "Check which matrix makes which of the three.",
        ),
        Misconception(
            same_projection_twice,
            "Queries and keys come from the same matrix, so one of the two is never used.",
            "Check which matrix makes which of the three.",
        ),
        Misconception(
            values_not_projected,
            "The average is taken of the tokens themselves: w_v is never used.",
            "What is the width of an output vector?",
        ),
        Misconception(
            values_from_keys,
            "The average is taken of keys; keys are for finding, values for answering.",
            "What is the width of an output vector?",
        ),
        Misconception(
            nothing_projected,
            "Tokens are compared as they are: w_q and w_k are never used.",
            "What makes the query of a token different from its key?",
        ),
        Misconception(
            layer_softmax_over_queries,
            "The weights sum to 1 over queries; each query shares its weight among keys.",
            "Sum your weights along each axis: for which one should all sums be 1?",
        ),
        Misconception(
            layer_ignores_mask,
            "The mask has no effect.",
            "Where does `mask` enter your computation?",
        ),
        Misconception(
            mask_on_the_query_side,
            "The mask hides rows (queries) where it should hide columns (keys).",
            "Which axis of the scores belongs to the mask's last axis?",
        ),
    ),
    accepted=(layer_by_einsum, layer_with_scaled_weights, layer_token_by_token),
)
