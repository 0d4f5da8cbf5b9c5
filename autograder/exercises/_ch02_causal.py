"""Chapter 02: causal attention."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import (
    causal_mask,
    draw_attention_sizes,
    draw_qkv,
    output_and_weights,
    scores_of,
    stable_softmax,
    weights_of,
)


def causal_cases(rng):
    """As many queries as keys, fewer, and a single one; a last token that must not leak back."""

    def case(group, about, *arrays):
        return Case(group, dict(zip(("queries", "keys", "values"), arrays, strict=True)), about)

    s = draw_attention_sizes(rng)
    fewer, s.q = s.q, s.k
    queries, keys, values = draw_qkv(rng, s)
    yield case("square", "as many queries as keys", queries, keys, values)
    keys, values = keys.copy(), values.copy()
    keys[-1] *= 20
    values[-1] *= 1e5
    yield case("square", "a last token that no earlier query may notice", queries, keys, values)
    yield case("square", "a batch", *draw_qkv(rng, s, s.batch))
    s.q = fewer
    yield case("fewer", "fewer queries than keys", *draw_qkv(rng, s))
    yield case("fewer", "the same in a batch", *draw_qkv(rng, s, s.batch))
    s.q = 1
    yield case("fewer", "a single query: it is the last token", *draw_qkv(rng, s, s.batch))


def causal_reference(queries, keys, values):
    """For each query, plain attention over the keys up to its own place."""
    q, k = queries.shape[-2], keys.shape[-2]
    output = np.zeros((*queries.shape[:-1], values.shape[-1]))
    weights = np.zeros((*queries.shape[:-1], k))
    for place in range(q):
        seen = k - q + place + 1
        scores = np.einsum("...d,...kd->...k", queries[..., place, :], keys[..., :seen, :])
        scores = scores / np.sqrt(queries.shape[-1])
        row = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
        weights[..., place, :seen] = row
        output[..., place, :] = np.einsum("...k,...kv->...v", row, values[..., :seen, :])
    return output, weights


def not_causal(queries, keys, values):
    """No mask at all."""
    return output_and_weights(weights_of(queries, keys), values)


def sees_only_the_future(queries, keys, values):
    """Upper triangle instead of lower."""
    q, k = queries.shape[-2], keys.shape[-2]
    return output_and_weights(
        weights_of(queries, keys, ~np.tri(q, k, k - q - 1, dtype=bool)), values
    )


def cannot_see_itself(queries, keys, values):
    """Strict triangle; the first query sees nothing and gets zeros."""
    q, k = queries.shape[-2], keys.shape[-2]
    return output_and_weights(
        weights_of(queries, keys, np.tri(q, k, k - q - 1, dtype=bool)), values
    )


def cannot_see_itself_and_leaks(queries, keys, values):
    """Strict triangle with −1e9: the first query sees everything."""
    q, k = queries.shape[-2], keys.shape[-2]
    scores = np.where(np.tri(q, k, k - q - 1, dtype=bool), scores_of(queries, keys), -1e9)
    return output_and_weights(stable_softmax(scores), values)


def sees_the_next_token(queries, keys, values):
    """The triangle lies one too far to the right."""
    q, k = queries.shape[-2], keys.shape[-2]
    return output_and_weights(
        weights_of(queries, keys, np.tri(q, k, k - q + 1, dtype=bool)), values
    )


def aligned_at_the_start(queries, keys, values):
    """The first query sees only the first key, though there are older ones than the queries."""
    q, k = queries.shape[-2], keys.shape[-2]
    return output_and_weights(weights_of(queries, keys, np.tri(q, k, dtype=bool)), values)


def square_mask(queries, keys, values):
    """The mask is q × q, whatever the number of keys."""
    q = queries.shape[-2]
    return output_and_weights(weights_of(queries, keys, np.tri(q, dtype=bool)), values)


def zeros_above_the_diagonal(queries, keys, values):
    """Future scores become 0 and not −inf."""
    return output_and_weights(stable_softmax(np.tril(scores_of(queries, keys))), values)


def future_cut_after_softmax(queries, keys, values):
    """Future weights become 0 after the softmax, without dividing by what is left."""
    mask = causal_mask(queries.shape[-2], keys.shape[-2])
    return output_and_weights(weights_of(queries, keys) * mask, values)


def causal_by_positions(queries, keys, values):
    """Right: compares positions of queries and keys."""
    q, k = queries.shape[-2], keys.shape[-2]
    position_of_query = np.arange(k - q, k)[:, None]
    hidden = np.arange(k)[None, :] > position_of_query
    scores = queries @ np.swapaxes(keys, -1, -2) / np.sqrt(queries.shape[-1])
    scores = scores + np.where(hidden, -1e9, 0.0)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ values, weights


def causal_by_last_rows(queries, keys, values):
    """Right: cuts the last rows out of the square triangle."""
    q, k = queries.shape[-2], keys.shape[-2]
    mask = np.tril(np.ones((k, k), dtype=bool))[k - q :]
    scores = np.where(mask, np.einsum("...qd,...kd->...qk", queries, keys), -np.inf)
    scores = scores / np.sqrt(keys.shape[-1])
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.einsum("...qk,...kv->...qv", weights, values), weights


def causal_renormalised(queries, keys, values):
    """Right: plain softmax, then the future is cut off and each row divided by what is left."""
    weights = weights_of(queries, keys) * causal_mask(queries.shape[-2], keys.shape[-2])
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ values, weights


CAUSAL_ATTENTION = Exercise(
    id="causal_attention",
    title="Attention that cannot see the future",
    asks="Let every query see its own position and earlier ones; the last query sees all keys.",
    parameters=("queries", "keys", "values"),
    outputs=("output", "weights"),
    forbidden=("*attention*",),
    groups={
        "square": Group(2, "as many queries as keys"),
        "fewer": Group(1, "fewer queries than keys"),
    },
    cases=causal_cases,
    reference=causal_reference,
    misconceptions=(
        Misconception(
            not_causal,
            "Nothing is hidden: every query sees all keys.",
            "Print your weights: which of them should be zero?",
        ),
        Misconception(
            sees_only_the_future,
            "The triangle is upside down: queries see their own and later keys.",
            "How many keys may the first query see, and how many the last?",
        ),
        Misconception(
            cannot_see_itself,
            "A query cannot see its own position: the first one sees nothing.",
            "Is the diagonal part of the mask?",
        ),
        Misconception(
            cannot_see_itself_and_leaks,
            "A query cannot see its own position, and the first query, which then sees nothing, "
            "spreads its weight over the future.",
            "Is the diagonal part of the mask?",
        ),
        Misconception(
            sees_the_next_token,
            "Each query sees one key too many: the next token, which it should predict.",
            "How many keys may the first query see when q = k?",
        ),
        Misconception(
            aligned_at_the_start,
            "With fewer queries than keys the queries are taken for the first tokens; they are "
            "the last ones.",
            "Which keys may the last query see? Then count back.",
        ),
        Misconception(
            square_mask,
            "The mask is square, but there may be fewer queries than keys.",
            "What is the shape of the scores?",
        ),
        Misconception(
            zeros_above_the_diagonal,
            "Future scores are set to 0, and exp(0) is 1, not 0.",
            "Which score has the weight zero after a softmax?",
        ),
        Misconception(
            future_cut_after_softmax,
            "Future weights are cut off after the softmax, and rows no longer sum to 1.",
            "Hide the scores before the softmax, or divide by what is left.",
        ),
    ),
    accepted=(causal_by_positions, causal_by_last_rows, causal_renormalised),
)
