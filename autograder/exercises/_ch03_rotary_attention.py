"""Chapter 03: attention between queries and keys that are turned by their positions."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import stable_softmax
from autograder.exercises._ch03_parts import frequencies, rotated
from autograder.exercises._ch03_rotary import rotate_by_swapping, sinusoids_added
from autograder.exercises._ch03_sinusoids import draw_positions


def rotary_cases(rng):
    """Attention within one text; other queries than keys; batches."""

    def case(group, about, lead, query_positions, key_positions, width, base=10000.0):
        q, k = len(query_positions), len(key_positions)
        inputs = {
            "queries": 1.5 * rng.normal(size=(*lead, q, width)),
            "keys": 1.5 * rng.normal(size=(*lead, k, width)),
            "values": rng.normal(size=(*lead, k, width)),
            "query_positions": query_positions,
            "key_positions": key_positions,
            "base": base,
        }
        return Case(group, inputs, about)

    length = int(rng.choice([5, 7]))
    places = np.arange(length)
    yield case("same", "one text, positions 0, 1, 2, …", (), places, places, 6)
    late = 30 + places
    yield case("same", "one text, later positions, another base", (), late, late, 8, 500.0)
    later = draw_positions(rng, 4, 80)
    keys = draw_positions(rng, 6, 80)
    yield case("other", "queries and keys at positions of their own", (), later, keys, 8)
    other = draw_positions(rng, 6, 50)
    yield case("other", "as many queries as keys, other positions", (), other, keys, 4, 100.0)
    large = case("other", "large scores", (), later[:3], keys[:5], 4)
    large.inputs["queries"][...] *= 1000.0
    yield large
    yield case("leading", "batch and heads", (2, 3), draw_positions(rng, 4, 40)[:2], keys[:5], 6)


def rotary_reference(queries, keys, values, query_positions, key_positions, base):
    """Never turns a vector: the product of a pair depends on the distance alone."""
    width = queries.shape[-1]
    rates = np.array([base ** (-2 * i / width) for i in range(width // 2)])
    weights = np.empty((*queries.shape[:-1], keys.shape[-2]))
    output = np.zeros((*queries.shape[:-1], values.shape[-1]))
    for *lead, i in np.ndindex(queries.shape[:-1]):
        row = []
        for j, position in enumerate(key_positions):
            apart = (float(query_positions[i]) - float(position)) * rates
            a, b = queries[(*lead, i)].reshape(-1, 2), keys[(*lead, j)].reshape(-1, 2)
            along = (a * b).sum(axis=1) * np.cos(apart)
            across = (a[:, 1] * b[:, 0] - a[:, 0] * b[:, 1]) * np.sin(apart)
            row.append((along.sum() - across.sum()) / np.sqrt(width))
        weights[(*lead, i)] = np.exp(np.array(row) - np.logaddexp.reduce(row))
        for weight, value in zip(weights[(*lead, i)], values[tuple(lead)], strict=True):
            output[(*lead, i)] += weight * value
    return output, weights


def _attend(queries, keys, values, scale=None):
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    weights = stable_softmax(queries @ np.swapaxes(keys, -1, -2) * scale)
    return weights @ values, weights


def values_turned_too(queries, keys, values, query_positions, key_positions, base):
    """Turns the values by the keys' positions."""
    turned_values = rotated(values, key_positions, base)
    queries, keys = rotated(queries, query_positions, base), rotated(keys, key_positions, base)
    return _attend(queries, keys, turned_values)


def only_queries_turned(queries, keys, values, query_positions, key_positions, base):
    """Leaves the keys as they are."""
    return _attend(rotated(queries, query_positions, base), keys, values)


def only_keys_turned(queries, keys, values, query_positions, key_positions, base):
    """Leaves the queries as they are."""
    return _attend(queries, rotated(keys, key_positions, base), values)


def nothing_turned(queries, keys, values, query_positions, key_positions, base):
    """Ignores positions."""
    return _attend(queries, keys, values)


def keys_turned_backwards(queries, keys, values, query_positions, key_positions, base):
    """The product depends on the sum of positions."""
    return _attend(
        rotated(queries, query_positions, base), rotated(keys, -key_positions, base), values
    )


def positions_exchanged(queries, keys, values, query_positions, key_positions, base):
    """Turns queries by positions of keys and the other way round, as far as they last."""
    q, k = queries.shape[-2], keys.shape[-2]
    of_queries = np.resize(key_positions, q)
    of_keys = np.resize(query_positions, k)
    return _attend(rotated(queries, of_queries, base), rotated(keys, of_keys, base), values)


def keys_at_query_positions(queries, keys, values, query_positions, key_positions, base):
    """Both are turned by the queries' positions; fails when there are other numbers of them."""
    queries, keys = rotated(queries, query_positions, base), rotated(keys, query_positions, base)
    return _attend(queries, keys, values)


def both_from_zero(queries, keys, values, query_positions, key_positions, base):
    """Takes places for positions."""
    q, k = queries.shape[-2], keys.shape[-2]
    return _attend(rotated(queries, np.arange(q), base), rotated(keys, np.arange(k), base), values)


def rotary_not_scaled(queries, keys, values, query_positions, key_positions, base):
    """No division by the root of the width."""
    queries, keys = rotated(queries, query_positions, base), rotated(keys, key_positions, base)
    return _attend(queries, keys, values, 1.0)


