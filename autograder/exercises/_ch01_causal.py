"""Chapter 01: the causal mask."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def causal_mask_cases(rng):
    """Two squares, then more keys, more queries, one query and one key."""
    s = draw_sizes(rng, "small", "large", among=(3, 5, 6, 7, 8))
    few, many = sorted((s.small, s.large))
    for group, queries, keys, about in (
        ("square", many, many, "as many queries as keys"),
        ("square", few, few, "as many queries as keys, another size"),
        ("cache", few, many, "more keys than queries: earlier keys come from a cache"),
        ("cache", 1, many, "one query: the newest token sees every key"),
        ("cache", many, few, "more queries than keys: the first rows see nothing"),
    ):
        yield Case(group, {"queries": queries, "keys": keys}, about)


def causal_mask_reference(queries, keys):
    """Row by row from the last, which sees everything."""
    rows = [[True] * (keys - back) + [False] * min(back, keys) for back in range(queries)]
    return np.array(rows[::-1], dtype=bool)


def _places(queries, keys):
    """Rows and columns as index arrays that broadcast."""
    return np.arange(queries)[:, None], np.arange(keys)[None, :]


def upper_triangle(queries, keys):
    """Sees the future and not the past."""
    i, j = _places(queries, keys)
    return j >= i + keys - queries


def own_token_hidden(queries, keys):
    """The diagonal is left out."""
    i, j = _places(queries, keys)
    return j < i + keys - queries


def next_token_seen(queries, keys):
    """One diagonal too far."""
    i, j = _places(queries, keys)
    return j <= i + keys - queries + 1


def future_is_true(queries, keys):
    """The opposite: True marks what must not be seen."""
    i, j = _places(queries, keys)
    return j > i + keys - queries


def aligned_at_the_first_key(queries, keys):
    """No offset: the first query sees one key."""
    i, j = _places(queries, keys)
    return j <= i


def offset_turned_round(queries, keys):
    """queries − keys for keys − queries."""
    i, j = _places(queries, keys)
    return j <= i + queries - keys


def square_of_queries(queries, keys):
    """Sized by the queries twice."""
    return np.tri(queries, queries, dtype=bool)


def square_of_keys(queries, keys):
    """Sized by the keys twice."""
    return np.tri(keys, keys, dtype=bool)


def causal_mask_transposed(queries, keys):
    """Right pattern with one row per key."""
    i, j = _places(queries, keys)
    return (j <= i + keys - queries).T


def sizes_exchanged(queries, keys):
    """A mask for `keys` queries and `queries` keys."""
    i, j = _places(keys, queries)
    return j <= i + queries - keys


def everything_seen(queries, keys):
    """No mask."""
    return np.ones((queries, keys), dtype=bool)


def diagonal_only(queries, keys):
    """Each query sees its own token only."""
    i, j = _places(queries, keys)
    return j == i + keys - queries


def causal_mask_of_floats(queries, keys):
    """0.0 and 1.0 instead of False and True."""
    return np.tri(queries, keys, keys - queries)


def causal_mask_of_integers(queries, keys):
    """0 and 1 instead of False and True."""
    return np.tri(queries, keys, keys - queries, dtype=int)


def causal_mask_for_adding(queries, keys):
    """0 and −inf, to be added to scores."""
    return np.where(np.tri(queries, keys, keys - queries, dtype=bool), 0.0, -np.inf)


def causal_by_tril(queries, keys):
    """Right: the lower triangle of a mask of ones."""
    return np.tril(np.ones((queries, keys), dtype=bool), k=keys - queries)


def causal_by_last_rows(queries, keys):
    """Right: the last rows of a square large enough."""
    size = max(queries, keys)
    square = np.tri(size, dtype=bool)
    return square[size - queries :, size - keys :]


def causal_by_negated_triu(queries, keys):
    """Right: everything but the future."""
    return ~np.triu(np.ones((queries, keys), dtype=bool), k=keys - queries + 1)


def causal_by_loops(queries, keys):
    """Right: entry by entry, positions counted from the end."""
    mask = np.zeros((queries, keys), dtype=bool)
    for i in range(queries):
        for j in range(keys):
            mask[i, j] = keys - j >= queries - i
    return mask


CAUSAL_MASK = Exercise(
    id="causal_mask",
    title="No look at the future",
    asks="Make a mask, True where query i may see key j: nothing later than itself; the last "
    "query sees all keys.",
    parameters=("queries", "keys"),
    groups={
        "square": Group(1, "as many queries as keys"),
        "cache": Group(1, "different numbers of queries and keys"),
    },
    cases=causal_mask_cases,
    reference=causal_mask_reference,
    misconceptions=(
        Misconception(
            upper_triangle,
            "This is the upper triangle: every query sees itself and the future.",
            "Row i is query i. Which keys came before it: the ones to its left or to its right?",
        ),
        Misconception(
            own_token_hidden,
            "The triangle is strict: a query does not see its own token.",
            "The first query of a square mask may see exactly one key.",
        ),
        Misconception(
            next_token_seen,
            "The triangle is one diagonal too wide: every query sees the token after it.",
            "The first query of a square mask may see exactly one key.",
        ),
        Misconception(
            future_is_true,
            "The mask is the opposite: True marks what must not be seen.",
            "In this course True means that the query may look.",
        ),
        Misconception(
            aligned_at_the_first_key,
            "The triangle starts in the upper left corner, whatever the sizes; the last query "
            "has to see all keys.",
            "By how many places must each row be shifted if there are more keys than queries?",
        ),
        Misconception(
            offset_turned_round,
            "The triangle is shifted the wrong way: with more keys, each query sees more, not "
            "less.",
            "Check the last row: it must be True everywhere.",
        ),
        Misconception(
            square_of_queries,
            "The mask is square, sized by the queries twice.",
            "There is one row for each query and one column for each key.",
        ),
        Misconception(
            square_of_keys,
            "The mask is square, sized by the keys twice.",
            "There is one row for each query and one column for each key.",
        ),
        Misconception(
            causal_mask_transposed,
            "The axes are exchanged: there is one row for each key.",
            "There is one row for each query and one column for each key.",
        ),
        Misconception(
            sizes_exchanged,
            "The two sizes are exchanged.",
            "There is one row for each query and one column for each key.",
        ),
        Misconception(
            everything_seen,
            "Every query sees every key, the future included.",
            "Compare the place of the key with the place of the query.",
        ),
        Misconception(
            diagonal_only,
            "Each query sees only its own token; earlier ones are allowed too.",
            "Compare by size and not for equality.",
        ),
        Misconception(
            causal_mask_of_floats,
            "The pattern is right, but it is made of 0.0 and 1.0; a mask is made of False and "
            "True.",
            "Ask for `dtype=bool`, or use a comparison.",
        ),
        Misconception(
            causal_mask_of_integers,
            "The pattern is right, but it is made of 0 and 1; a mask is made of False and True.",
            "Ask for `dtype=bool`, or use a comparison.",
        ),
        Misconception(
            causal_mask_for_adding,
            "This is a mask to be added to scores, of 0 and −inf; here True and False are asked "
            "for.",
            "Return the comparison itself.",
        ),
    ),
    accepted=(causal_by_tril, causal_by_last_rows, causal_by_negated_triu, causal_by_loops),
)
