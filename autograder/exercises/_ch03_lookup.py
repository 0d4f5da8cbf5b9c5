"""Chapter 03: looking up learned position vectors, and refusing what the table does not know."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def lookup_cases(rng):
    """Positions of one and two axes; just past the end, far past it, below zero."""
    s = draw_sizes(rng, "batch", "length", "width", among=(2, 3, 5, 6))
    limit = int(rng.integers(9, 13))
    table = rng.normal(size=(limit, s.width))

    def case(group, about, positions):
        return Case(group, {"positions": np.asarray(positions), "table": table}, about)

    def inside(*shape):
        return rng.integers(1, limit - 1, size=shape)

    ends = np.append(inside(4), [limit - 1, 0])
    yield case("values", "positions up to the last one", rng.permutation(ends))
    yield case("values", "two axes", inside(s.batch, s.length))
    many = np.concatenate([inside(limit), [0, limit - 1, 3]])
    yield case("values", "more positions than rows, some of them twice", rng.permutation(many))
    yield case("far", "the first position past the end", np.append(inside(3), limit))
    middle = np.insert(inside(4), 2, limit + int(rng.integers(1, 9)))
    yield case("far", "a position past the end, in the middle", middle)
    grid = inside(s.batch, s.length)
    grid[0, 1] = limit + 2 * limit
    yield case("far", "one far past the end, two axes", grid)
    yield case("negative", "a negative position", np.append(inside(2), [-1, 2]))
    yield case("negative", "a very negative position", np.insert(inside(3), 1, -3 * limit))


def lookup_reference(positions, table):
    """Row by row; refuses before it looks anything up."""
    limit = table.shape[0]
    for position in positions.ravel().tolist():
        if position not in range(limit):
            raise ValueError(f"position {position}: this table knows 0 to {limit - 1}")
    result = np.empty((*positions.shape, table.shape[1]))
    for place in np.ndindex(positions.shape):
        result[place] = table[int(positions[place])]
    return result


def past_the_end_is_clipped(positions, table):
    """Takes the last row for everything past the end."""
    if positions.min() < 0:
        raise ValueError("positions must not be negative")
    return table[np.minimum(positions, len(table) - 1)]


def everything_is_clipped(positions, table):
    """Takes the nearest row on either side."""
    return table[np.clip(positions, 0, len(table) - 1)]


def positions_wrap_around(positions, table):
    """Starts again at row 0 past the end."""
    return table[positions % len(table)]


def nothing_is_checked(positions, table):
    """Leaves it to NumPy, which raises IndexError and reads negative indices from the end."""
    return table[positions]


def negatives_are_not_checked(positions, table):
    """Refuses only what is past the end."""
    if positions.max() >= len(table):
        raise ValueError(f"this table has positions 0 to {len(table) - 1}")
    return table[positions]


def limit_itself_is_allowed(positions, table):
    """Off by one: `>` where `>=` is needed."""
    if positions.max() > len(table) or positions.min() < 0:
        raise ValueError(f"this table has positions 0 to {len(table) - 1}")
    return table[positions]


def last_row_is_refused(positions, table):
    """Off by one to the other side."""
    if positions.max() >= len(table) - 1 or positions.min() < 0:
        raise ValueError(f"this table has positions 0 to {len(table) - 2}")
    return table[positions]


def first_position_is_refused(positions, table):
    """Refuses 0 together with what is negative."""
    if positions.max() >= len(table) or positions.min() <= 0:
        raise ValueError(f"this table has positions 1 to {len(table) - 1}")
    return table[positions]


def number_of_positions_is_checked(positions, table):
    """Compares how many positions there are, not how large they are."""
    if positions.shape[-1] > len(table) or positions.min() < 0:
        raise ValueError(f"this table has positions 0 to {len(table) - 1}")
    return table[np.minimum(positions, len(table) - 1)]


def only_the_last_is_checked(positions, table):
    """Takes the last position for the largest one."""
    if positions.ravel()[-1] >= len(table) or positions.min() < 0:
        raise ValueError(f"this table has positions 0 to {len(table) - 1}")
    return table[positions]


def another_exception(positions, table):
    """Refuses the right inputs, but with IndexError."""
    if positions.max() >= len(table) or positions.min() < 0:
        raise IndexError(f"this table has positions 0 to {len(table) - 1}")
    return table[positions]


def past_the_end_is_zero(positions, table):
    """Gives zeros for whatever the table does not know."""
    known = (positions >= 0) & (positions < len(table))
    return np.where(known[..., None], table[np.where(known, positions, 0)], 0.0)


def lookup_ignores_positions(positions, table):
    """Takes rows 0, 1, 2, ... (after the right refusals)."""
    if positions.max() >= len(table) or positions.min() < 0:
        raise ValueError(f"this table has positions 0 to {len(table) - 1}")
    rows = table[np.arange(positions.shape[-1]) % len(table)]
    return np.broadcast_to(rows, (*positions.shape, table.shape[1])).copy()


def lookup_with_any(positions, table):
    """Right: asks for each side with any()."""
    limit = len(table)
    if (positions < 0).any() or (positions >= limit).any():
        raise ValueError(f"positions must lie in 0 ... {limit - 1}")
    return np.take(table, positions, axis=0)


def lookup_one_hot(positions, table):
    """Right: a row is a product with a one-hot vector; a position without one is refused."""
    hot = positions[..., None] == np.arange(table.shape[0])
    if not hot.any(axis=-1).all():
        raise ValueError(f"this table ends at position {table.shape[0] - 1}")
    return hot.astype(table.dtype) @ table


def lookup_by_catching(positions, table):
    """Right: turns NumPy's own complaint into the asked one."""
    if np.min(positions) < 0:
        raise ValueError("negative position")
    try:
        return table[positions]
    except IndexError as error:
        raise ValueError(f"only {len(table)} positions are known") from error