def output_turned(queries, keys, values, query_positions, key_positions, base):
    """Turns the output as well."""
    queries, keys = rotated(queries, query_positions, base), rotated(keys, key_positions, base)
    output, weights = _attend(queries, keys, values)
    return rotated(output, query_positions, base), weights


def added_not_turned(queries, keys, values, query_positions, key_positions, base):
    """Adds sinusoidal vectors to queries and keys."""
    queries = sinusoids_added(queries, query_positions, base)
    return _attend(queries, sinusoids_added(keys, key_positions, base), values)


def attention_ignores_base(queries, keys, values, query_positions, key_positions, base):
    """Leaves the base at 10000."""
    queries = rotated(queries, query_positions, 10000.0)
    return _attend(queries, rotated(keys, key_positions, 10000.0), values)


def rotary_overflows(queries, keys, values, query_positions, key_positions, base):
    """exp of large scores is infinite."""
    queries, keys = rotated(queries, query_positions, base), rotated(keys, key_positions, base)
    powers = np.exp(queries @ np.swapaxes(keys, -1, -2) / np.sqrt(queries.shape[-1]))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ values, weights


def rotary_by_complex(queries, keys, values, query_positions, key_positions, base):
    """Right: the score is the real part of a product of complex numbers."""
    width = queries.shape[-1]
    rates = frequencies(width, base)

    def points(x, positions):
        return (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * np.outer(positions, rates))

    a, b = points(queries, query_positions), points(keys, key_positions)
    scores = np.einsum("...qc,...kc->...qk", a, b.conj()).real / np.sqrt(width)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ values, weights


def rotary_by_distance(queries, keys, values, query_positions, key_positions, base):
    """Right: turns each query by its distance from each key, and leaves the keys alone."""
    apart = query_positions[:, None] - key_positions[None, :]
    each = queries[..., :, None, :] * np.ones((len(key_positions), 1))
    scores = np.einsum("...qkd,...kd->...qk", rotated(each, apart, base), keys)
    weights = stable_softmax(scores / queries.shape[-1] ** 0.5)
    return np.einsum("...qk,...kv->...qv", weights, values), weights


def rotary_scaled_first(queries, keys, values, query_positions, key_positions, base):
    """Right: scales the queries before they are turned."""
    queries = rotate_by_swapping(queries / np.sqrt(queries.shape[-1]), query_positions, base)
    keys = rotate_by_swapping(keys, key_positions, base)
    return _attend(queries, keys, values, 1.0)


ROTARY_ATTENTION = Exercise(
    id="rotary_attention",
    title="Attention that feels distance",
    asks="Turn queries and keys by their positions, then attend.",
    parameters=("queries", "keys", "values", "query_positions", "key_positions", "base"),
    outputs=("output", "weights"),
    groups={
        "same": Group(1, "queries and keys of the same text"),
        "other": Group(1, "positions of their own; large scores"),
        "leading": Group(1, "batch and heads"),
    },
    cases=rotary_cases,
    reference=rotary_reference,
    misconceptions=(
        Misconception(
            values_turned_too,
            "The values are turned as well; positions should only enter the scores.",
            "What is read should not depend on where it stands. Which of the three is read?",
        ),
        Misconception(
            only_queries_turned,
            "Only the queries are turned, so the score depends on the query's own position.",
            "For which positions must the score stay the same? Try (3, 1) and (13, 11).",
        ),
        Misconception(
            only_keys_turned,
            "Only the keys are turned, so the score depends on the key's own position.",
            "For which positions must the score stay the same? Try (3, 1) and (13, 11).",
        ),
        Misconception(
            nothing_turned,
            "Positions have no effect: this is attention without them.",
            "Where do the two arrays of positions enter?",
        ),
        Misconception(
            keys_turned_backwards,
            "Keys turn the other way than queries: the score depends on the *sum* of positions.",
            "If both turn the same way by the same angle, what becomes of their product?",
        ),
        Misconception(
            positions_exchanged,
            "Queries are turned by positions of keys, and keys by those of queries.",
            "Write the shape of each array of positions beside the array that it turns.",
        ),
        Misconception(
            keys_at_query_positions,
            "The keys are turned by the positions of the queries.",
            "Write the shape of each array of positions beside the array that it turns.",
        ),
        Misconception(
            both_from_zero,
            "Places in the arrays, 0, 1, 2, …, are used in place of the given positions.",
            "Where do the values of the two arrays of positions enter?",
        ),
        Misconception(
            rotary_not_scaled,
            "The scores are not divided by √d.",
            "Read point 2 of the exercise again. Turning does not change lengths.",
        ),
        Misconception(
            output_turned,
            "The output is turned as well; positions should only enter the scores.",
            "Which arrays does the exercise ask you to turn?",
        ),
        Misconception(
            added_not_turned,
            "Sinusoids are added to queries and keys instead of turning them.",
            "Use your answer to exercise 6.",
        ),
        Misconception(
            attention_ignores_base,
            "The base is always 10000: pass `base` on.",
            "Where does `base` enter your computation?",
        ),
        Misconception(
            rotary_overflows,
            "exp of a large score overflows to infinity, and infinity / infinity is NaN.",
            "What can be subtracted from all scores of a row without changing the weights?",
        ),
    ),
    accepted=(rotary_by_complex, rotary_by_distance, rotary_scaled_first),
)
