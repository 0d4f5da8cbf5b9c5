"""Chapter 02: scores of all queries and keys, and the softmax over visible keys."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_mask, draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch02_parts import (
    draw_attention_sizes,
    draw_mask_with_empty_row,
    scores_of,
    stable_softmax,
)

# --- scaled_scores -------------------------------------------------------------------------------


def scaled_scores_cases(rng):
    """Unequal and equal numbers of queries and keys; leading axes."""
    s = draw_sizes(rng, "q", "k", "d_k")
    inputs = {"queries": rng.normal(size=(s.q, s.d_k)), "keys": rng.normal(size=(s.k, s.d_k))}
    yield Case("values", inputs, "unequal numbers of queries and keys")
    inputs = {"queries": rng.normal(size=(s.q, s.k)), "keys": rng.normal(size=(s.q, s.k))}
    yield Case("values", inputs, "as many keys as queries")
    s = draw_attention_sizes(rng)
    for lead in [(s.batch,), (s.batch, s.heads)]:
        inputs = {
            "queries": rng.normal(size=(*lead, s.q, s.d_k)),
            "keys": rng.normal(size=(*lead, s.k, s.d_k)),
        }
        yield Case("leading", inputs, f"{len(lead) + 2} axes")


def scaled_scores_reference(queries, keys):
    """One number at a time."""
    scores = np.empty((*queries.shape[:-1], keys.shape[-2]))
    for *lead, q, k in np.ndindex(scores.shape):
        query, key = queries[(*lead, q)], keys[(*lead, k)]
        scores[(*lead, q, k)] = np.dot(query, key) / np.sqrt(len(query))
    return scores


def scores_not_scaled(queries, keys):
    """Forgets the division."""
    return scores_of(queries, keys, scale=1.0)


def divided_by_d_k(queries, keys):
    """Divides by d_k instead of by its square root."""
    return scores_of(queries, keys) / np.sqrt(queries.shape[-1])


def divided_by_root_of_keys(queries, keys):
    """Divides by the root of the number of keys."""
    return scores_of(queries, keys, scale=keys.shape[-2] ** -0.5)


def divided_by_root_of_queries(queries, keys):
    """Divides by the root of the number of queries."""
    return scores_of(queries, keys, scale=queries.shape[-2] ** -0.5)


def divided_by_two(queries, keys):
    """Divides by 2, right for d_k = 4 only."""
    return scores_of(queries, keys, scale=0.5)


def multiplied_by_root(queries, keys):
    """Multiplies by √d_k."""
    return scores_of(queries, keys, scale=queries.shape[-1] ** 0.5)


def keys_against_queries(queries, keys):
    """Has keys in the rows and queries in the columns."""
    return np.swapaxes(scores_of(queries, keys), -1, -2)


def reversed_all_axes(queries, keys):
    """`keys.T` turns round all axes, leading ones too."""
    return queries @ keys.T / np.sqrt(queries.shape[-1])


def products_in_pairs(queries, keys):
    """Multiplies query i with key i only; shapes fit when there are as many keys as queries."""
    return (queries * keys).sum(axis=-1) / np.sqrt(queries.shape[-1])


def scores_by_einsum(queries, keys):
    """Right: queries are scaled first, then einsum."""
    return np.einsum("...qd,...kd->...qk", queries / np.sqrt(queries.shape[-1]), keys)


def scores_scaled_by_halves(queries, keys):
    """Right: half of the scaling on each side."""
    root = queries.shape[-1] ** 0.25
    return (queries / root) @ np.swapaxes(keys / root, -1, -2)


def scores_by_broadcasting(queries, keys):
    """Right: every pair by broadcasting, then a sum."""
    products = queries[..., :, None, :] * keys[..., None, :, :]
    return products.sum(axis=-1) / np.sqrt(keys.shape[-1])


SCALED_SCORES = Exercise(
    id="scaled_scores",
    title="Every query against every key",
    asks="Give the products of all queries with all keys, divided by √d_k.",
    parameters=("queries", "keys"),
    groups={
        "values": Group(1, "two axes"),
        "leading": Group(1, "leading axes: batch, heads"),
    },
    cases=scaled_scores_cases,
    reference=scaled_scores_reference,
    misconceptions=(
        Misconception(
            scores_not_scaled,
            "The scores are not scaled: they grow with the width of queries and keys.",
            "By what does the formula divide QKᵀ?",
        ),
        Misconception(
            divided_by_d_k,
            "The scores are divided by d_k, so they shrink as the width grows.",
            "It is the variance that grows like d_k. How does the standard deviation grow?",
        ),
        Misconception(
            divided_by_root_of_keys,
            "The root is taken of the number of keys, not of their width.",
            "Which axis of `keys` does the product sum over?",
        ),
        Misconception(
            divided_by_root_of_queries,
            "The root is taken of the number of queries, not of their width.",
            "Which axis of `queries` does the product sum over?",
        ),
        Misconception(
            divided_by_two,
            "The scores are divided by the constant 2, which fits only one width.",
            "Read the width off the array's shape.",
        ),
        Misconception(
            multiplied_by_root,
            "The scores are multiplied by √d_k: that makes them grow even faster.",
            "Should scores of wide vectors become larger or smaller by the scaling?",
        ),
        Misconception(
            keys_against_queries,
            "Rows are keys and columns are queries: the result is transposed.",
            "Which of the two comes first in the shape that the contract gives?",
        ),
        Misconception(
            reversed_all_axes,
            "`.T` turns round all axes, the batch too; only the last two should change places.",
            "`np.swapaxes` takes the two axes to exchange.",
        ),
        Misconception(
            products_in_pairs,
            "Query i meets key i only; every query has to meet every key.",
            "How many numbers should come out for q queries and k keys?",
        ),
    ),
    accepted=(scores_by_einsum, scores_scaled_by_halves, scores_by_broadcasting),
)

# --- masked_softmax ------------------------------------------------------------------------------


def masked_softmax_cases(rng):
    """Masks of all shapes; poison in hidden places; rows that see nothing; large scores."""
    s = draw_attention_sizes(rng)

    def case(group, scores, mask, about, poison=(30.0, 150.0)):
        scores = np.where(mask, scores, scores + rng.choice(poison, size=scores.shape))
        return Case(group, {"scores": scores, "mask": mask}, about)

    scores = rng.normal(size=(s.batch, s.heads, s.q, s.k))
    mask = draw_mask(rng, s.q, s.k)
    yield case("values", scores[0, 0], mask, "a matrix, a mask of its shape", [0.0, 1.0])
    mask = draw_mask(rng, s.q, s.k)
    yield case("values", 3 * scores[0, 1], mask, "a matrix, large numbers in hidden places")
    yield case("broadcast", scores[0], draw_mask(rng, s.q, s.k), "one mask for all heads")
    yield case("broadcast", scores[0, 0], draw_mask(rng, s.k), "one row of the mask for all")
    padding = np.arange(s.k) < draw_lengths(rng, s.batch, s.k)[:, None, None, None]
    yield case("broadcast", scores, padding, "a padding mask (batch, 1, 1, k)")
    empty = draw_mask_with_empty_row(rng, s.q, s.k)
    yield case("empty", scores[0, 0], empty, "a row with no visible key")
    empty = draw_mask_with_empty_row(rng, s.batch, 1, s.q, s.k)
    yield case("empty", scores, empty, "such rows in a batch")
    levels = 1000.0 * np.arange(1, s.q + 1)[:, None]
    yield case("large", scores[0, 0] + levels, draw_mask(rng, s.q, s.k), "scores near 1000, 2000…")
    yield case("large", scores[0, 1] - levels, draw_mask(rng, s.q, s.k), "scores near −1000, …")


def masked_softmax_reference(scores, mask):
    """Row by row, over the visible scores only."""
    visible = np.broadcast_to(mask, scores.shape)
    weights = np.zeros(scores.shape)
    for index in np.ndindex(scores.shape[:-1]):
        seen = [k for k in range(scores.shape[-1]) if visible[index][k]]
        if seen:
            kept = scores[index][seen]
            weights[index][seen] = np.exp(kept - np.logaddexp.reduce(kept))
    return weights


def hides_what_is_visible(scores, mask):
    """Takes True for hidden."""
    return stable_softmax(np.where(mask, -np.inf, scores))


def masks_weights_only(scores, mask):
    """Sets weights to zero after the softmax, so that rows no longer sum to 1."""
    return stable_softmax(scores) * mask


def multiplies_scores(scores, mask):
    """Multiplies scores by 0 or 1: a score of 0 still has weight."""
    return stable_softmax(scores * mask)


def adds_mask(scores, mask):
    """Adds 0 or 1 to the scores."""
    return stable_softmax(scores + mask)


def fill_not_low_enough(scores, mask):
    """Fills with −10, which is neither low enough nor low at all beside lower scores."""
    return stable_softmax(np.where(mask, scores, -10.0))


def mask_forgotten(scores, mask):
    """Ignores the mask."""
    return stable_softmax(scores)


def empty_row_is_nan(scores, mask):
    """−inf everywhere in a row gives 0/0."""
    scores = np.where(mask, scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def empty_row_is_uniform(scores, mask):
    """−1e9 everywhere in a row gives equal weights to what should be hidden."""
    return stable_softmax(np.where(mask, scores, -1e9))


def fills_in_place(scores, mask):
    """Writes −inf into the caller's scores."""
    np.copyto(scores, -np.inf, where=~mask)
    return stable_softmax(scores)


