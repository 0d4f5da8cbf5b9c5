"""Exercise of chapter 13 on Transformer-XL's relative shift."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

POISON = 1e3  # in places that no visible pair reads


def relative_shift_cases(rng):
    """With memory, without, with a single query."""
    s = draw_sizes(rng, "batch", "heads", among=(2, 3))
    far = draw_sizes(rng, "queries", "memory", among=(3, 4, 5))
    s.queries, s.memory = far.queries, far.memory
    for group, queries, memory, about in (
        ("memory", s.queries, s.memory, "queries with a memory before them"),
        ("square", s.memory, 0, "no memory"),
        ("square", 1, s.memory, "one query"),
    ):
        keys = memory + queries
        x = rng.normal(size=(s.batch, s.heads, queries, keys))
        unread = np.arange(keys) < queries - 1 - np.arange(queries)[:, None]
        compared = np.arange(keys) <= memory + np.arange(queries)[:, None]
        inputs = {
            "x": np.where(unread, POISON * x, x),
            "compared": np.broadcast_to(compared, x.shape).copy(),
        }
        yield Case(group, inputs, about)


def relative_shift_reference(x):
    """Entry by entry, from the distance."""
    queries, keys = x.shape[-2:]
    result = torch.zeros_like(x)
    for i in range(queries):
        for j in range(keys - queries + i + 1):
            distance = keys - queries + i - j
            result[..., i, j] = x[..., i, keys - 1 - distance]
    return result


def _read(x, column):
    queries, keys = x.shape[-2:]
    i, j = torch.arange(queries)[:, None], torch.arange(keys)
    return x.gather(-1, column(i, j, queries, keys).clamp(0, keys - 1).expand(x.shape))


def not_shifted(x):
    """Copies."""
    return x.clone()


def _cut(x, padding, rows):
    batch, heads, queries, keys = x.shape
    padded = functional.pad(x, padding).reshape(batch, heads, keys + 1, queries)
    return padded[:, :, rows].reshape(x.shape)


def wrong_row_dropped(x):
    """Drops the last row instead of the first."""
    return _cut(x, (1, 0), slice(None, -1))


def padded_behind(x):
    """Pads at the wrong end and drops the first row."""
    return _cut(x, (0, 1), slice(1, None))


def padded_behind_last_dropped(x):
    """Pads at the wrong end and drops the last row."""
    return _cut(x, (0, 1), slice(None, -1))


def rearranged_by_transposing(x):
    """Swaps the axes where the numbers should be read on."""
    padded = functional.pad(x, (1, 0)).mT[..., 1:, :]
    return padded.mT.contiguous().flip(-2)


def shifted_right(x):
    """Moves the rows the other way."""
    return _read(x, lambda i, j, queries, keys: j - (queries - 1 - i))


def shifted_by_row_number(x):
    """Row i moves by i."""
    return _read(x, lambda i, j, queries, keys: j + i)


def shifted_one_too_far(x):
    """Row i moves by queries − i."""
    return _read(x, lambda i, j, queries, keys: j + queries - i)


def columns_are_distances(x):
    """Reads column c as the distance c."""
    return _read(x, lambda i, j, queries, keys: keys - queries + i - j)


def memory_forgotten(x):
    """Counts queries from 0, as if there were no memory before them."""
    return _read(x, lambda i, j, queries, keys: keys - 1 - (i - j))


def turned_round(x):
    """Turns every row round and moves none."""
    return x.flip(-1)


def shift_by_gather(x):
    """Right: an index."""
    return _read(x, lambda i, j, queries, keys: queries - 1 - i + j)


def shift_by_rows(x):
    """Right: a slice for each row; ones where nothing is compared."""
    queries, keys = x.shape[-2:]
    result = torch.ones_like(x)
    for i in range(queries):
        step = queries - 1 - i
        result[..., i, : keys - step] = x[..., i, step:]
    return result


def shift_by_rolling(x):
    """Right: each row rolled; garbage where nothing is compared."""
    queries = x.shape[-2]
    rows = [x[..., i, :].roll(i + 1 - queries, dims=-1) for i in range(queries)]
    return torch.stack(rows, dim=-2)


def shift_by_padding(x):
    """Right: the trick of the paper's code, flat."""
    queries, keys = x.shape[-2:]
    flat = torch.cat([torch.zeros_like(x[..., :1]), x], dim=-1).flatten(-2)
    return flat[..., queries:].unflatten(-1, (queries, keys))


RELATIVE_SHIFT = Exercise(
    id="relative_shift",
    title="The relative shift",
    asks="Move each row of scores by distance so that columns become keys.",
    parameters=("x", "compared"),
    outputs=("shifted",),
    driver="partly_compared",
    groups={
        "memory": Group(2, "with memory"),
        "square": Group(1, "without memory; with a single query"),
    },
    cases=relative_shift_cases,
    reference=relative_shift_reference,
    misconceptions=(
        Misconception(
            not_shifted,
            "Nothing is shifted: column c still is a distance and no key.",
            "Write down, for each of three queries, the distance to key 0.",
        ),
        Misconception(
            wrong_row_dropped,
            "After the reshape the wrong row is dropped: the last instead of the first.",
            "In the 3 × 3 example, where must the 3 come to stand?",
        ),
        Misconception(
            padded_behind,
            "The column of zeros is at the wrong end.",
            "In the 3 × 3 example, where must the 3 come to stand?",
        ),
        Misconception(
            padded_behind_last_dropped,
            "The zeros stand behind, and the last row is dropped: that shifts to the right.",
            "In the 3 × 3 example, which way do the numbers of row 0 move?",
        ),
        Misconception(
            rearranged_by_transposing,
            "Axes are exchanged where the numbers should only be read on in another shape.",
            "`reshape` and `transpose` do different things. Which one keeps the reading order?",
        ),
        Misconception(
            shifted_right,
            "The rows move to the right.",
            "Query 0 is nearer to key 0 than query 1 is. Which column holds the smaller distance?",
        ),
        Misconception(
            shifted_by_row_number,
            "Row i moves by i places; the *last* row is the one that stays.",
            "For which query is the largest distance to a key really in use?",
        ),
        Misconception(
            shifted_one_too_far,
            "Each row moves one place too far.",
            "For the last query, key 0 has the largest distance. In which column does that stand?",
        ),
        Misconception(
            turned_round,
            "All rows are turned round; each must move by a number of places of its own.",
            "In the 3 × 3 example, compare the last row before and after.",
        ),
        Misconception(
            columns_are_distances,
            "Column c is read as the distance c; the table runs from the largest distance down "
            "to 0.",
            "Point 1 of the contract: which distance does column 0 hold?",
        ),
        Misconception(
            memory_forgotten,
            "Query i is taken for place i, as if no memory stood before it.",
            "How far is query 0 from key 0 if there are three places of memory?",
        ),
    ),
    accepted=(shift_by_gather, shift_by_rows, shift_by_rolling, shift_by_padding),
    equivalent_mutants={
        "`x.shape[-2:]` → `x.shape[2:]`": "there are four axes",
        "`F.pad(x, (1, 0)).flatten(-2)` → `F.pad(x, (1, 0)).flatten(2)`": "there are four axes",
    },
)
