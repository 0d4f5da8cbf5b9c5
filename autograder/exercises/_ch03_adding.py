"""Chapter 03: adding position vectors to a padded batch."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_lengths, draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def add_cases(rng):
    """Full batches; padded ones with poison in the padding; tables longer than the texts."""

    def draw(rows_more=0):
        s = draw_sizes(rng, "batch", "length", "width", among=(2, 3, 5, 6, 7))
        while s.length <= s.batch or s.batch > 3:
            s = draw_sizes(rng, "batch", "length", "width", among=(2, 3, 5, 6, 7))
        vectors = rng.normal(size=(s.batch, s.length, s.width))
        table = rng.normal(size=(s.length + rows_more, s.width))
        return s, vectors, table

    s, vectors, table = draw()
    full = np.full(s.batch, s.length)
    yield _add_case("values", "no padding", vectors, full, table)
    s, vectors, table = draw()
    full = np.full(s.batch, s.length)
    yield _add_case("values", "no padding, other sizes", vectors, full, table)
    s, vectors, table = draw(rows_more=3)
    full = np.full(s.batch, s.length)
    yield _add_case("longer", "a table with more rows than needed", vectors, full, table)
    for rows_more, about in [(0, "unequal lengths"), (4, "unequal lengths, a longer table")]:
        s, vectors, table = draw(rows_more)
        lengths = draw_lengths(rng, s.batch, s.length)
        while lengths.min() > s.length - 2:  # at least two padded places somewhere
            lengths = draw_lengths(rng, s.batch, s.length)
        padded = np.arange(s.length) >= lengths[:, None]
        vectors = np.where(padded[..., None], 1e5 * vectors, vectors)
        yield _add_case("padding", about, vectors, lengths, table)


def _add_case(group, about, vectors, lengths, table):
    return Case(group, {"vectors": vectors, "lengths": lengths, "table": table}, about)


def add_reference(vectors, lengths, table):
    """Token by token; what is never visited stays zero."""
    result = np.zeros(vectors.shape)
    for text, length in enumerate(lengths):
        for place in range(int(length)):
            token = vectors[text, place]
            result[text, place] = len(token) ** 0.5 * token + table[place]
    return result


def _real(vectors, lengths):
    """Mark the places that hold a token, shape (batch, length, 1)."""
    return (np.arange(vectors.shape[1]) < np.asarray(lengths)[:, None])[..., None]


def _sum(vectors, lengths, rows, factor=None):
    """Scale, add `rows`, put zeros into padding: right unless an argument is not."""
    factor = vectors.shape[-1] ** 0.5 if factor is None else factor
    return np.where(_real(vectors, lengths), factor * vectors + rows, 0.0)


def added_along_the_batch(vectors, lengths, table):
    """Row b of the table goes to text b."""
    return _sum(vectors, lengths, table[: len(vectors), None])


def embedding_not_scaled(vectors, lengths, table):
    """No factor."""
    return _sum(vectors, lengths, table[: vectors.shape[1]], 1.0)


def embedding_divided_by_root(vectors, lengths, table):
    """Divides by the root."""
    return _sum(vectors, lengths, table[: vectors.shape[1]], vectors.shape[-1] ** -0.5)


def embedding_times_width(vectors, lengths, table):
    """Multiplies by the width itself."""
    return _sum(vectors, lengths, table[: vectors.shape[1]], vectors.shape[-1])


def root_of_the_length(vectors, lengths, table):
    """Takes the root of the number of places."""
    return _sum(vectors, lengths, table[: vectors.shape[1]], vectors.shape[1] ** 0.5)


def sum_scaled(vectors, lengths, table):
    """Scales the sum, positions included."""
    root = vectors.shape[-1] ** 0.5
    return root * _sum(vectors, lengths, table[: vectors.shape[1]], 1.0)


def positions_scaled(vectors, lengths, table):
    """Scales the positions and not the tokens."""
    root = vectors.shape[-1] ** 0.5
    return _sum(vectors, lengths, root * table[: vectors.shape[1]], 1.0)


def whole_table_added(vectors, lengths, table):
    """Adds all rows: they only fit if the table is no longer than the texts."""
    return _sum(vectors, lengths, table)


def last_rows_added(vectors, lengths, table):
    """Takes rows from the table's end."""
    return _sum(vectors, lengths, table[-vectors.shape[1] :])


def first_row_skipped(vectors, lengths, table):
    """Starts at row 1, and at row 0 only if nothing else fits."""
    start = min(1, len(table) - vectors.shape[1])
    return _sum(vectors, lengths, table[start : start + vectors.shape[1]])


def same_row_everywhere(vectors, lengths, table):
    """Adds row 0 to every token."""
    return _sum(vectors, lengths, table[0])


def padding_left_as_it_is(vectors, lengths, table):
    """Ignores the lengths."""
    return vectors.shape[-1] ** 0.5 * vectors + table[: vectors.shape[1]]


def padding_gets_positions(vectors, lengths, table):
    """Zeros tokens in padding, then adds positions everywhere."""
    kept = np.where(_real(vectors, lengths), vectors, 0.0)
    return vectors.shape[-1] ** 0.5 * kept + table[: vectors.shape[1]]


def padding_keeps_tokens(vectors, lengths, table):
    """Leaves positions out in padding but keeps what lies there."""
    rows = np.where(_real(vectors, lengths), table[: vectors.shape[1]], 0.0)
    return vectors.shape[-1] ** 0.5 * vectors + rows


