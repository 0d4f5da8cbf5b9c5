"""Chapter 03: a learned number for each head and distance, added to the scores."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import stable_softmax


def relative_cases(rng):
    """As many queries as keys; fewer; a batch. Distances reach past the table on both sides."""

    def case(group, about, q, k, limit, batch=()):
        heads = 3 if batch else int(rng.choice([2, 3]))
        scores = rng.normal(size=(*batch, heads, q, k))
        return Case(group, {"scores": scores, "table": _draw_table(rng, heads, limit)}, about)

    yield case("square", "as many queries as keys", 4, 4, 1)
    yield case("square", "as many queries as keys, a longer table", 6, 6, 2)
    q = int(rng.integers(2, 5))
    yield case("fewer", "fewer queries than keys", q, 6, 2)
    yield case("fewer", "fewer queries than keys, a short table", q, 5, 1)
    yield case("fewer", "a single query", 1, 6, 2)
    yield case("batch", "a batch, as many queries as keys", 4, 4, 1, (2,))
    yield case("batch", "a batch, fewer queries than keys", 2, 5, 1, (2,))
    large = case("batch", "large scores", 3, 5, 1)
    large.inputs["scores"][...] = rng.permuted(
        900.0 * np.arange(-2, 3) + large.inputs["scores"], axis=-1
    )
    yield large


def _draw_table(rng, heads, limit):
    """Draw numbers whose ends differ clearly, so that clipping shows."""
    return rng.normal(size=(heads, 2 * limit + 1)) + np.linspace(-1, 0.5, 2 * limit + 1)


def relative_reference(scores, table):
    """One query and one key at a time."""
    q, k = scores.shape[-2:]
    limit = (table.shape[1] - 1) // 2
    weights = np.empty(scores.shape)
    for *lead, head, i in np.ndindex(scores.shape[:-1]):
        row = []
        for key in range(k):
            distance = key - (k - q + i)
            nearest = max(-limit, min(limit, distance))
            row.append(scores[(*lead, head, i, key)] + table[head, nearest + limit])
        weights[(*lead, head, i)] = np.exp(np.array(row) - np.logaddexp.reduce(row))
    return weights


def _distances(scores, offset=None):
    """Key position minus query position; by default the last query stands at the last key."""
    q, k = scores.shape[-2:]
    offset = k - q if offset is None else offset
    return np.arange(k)[None, :] - (np.arange(q) + offset)[:, None]


def _weights(scores, table, index):
    return stable_softmax(scores + table[:, index])


def _limit(table):
    return table.shape[1] // 2


def distance_has_the_wrong_sign(scores, table):
    """Query position minus key position."""
    index = np.clip(-_distances(scores), -_limit(table), _limit(table)) + _limit(table)
    return _weights(scores, table, index)


def distance_without_sign(scores, table):
    """Past and future at the same distance share a number."""
    index = np.minimum(np.abs(_distances(scores)), _limit(table)) + _limit(table)
    return _weights(scores, table, index)


def queries_start_at_zero(scores, table):
    """Takes the queries for the first tokens."""
    index = np.clip(_distances(scores, 0), -_limit(table), _limit(table)) + _limit(table)
    return _weights(scores, table, index)


def clipped_above_only(scores, table):
    """Far keys before the query get indices below 0: read from the end, or refused."""
    index = np.minimum(_distances(scores), _limit(table)) + _limit(table)
    return _weights(scores, table, index)


def clipped_below_only(scores, table):
    """Far keys after the query get indices past the end, which NumPy refuses."""
    index = np.maximum(_distances(scores), -_limit(table)) + _limit(table)
    return _weights(scores, table, index)


def distance_not_clipped(scores, table):
    """NumPy refuses far keys after the query, or reads far ones before it from the end."""
    return _weights(scores, table, _distances(scores) + _limit(table))


def no_bias_far_away(scores, table):
    """Nothing is added where the distance is past the limit."""
    distances, limit = _distances(scores), _limit(table)
    near = np.abs(distances) <= limit
    bias = table[:, np.clip(distances, -limit, limit) + limit]
    return stable_softmax(scores + np.where(near, bias, 0.0))


def index_not_moved(scores, table):
    """Uses the signed distance itself as an index: -1 is the last column."""
    return _weights(scores, table, np.clip(_distances(scores), -_limit(table), _limit(table)))


def bias_after_the_softmax(scores, table):
    """Adds to the weights, which then don't sum to 1."""
    index = np.clip(_distances(scores), -_limit(table), _limit(table)) + _limit(table)
    return stable_softmax(scores) + table[:, index]


def bias_multiplied(scores, table):
    """Multiplies scores by the bias."""
    index = np.clip(_distances(scores), -_limit(table), _limit(table)) + _limit(table)
    return stable_softmax(scores * table[:, index])


def bias_subtracted(scores, table):
    """Takes the number off."""
    index = np.clip(_distances(scores), -_limit(table), _limit(table)) + _limit(table)
    return stable_softmax(scores - table[:, index])


def one_number_for_a_query(scores, table):
    """Adds the same number to a whole row: the softmax does not notice."""
    return stable_softmax(scores)