LEARNED_POSITIONS = Exercise(
    id="learned_positions",
    title="A learned table, and its end",
    asks="Look up the rows of the positions; refuse positions that the table does not know.",
    parameters=("positions", "table"),
    groups={
        "values": Group(1, "positions that the table knows"),
        "far": Group(1, "positions past the end"),
        "negative": Group(1, "negative positions"),
    },
    cases=lookup_cases,
    reference=lookup_reference,
    misconceptions=(
        Misconception(
            past_the_end_is_clipped,
            "Positions past the end all get the last row: no error, and no order among them.",
            "What should happen instead of an answer?",
        ),
        Misconception(
            everything_is_clipped,
            "Positions outside the table get the nearest row: no error, and no order among them.",
            "What should happen instead of an answer?",
        ),
        Misconception(
            positions_wrap_around,
            "Positions past the end start again at row 0, so two places look the same.",
            "What should happen instead of an answer?",
        ),
        Misconception(
            nothing_is_checked,
            "NumPy alone decides: IndexError past the end, and rows from the end for negatives.",
            "Test the positions yourself before you index with them.",
        ),
        Misconception(
            negatives_are_not_checked,
            "Negative positions are read from the end of the table, as NumPy indices are.",
            "What is `table[-1]`? Is it an error?",
        ),
        Misconception(
            limit_itself_is_allowed,
            "The first position past the end is not refused by your test: it is off by one.",
            "A table of 10 rows: which is the last position that it knows?",
        ),
        Misconception(
            last_row_is_refused,
            "The last row of the table is refused: the test is off by one.",
            "A table of 10 rows: which is the last position that it knows?",
        ),
        Misconception(
            first_position_is_refused,
            "Position 0 is refused along with the negative ones.",
            "Which is the first position that a table knows?",
        ),
        Misconception(
            number_of_positions_is_checked,
            "The *number* of positions is tested, not their values.",
            "Which is too large for a table of 10 rows: [50], or thirty times the position 3?",
        ),
        Misconception(
            only_the_last_is_checked,
            "Only the last position is tested; others may be larger.",
            "Positions come in any order: which of them must be tested?",
        ),
        Misconception(
            another_exception,
            "The right inputs are refused, but not with a ValueError.",
            "The exercise names the exception.",
        ),
        Misconception(
            past_the_end_is_zero,
            "Positions outside the table get zeros: no error, and nothing tells them apart.",
            "What should happen instead of an answer?",
        ),
        Misconception(
            lookup_ignores_positions,
            "The rows are those of positions 0, 1, 2, … whatever `positions` holds.",
            "Where do the values of `positions` enter?",
        ),
    ),
    accepted=(lookup_with_any, lookup_one_hot, lookup_by_catching),
)
