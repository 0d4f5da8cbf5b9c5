"""Exercises of chapter 13 on DeBERTa: distances with a limit, and scores of three parts."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- relative_distance ---------------------------------------------------------------------------


def relative_distance_cases(rng):
    """Limits that cut on both sides; a limit that cuts nothing; queries ≠ keys."""
    s = draw_sizes(rng, "queries", "keys", among=(6, 7, 8, 9))
    for group, queries, keys, largest, about in (
        ("limited", s.queries, s.keys, 3, "a limit that cuts on both sides"),
        ("limited", s.keys, s.queries, 2, "a smaller limit"),
        ("edges", s.queries, s.keys, 11, "a limit that cuts nothing"),
        ("edges", s.keys, s.queries, 1, "before or after, nothing else"),
    ):
        yield Case(group, {"queries": queries, "keys": keys, "largest": largest}, about)


def relative_distance_reference(queries, keys, largest):
    """Case by case, as the equation has them."""
    result = torch.zeros(queries, keys, dtype=torch.int64)
    for i, j in np.ndindex(queries, keys):
        if i - j <= -largest:
            result[i, j] = 0
        elif i - j >= largest:
            result[i, j] = 2 * largest - 1
        else:
            result[i, j] = i - j + largest
    return result


def _distance(queries, keys):
    return torch.arange(queries)[:, None] - torch.arange(keys)


def sign_exchanged(queries, keys, largest):
    """j − i."""
    return (-_distance(queries, keys) + largest).clamp(0, 2 * largest - 1)


def not_limited(queries, keys, largest):
    """No limit at all."""
    return _distance(queries, keys) + largest


def one_too_many(queries, keys, largest):
    """Up to 2k: one row more than the table has."""
    return (_distance(queries, keys) + largest).clamp(0, 2 * largest)


def limited_above_only(queries, keys, largest):
    """Negative indices stay."""
    return (_distance(queries, keys) + largest).clamp(max=2 * largest - 1)


def not_moved(queries, keys, largest):
    """From −k to k − 1."""
    return _distance(queries, keys).clamp(-largest, largest - 1)


def without_direction(queries, keys, largest):
    """The absolute value: before and after look alike."""
    return (_distance(queries, keys).abs() + largest).clamp(0, 2 * largest - 1)


def moved_too_little(queries, keys, largest):
    """Adds k − 1."""
    return (_distance(queries, keys) + largest - 1).clamp(0, 2 * largest - 1)


def wraps_around(queries, keys, largest):
    """A remainder for a limit."""
    return (_distance(queries, keys) + largest).remainder(2 * largest)


def distance_by_where(queries, keys, largest):
    """Right: three cases."""
    back = _distance(queries, keys)
    inside = torch.where(back <= -largest, 0, back + largest)
    return torch.where(back >= largest, 2 * largest - 1, inside)


def distance_in_lists(queries, keys, largest):
    """Right: lists, minimum and maximum."""
    top = 2 * largest - 1
    rows = [[min(max(i - j + largest, 0), top) for j in range(keys)] for i in range(queries)]
    return torch.tensor(rows)


def distance_in_numpy(queries, keys, largest):
    """Right: NumPy."""
    i, j = np.indices((queries, keys))
    return torch.from_numpy(np.clip(i - j, -largest, largest - 1) + largest)


RELATIVE_DISTANCE = Exercise(
    id="relative_distance",
    title="Distances with a limit",
    asks="Number the distances from query to key, the far ones together.",
    parameters=("queries", "keys", "largest"),
    outputs=("distance",),
    driver="tensor_function",
    groups={
        "limited": Group(1, "limits that cut on both sides"),
        "edges": Group(1, "a limit that cuts nothing, and the smallest one"),
    },
    cases=relative_distance_cases,
    reference=relative_distance_reference,
    misconceptions=(
        Misconception(
            sign_exchanged,
            "The sign is turned round: j − i for i − j.",
            "A key far in the *future* of the query has which number?",
        ),
        Misconception(
            not_limited,
            "Nothing is limited: indices leave the table.",
            "How many rows has a table of distances?",
        ),
        Misconception(
            one_too_many,
            "The largest number is 2k; the table has rows 0 to 2k − 1.",
            "How many rows has a table of distances?",
        ),
        Misconception(
            limited_above_only,
            "Only one side is limited: negative numbers would read the table from its end.",
            "What does a key far in the future get?",
        ),
        Misconception(
            not_moved,
            "The numbers start at −k; they should start at 0.",
            "Which number has distance 0?",
        ),
        Misconception(
            without_direction,
            "Before and after look alike.",
            "“dog bites man”: does it matter on which side a word stands?",
        ),
        Misconception(
            moved_too_little,
            "The numbers are off by one.",
            "Which number has distance 0?",
        ),
        Misconception(
            wraps_around,
            "Far distances wrap around to near ones.",
            "All keys that are far behind get the same number. Which?",
        ),
    ),
    accepted=(distance_by_where, distance_in_lists, distance_in_numpy),
)

# --- disentangled_scores -------------------------------------------------------------------------


def disentangled_scores_cases(rng):
    """Two limits; one sentence with one head."""
    s = draw_sizes(rng, "length", "width", among=(5, 6, 7))
    small = draw_sizes(rng, "batch", "heads", among=(2, 3))
    for group, batch, heads, length, largest, about in (
        ("scores", small.batch, small.heads, 4, 2, "a small limit"),
        ("scores", 1, 2, s.length, 4, "a larger limit, one sentence"),
        ("edges", 2, 1, 5, 3, "one head"),
    ):
        distance = relative_distance_reference(length, length, largest)
        inputs = {
            "queries": rng.normal(size=(batch, heads, length, s.width)),
            "keys": rng.normal(size=(batch, heads, length, s.width)),
            "position_queries": rng.normal(size=(heads, 2 * largest, s.width)),
            "position_keys": rng.normal(size=(heads, 2 * largest, s.width)),
            "distance": distance.numpy(),
        }
        yield Case(group, inputs, about)


def disentangled_scores_reference(queries, keys, position_queries, position_keys, distance):
    """A vector for every pair of places, and three inner products."""
    there = position_keys[:, distance]
    back = position_queries[:, distance.T]
    content = torch.einsum("bhid,bhjd->bhij", queries, keys)
    to_position = torch.einsum("bhid,hijd->bhij", queries, there)
    from_position = torch.einsum("bhjd,hijd->bhij", keys, back)
    return (content + to_position + from_position) / np.sqrt(3 * queries.shape[-1])


def _parts(queries, keys, position_queries, position_keys, distance):
    index = distance.expand(*queries.shape[:-1], -1)
    return (
        queries @ keys.mT,
        (queries @ position_keys.mT).gather(-1, index),
        (keys @ position_queries.mT).gather(-1, index).mT,
    )


def _score(given, weights=(1, 1, 1), terms=3):
    parts = _parts(**given)
    total = sum(weight * part for weight, part in zip(weights, parts, strict=True))
    return total / (terms * given["queries"].shape[-1]) ** 0.5


def scaled_for_one_term(**given):
    """√d."""
    return _score(given, terms=1)


def scaled_for_two_terms(**given):
    """√2d."""
    return _score(given, terms=2)


def scaled_without_root(**given):
    """3d."""
    return _score(given, terms=3) / (3 * given["queries"].shape[-1]) ** 0.5


def not_scaled(**given):
    """No scale."""
    return sum(_parts(**given))


def contents_alone(**given):
    """Content to content only."""
    return _score(given, (1, 0, 0))


def without_position_to_content(**given):
    """Two parts."""
    return _score(given, (1, 1, 0))


def without_content_to_position(**given):
    """Two parts."""
    return _score(given, (1, 0, 1))


def without_contents(**given):
    """Two parts."""
    return _score(given, (0, 1, 1))


def same_distance_both_ways(**given):
    """The third part at δ(i, j)."""
    content, there, _ = _parts(**given)
    index = given["distance"].T.expand(content.shape)
    back = (given["keys"] @ given["position_queries"].mT).gather(-1, index).mT
    return (content + there + back) / (3 * given["queries"].shape[-1]) ** 0.5


def distances_exchanged(**given):
    """Both parts with the other distance."""
    return _score({**given, "distance": given["distance"].T})


def third_part_not_transposed(**given):
    """Leaves the third part with keys as rows."""
    content, there, back = _parts(**given)
    return (content + there + back.mT) / (3 * given["queries"].shape[-1]) ** 0.5


def tables_exchanged(**given):
    """The two tables change places."""
    tables = {
        "position_queries": given["position_keys"],
        "position_keys": given["position_queries"],
    }
    return _score({**given, **tables})


def third_part_asks_queries(**given):
    """Queries for keys in the third part."""
    content, there, _ = _parts(**given)
    back = _parts(**{**given, "keys": given["queries"]})[2]
    return (content + there + back) / (3 * given["queries"].shape[-1]) ** 0.5


def with_positions_to_positions(**given):
    """A fourth part."""
    q, k, distance = given["position_queries"], given["position_keys"], given["distance"]
    fourth = (k[:, distance] * q[:, distance.T]).sum(-1)
    return (sum(_parts(**given)) + fourth) / (4 * given["queries"].shape[-1]) ** 0.5


def scores_by_gather(**given):
    """Right: products with the whole tables, then gather."""
    return _score(given)


def scores_by_index(queries, keys, position_queries, position_keys, distance):
    """Right: advanced indices."""
    rows = torch.arange(len(distance))[:, None]
    there = torch.matmul(queries, position_keys.transpose(1, 2))[:, :, rows, distance]
    back = torch.matmul(keys, position_queries.transpose(1, 2))[:, :, rows, distance]
    content = torch.matmul(queries, keys.transpose(2, 3))
    return (content + there + back.transpose(2, 3)) / (3 * queries.size(-1)) ** 0.5


def scores_in_loops(queries, keys, position_queries, position_keys, distance):
    """Right: column by column, scaled queries and keys."""
    root = (3 * queries.shape[-1]) ** 0.5
    columns = []
    for j in range(queries.shape[2]):
        key = keys[:, :, j : j + 1]
        there = position_keys[:, distance[:, j]]
        back = position_queries[:, distance[j]]
        columns.append((queries * (key + there) + key * back).sum(-1) / root)
    return torch.stack(columns, dim=-1)


DISENTANGLED_SCORES = Exercise(
    id="disentangled_scores",
    title="Scores of three parts",
    asks="Add content to content, content to position and position to content.",
    parameters=("queries", "keys", "position_queries", "position_keys", "distance"),
    outputs=("scores",),
    driver="tensor_function",
    groups={
        "scores": Group(3, "batches with several heads"),
        "edges": Group(1, "one sentence, one head"),
    },
    cases=disentangled_scores_cases,
    reference=disentangled_scores_reference,
    misconceptions=(
        Misconception(
            scaled_for_one_term,
            "Scores are divided by √d: right for one term, too sharp for three.",
            "What is the variance of a sum of three products?",
        ),
        Misconception(
            scaled_for_two_terms,
            "Scores are divided by √(2d); there are three terms.",
            "Count the terms of your sum.",
        ),
        Misconception(
            scaled_without_root,
            "Scores are divided by 3d, without the root.",
            "A standard deviation is the root of a variance.",
        ),
        Misconception(
            not_scaled,
            "Scores are not scaled.",
            "Point 4 of the contract.",
        ),
        Misconception(
            contents_alone,
            "Positions play no part.",
            "Which of the five arguments have you not used?",
        ),
        Misconception(
            without_position_to_content,
            "The third part, position to content, is missing.",
            "Which of the five arguments have you not used?",
        ),
        Misconception(
            without_content_to_position,
            "The second part, content to position, is missing.",
            "Which of the five arguments have you not used?",
        ),
        Misconception(
            without_contents,
            "The first part, content to content, is missing.",
            "What did a score consist of before there were positions?",
        ),
        Misconception(
            same_distance_both_ways,
            "The third part uses δ(i, j); seen from the key, the distance is δ(j, i).",
            "How does `distance` change if query and key change places?",
        ),
        Misconception(
            distances_exchanged,
            "Both parts look the distance up the wrong way round.",
            "Entry (i, j) of `distance` belongs to query i and key j.",
        ),
        Misconception(
            third_part_not_transposed,
            "In the third part rows are keys; they have to become columns.",
            "Which axis of keys @ position_queriesᵀ are the keys?",
        ),
        Misconception(
            tables_exchanged,
            "The two tables of positions are exchanged.",
            "A content *query* meets position … ?",
        ),
        Misconception(
            third_part_asks_queries,
            "The third part multiplies position queries with content *queries*.",
            "Position asks, content answers: with its keys.",
        ),
        Misconception(
            with_positions_to_positions,
            "There is a fourth part, position to position.",
            "Which of the four combinations does the paper leave out?",
        ),
    ),
    accepted=(scores_by_gather, scores_by_index, scores_in_loops),
)