def bias_by_key_only(scores, table):
    """The number depends on the key's place alone."""
    k = scores.shape[-1]
    index = np.clip(np.arange(k) - k // 2, -_limit(table), _limit(table)) + _limit(table)
    return stable_softmax(scores + table[:, index][:, None, :])


def first_head_for_all(scores, table):
    """Every head gets the numbers of head 0."""
    index = np.clip(_distances(scores), -_limit(table), _limit(table)) + _limit(table)
    return stable_softmax(scores + table[0, index])


def relative_softmax_over_queries(scores, table):
    """Columns sum to 1 instead of rows."""
    index = np.clip(_distances(scores), -_limit(table), _limit(table)) + _limit(table)
    return stable_softmax(scores + table[:, index], axis=-2)


def relative_overflows(scores, table):
    """exp of large scores is infinite."""
    index = np.clip(_distances(scores), -_limit(table), _limit(table)) + _limit(table)
    powers = np.exp(scores + table[:, index])
    return powers / powers.sum(axis=-1, keepdims=True)


def relative_by_gather(scores, table):
    """Right: distances by `subtract.outer`, clipped with minimum and maximum."""
    q, k = scores.shape[-2:]
    limit = (table.shape[-1] - 1) // 2
    distance = -np.subtract.outer(np.arange(k - q, k), np.arange(k))
    bias = np.take(table, np.maximum(0, np.minimum(2 * limit, distance + limit)), axis=-1)
    biased = scores + bias
    return np.exp(biased - np.logaddexp.reduce(biased, axis=-1, keepdims=True))


def relative_one_hot(scores, table):
    """Right: a one-hot distance for each pair, times the table."""
    q, k = scores.shape[-2:]
    limit = table.shape[1] // 2
    steps = np.arange(-limit, limit + 1)
    distance = np.arange(k) - np.arange(q)[:, None] - (k - q)
    hot = np.sign(distance)[..., None] * np.minimum(abs(distance), limit)[..., None] == steps
    biased = scores + np.einsum("qkr,hr->hqk", hot.astype(float), table)
    biased = biased - biased.max(axis=-1, keepdims=True)
    return np.exp(biased) / np.exp(biased).sum(axis=-1)[..., None]


def relative_by_loops(scores, table):
    """Right: fills the bias with two loops, then multiplies powers of score and bias."""
    q, k = scores.shape[-2:]
    limit = (len(table[0]) - 1) // 2
    bias = np.zeros((len(table), q, k))
    for i in range(q):
        for j in range(k):
            bias[:, i, j] = table[:, min(max(j - i - (k - q), -limit), limit) + limit]
    powers = np.exp(scores - scores.max(-1, keepdims=True)) * np.exp(bias)
    return powers / powers.sum(-1, keepdims=True)


RELATIVE_WEIGHTS = Exercise(
    id="relative_weights",
    title="A bias for each distance",
    asks="Add the number of head and clipped distance to each score; then softmax over keys.",
    parameters=("scores", "table"),
    groups={
        "square": Group(1, "as many queries as keys"),
        "fewer": Group(2, "fewer queries than keys"),
        "batch": Group(1, "a batch; large scores"),
    },
    cases=relative_cases,
    reference=relative_reference,
    misconceptions=(
        Misconception(
            distance_has_the_wrong_sign,
            "The sign of the distance is turned round: keys before the query count as after it.",
            "For query 3 and key 1, which number does point 1 of the exercise give?",
        ),
        Misconception(
            distance_without_sign,
            "The distance has no sign, so a key before the query looks like one after it.",
            "How many different numbers does a head have for distances −1 and +1?",
        ),
        Misconception(
            queries_start_at_zero,
            "The queries are taken for the first tokens; they are the last ones.",
            "With 2 queries and 5 keys, at which position stands the first query?",
        ),
        Misconception(
            clipped_above_only,
            "Only large positive distances are clipped; very negative ones run off the table.",
            "Print the smallest index that you use.",
        ),
        Misconception(
            clipped_below_only,
            "Only very negative distances are clipped; large positive ones run off the table.",
            "Print the largest index that you use.",
        ),
        Misconception(
            distance_not_clipped,
            "Distances past the limit are not clipped: they index outside the table.",
            "Print the smallest and the largest index that you use.",
        ),
        Misconception(
            no_bias_far_away,
            "Past the limit nothing is added; the exercise asks for the number of the limit.",
            "Which number belongs to distance −9 when the limit is 3?",
        ),
        Misconception(
            index_not_moved,
            "The signed distance itself is the index, so −1 means the last column.",
            "In which column does distance 0 stand?",
        ),
        Misconception(
            bias_after_the_softmax,
            "The numbers are added to the weights, so rows no longer sum to 1.",
            "Where does the bias belong: before or after the softmax?",
        ),
        Misconception(
            bias_multiplied,
            "The scores are multiplied by the numbers.",
            "Read point 3 of the exercise again.",
        ),
        Misconception(
            bias_subtracted,
            "The numbers are taken off instead of added.",
            "Read point 3 of the exercise again.",
        ),
        Misconception(
            one_number_for_a_query,
            "These are the weights without any bias: none is added, or the same to a whole row.",
            "A softmax does not notice what all scores of a row share. What must differ in a row?",
        ),
        Misconception(
            bias_by_key_only,
            "The bias depends on the key alone: all queries get the same row.",
            "How far is the same key from two different queries?",
        ),
        Misconception(
            first_head_for_all,
            "Every head gets the numbers of head 0.",
            "Which axis of the table belongs to the heads?",
        ),
        Misconception(
            relative_softmax_over_queries,
            "The weights sum to 1 over queries instead of over keys.",
            "Sum your weights along each axis: for which one should all sums be 1?",
        ),
        Misconception(
            relative_overflows,
            "exp of a large score overflows to infinity, and infinity / infinity is NaN.",
            "What can be subtracted from all scores of a row without changing the weights?",
        ),
    ),
    accepted=(relative_by_gather, relative_one_hot, relative_by_loops),
    equivalent_mutants={
        "`table.shape[-1]` → `table.shape[1]`": "the table has two axes",
        "`np.clip(distances, -limit, limit)` → "
        "`np.clip(-limit, distances, limit)`": "max(−limit, distance) is symmetric",
    },
)