def overflowing_masked_softmax(scores, mask):
    """exp overflows for large scores."""
    powers = np.where(mask, np.exp(scores), 0.0)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1.0, total)


def adds_minus_infinity_times_mask(scores, mask):
    """0 times infinity is NaN."""
    return stable_softmax(scores - np.inf * (~mask))


def with_minus_infinity(scores, mask):
    """Right: −inf, then empty rows by `where`."""
    filled = np.where(mask, scores, -np.inf)
    largest = filled.max(axis=-1, keepdims=True)
    powers = np.exp(filled - np.where(largest == -np.inf, 0.0, largest))
    total = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


def with_minus_billion(scores, mask):
    """Right: adds −1e9 to hidden scores, and zeros hidden weights afterwards."""
    lowered = scores - 1e9 * ~mask
    powers = np.exp(lowered - lowered.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) * mask


def renormalised_afterwards(scores, mask):
    """Right: softmax of everything, then mask and divide by what is left."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True) * mask
    kept = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(kept == 0, 1.0, kept)


def row_by_row(scores, mask):
    """Right: picks the visible scores of each row with a loop."""
    mask = np.broadcast_to(mask, scores.shape)
    weights = np.zeros_like(scores)
    for row in np.ndindex(scores.shape[:-1]):
        seen = mask[row]
        if seen.any():
            powers = np.exp(scores[row][seen] - scores[row][seen].max())
            weights[row][seen] = powers / powers.sum()
    return weights


MASKED_SOFTMAX = Exercise(
    id="masked_softmax",
    title="Softmax over visible keys",
    asks="Turn scores into weights over visible keys only; a row that sees nothing gets zeros.",
    parameters=("scores", "mask"),
    groups={
        "values": Group(1, "a mask of the scores' shape"),
        "broadcast": Group(1, "masks that broadcast"),
        "empty": Group(1, "rows with no visible key"),
        "large": Group(1, "large and very negative scores"),
    },
    cases=masked_softmax_cases,
    reference=masked_softmax_reference,
    misconceptions=(
        Misconception(
            hides_what_is_visible,
            "The mask is read the wrong way round: True means that a key may be seen.",
            "Look at which weights are zero in your result, and where the mask is True.",
        ),
        Misconception(
            masks_weights_only,
            "Hidden weights are set to zero after the softmax, and rows no longer sum to 1.",
            "Hide the scores before the softmax, or divide by what is left.",
        ),
        Misconception(
            multiplies_scores,
            "Hidden keys get a score of 0 (or next to 0), and exp(0) is 1, not 0.",
            "Which score has the weight zero after a softmax?",
        ),
        Misconception(
            adds_mask,
            "Adding True as 1 makes visible keys only e times heavier than hidden ones.",
            "Which score has the weight zero after a softmax?",
        ),
        Misconception(
            fill_not_low_enough,
            "Hidden scores are low but not low enough: hidden keys keep some weight.",
            "Which score has exactly the weight zero, however low the visible ones are?",
        ),
        Misconception(
            mask_forgotten,
            "The mask has no effect: these are the weights of a plain softmax.",
            "Where does `mask` enter your computation?",
        ),
        Misconception(
            empty_row_is_nan,
            "A row with no visible key becomes 0/0; the contract asks for zeros.",
            "What are the maximum and the sum of a row that is −inf everywhere?",
        ),
        Misconception(
            empty_row_is_uniform,
            "A row with no visible key spreads its weight over hidden keys: a leak.",
            "If all scores of a row are lowered alike, what does the softmax see?",
        ),
        Misconception(
            fills_in_place,
            "The caller's `scores` are overwritten.",
            "`np.where` makes a new array; assignments such as `scores[...] = …` don't.",
        ),
        Misconception(
            overflowing_masked_softmax,
            "exp of large scores overflows, or all powers of a row vanish.",
            "What can be subtracted from all scores of a row without changing the weights?",
        ),
        Misconception(
            adds_minus_infinity_times_mask,
            "Zero times infinity is NaN, so visible scores become NaN.",
            "Choose between two values instead of multiplying by the mask.",
        ),
    ),
    accepted=(with_minus_infinity, with_minus_billion, renormalised_afterwards, row_by_row),
    equivalent_mutants={
        "`np.where(np.isfinite(largest), largest, 0.0)` → "
        "`np.where(np.isfinite(largest), largest, 1.0)`": "exp(−inf − 1) is 0 like exp(−inf)",
        "`np.where(total == 0, 1.0, total)` → "
        "`np.where(total == 0, 2.0, total)`": "0 / 2 is 0 like 0 / 1",
    },
)