def one_token_too_many(vectors, lengths, table):
    """Takes the first padded place for a token."""
    return _sum(vectors, np.asarray(lengths) + 1, table[: vectors.shape[1]])


def padding_on_the_left(vectors, lengths, table):
    """Takes the last places for the real ones."""
    length = vectors.shape[1]
    real = np.arange(length) >= length - np.asarray(lengths)[:, None]
    summed = vectors.shape[-1] ** 0.5 * vectors + table[:length]
    return np.where(real[..., None], summed, 0.0)


def tokens_changed_in_place(vectors, lengths, table):
    """Scales and adds in the caller's own array."""
    vectors *= np.sqrt(vectors.shape[-1])
    vectors += table[: vectors.shape[1]]
    vectors[~_real(vectors, lengths)[..., 0]] = 0.0
    return vectors


def add_on_a_copy(vectors, lengths, table):
    """Right: works in place on a copy, with boolean indexing for the padding."""
    result = np.array(vectors, dtype=np.float64)
    length, width = result.shape[1:]
    result *= np.sqrt(width)
    result += table[None, :length, :]
    result[np.arange(length)[None, :] >= lengths[:, None]] = 0
    return result


def add_by_multiplying(vectors, lengths, table):
    """Right: rows fetched by index, padding multiplied away."""
    places = np.arange(vectors.shape[1])
    keep = np.less.outer(places, lengths).T.astype(float)
    return np.einsum("bld,bl->bld", vectors * vectors.shape[-1] ** 0.5 + table[places], keep)


def add_text_by_text(vectors, lengths, table):
    """Right: fills an array of zeros, one text at a time."""
    result = np.zeros_like(vectors)
    for text, length in enumerate(lengths):
        tokens = vectors[text, :length]
        result[text, :length] = np.sqrt(tokens.shape[-1]) * tokens + table[:length]
    return result


ADD_POSITIONS = Exercise(
    id="add_positions",
    title="Positions for a padded batch",
    asks="Scale token vectors by √d_model, add each place its row; zeros in padding.",
    parameters=("vectors", "lengths", "table"),
    groups={
        "values": Group(1, "no padding"),
        "longer": Group(1, "a table longer than the texts"),
        "padding": Group(1, "unequal lengths"),
    },
    cases=add_cases,
    reference=add_reference,
    misconceptions=(
        Misconception(
            added_along_the_batch,
            "The rows of the table went along the batch: all tokens of a text got the same one.",
            "Line up the shapes from the right: which axis does the table's first one meet?",
        ),
        Misconception(
            embedding_not_scaled,
            "The token vectors are not multiplied by √d_model.",
            "Read point 2 of the exercise again.",
        ),
        Misconception(
            embedding_divided_by_root,
            "The token vectors are divided by √d_model; here they are made longer.",
            "Read point 2 of the exercise again. (Division is for attention scores.)",
        ),
        Misconception(
            embedding_times_width,
            "The token vectors are multiplied by d_model instead of by its root.",
            "Read point 2 of the exercise again.",
        ),
        Misconception(
            root_of_the_length,
            "The root is taken of the number of places, not of the vectors' width.",
            "Which axis is d_model?",
        ),
        Misconception(
            sum_scaled,
            "The positions are scaled too: the factor belongs to the token vectors alone.",
            "What comes first, the product or the sum?",
        ),
        Misconception(
            positions_scaled,
            "The factor went to the positions instead of to the token vectors.",
            "Read point 2 of the exercise again.",
        ),
        Misconception(
            whole_table_added,
            "The whole table is added; it fits only if it has as many rows as the texts places.",
            "Which rows of a longer table belong to the places that there are?",
        ),
        Misconception(
            last_rows_added,
            "The rows come from the end of the table; place 0 should get row 0.",
            "Which row belongs to place 0?",
        ),
        Misconception(
            first_row_skipped,
            "Row 0 of the table is skipped: positions are counted from 1.",
            "Which row belongs to place 0?",
        ),
        Misconception(
            same_row_everywhere,
            "Every token gets row 0 of the table.",
            "Which row belongs to place l?",
        ),
        Misconception(
            padding_left_as_it_is,
            "Padded places are treated as tokens: `lengths` has no effect.",
            "Where does `lengths` enter your computation?",
        ),
        Misconception(
            padding_gets_positions,
            "Padded places hold position vectors; they should hold zeros.",
            "Which comes last, putting in zeros or adding positions?",
        ),
        Misconception(
            padding_keeps_tokens,
            "Padded places keep whatever was in them; they should hold zeros.",
            "What should be multiplied by 0 in padding: the table alone, or the sum?",
        ),
        Misconception(
            one_token_too_many,
            "The first padded place counts as a token.",
            "A text of length 3 has places 0, 1, 2. Is it < or ≤?",
        ),
        Misconception(
            padding_on_the_left,
            "The last places count as tokens; here the padding comes after them.",
            "Which places of a text of length 3 are real?",
        ),
        Misconception(
            tokens_changed_in_place,
            "The caller's `vectors` are overwritten.",
            "`a * b` makes a new array; `a *= b` and `a[...] = b` change the old one.",
        ),
    ),
    accepted=(add_on_a_copy, add_by_multiplying, add_text_by_text),
)
