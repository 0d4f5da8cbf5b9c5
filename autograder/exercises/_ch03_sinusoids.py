"""Chapter 03: the table of sines and cosines."""

from __future__ import annotations

import math

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch03_parts import angles_of, frequencies, interleaved


def draw_positions(rng, length, farthest):
    """Draw positions with gaps, out of order, all different; 0 is not the first."""
    while True:
        positions = rng.choice(farthest, size=length, replace=False)
        if positions[0] != 0 and np.any(np.diff(positions) < 0) and np.any(np.diff(positions) > 1):
            return positions.astype(np.int64)


def table_cases(rng):
    """Positions 0, 1, ...; other positions; odd widths; other bases."""

    def case(group, about, positions, width, base=10000.0):
        return Case(group, {"positions": positions, "d_model": width, "base": base}, about)

    s = draw_sizes(rng, "length", "width", among=(5, 6, 7, 8))
    yield case("values", "positions 0, 1, 2, …", np.arange(s.length), 2 * (s.width // 2))
    yield case("values", "positions 0, 1, 2, …, another width", np.arange(s.width), 10)
    start = int(rng.integers(20, 90))
    yield case("positions", "positions from a later one on", np.arange(start, start + 4), 6)
    yield case("positions", "positions with gaps, out of order", draw_positions(rng, 5, 200), 8)
    yield case("odd", "an odd width", np.arange(6), int(rng.choice([5, 7])))
    yield case("odd", "an odd width, other positions", draw_positions(rng, 4, 100), 9)
    base = float(rng.integers(20, 900))
    yield case("base", "another base", np.arange(5), 8, base)
    yield case("base", "another base, other positions", draw_positions(rng, 4, 50), 6, base + 3)


def table_reference(positions, d_model, base):
    """One number at a time, straight from the formula."""
    table = np.empty((len(positions), d_model))
    for row, position in enumerate(positions):
        for column in range(d_model):
            angle = position / math.pow(base, 2 * (column // 2) / d_model)
            table[row, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


def wave_table(angles, width):
    """Sines in even columns, cosines in odd ones."""
    return interleaved(np.sin(angles), np.cos(angles), width)


def _with_exponents(positions, width, base, exponents):
    return wave_table(positions[:, None] / base**exponents, width)


def exponent_doubled(positions, d_model, base):
    """Counts columns in steps of two and doubles once more."""
    return _with_exponents(positions, d_model, base, 2 * np.arange(0, d_model, 2) / d_model)


def exponent_halved(positions, d_model, base):
    """Uses i/d for pair i instead of 2i/d."""
    pairs = np.arange((d_model + 1) // 2)
    return _with_exponents(positions, d_model, base, pairs / d_model)


def exponent_by_column(positions, d_model, base):
    """Each column has a frequency of its own, so sine and cosine are no pair."""
    angles = positions[:, None] / base ** (np.arange(d_model) / d_model)
    return np.where(np.arange(d_model) % 2, np.cos(angles), np.sin(angles))


def width_less_two(positions, d_model, base):
    """Divides the exponent by d - 2."""
    return _with_exponents(positions, d_model, base, np.arange(0, d_model, 2) / (d_model - 2))


def angle_multiplied(positions, d_model, base):
    """Multiplies by the power instead of dividing by it."""
    return _with_exponents(positions, d_model, base, -np.arange(0, d_model, 2) / d_model)


def base_of_1000(positions, d_model, base):
    """Uses 1000."""
    return wave_table(angles_of(positions, d_model, 1000.0), d_model)


def table_ignores_base(positions, d_model, base):
    """Uses 10000 whatever `base` says."""
    return wave_table(angles_of(positions, d_model, 10000.0), d_model)


def sine_and_cosine_swapped(positions, d_model, base):
    """Cosine in even columns."""
    angles = angles_of(positions, d_model, base)
    return interleaved(np.cos(angles), np.sin(angles), d_model)


def sines_first_then_cosines(positions, d_model, base):
    """All sines on the left, all cosines on the right."""
    angles = angles_of(positions, d_model, base)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)[:, :d_model]


def only_sines(positions, d_model, base):
    """Sine in every column."""
    angles = angles_of(positions, d_model, base)
    return interleaved(np.sin(angles), np.sin(angles), d_model)


def table_from_position_one(positions, d_model, base):
    """Counts positions from 1."""
    return wave_table(angles_of(positions + 1, d_model, base), d_model)


def table_ignores_positions(positions, d_model, base):
    """Takes 0, 1, 2, ... for the positions."""
    return wave_table(angles_of(np.arange(len(positions)), d_model, base), d_model)


def only_the_start_counts(positions, d_model, base):
    """Counts on from the first position."""
    return wave_table(angles_of(positions[0] + np.arange(len(positions)), d_model, base), d_model)


def sorted_positions(positions, d_model, base):
    """Puts the positions in order."""
    return wave_table(angles_of(np.sort(positions), d_model, base), d_model)


def odd_width_rounded_up(positions, d_model, base):
    """Makes the table one column wider and cuts it."""
    wider = d_model + d_model % 2
    return wave_table(angles_of(positions, wider, base), wider)[:, :d_model]


def odd_width_fails(positions, d_model, base):
    """As many cosines as sines: they do not fit into an odd number of columns."""
    angles = angles_of(positions, d_model, base)
    table = np.empty((len(positions), d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


def odd_width_loses_a_column(positions, d_model, base):
    """Pairs only: the last column of an odd width is missing."""
    pairs = d_model // 2
    angles = angles_of(positions, d_model, base)[:, :pairs]
    return wave_table(angles, 2 * pairs)


def table_by_where(positions, d_model, base):
    """Right: every column's angle at once, then sine or cosine by its parity."""
    column = np.arange(d_model)
    angles = positions[:, None] * np.power(float(base), -2 * (column // 2) / d_model)
    return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))


def table_by_logarithms(positions, d_model, base):
    """Right: exp and log for the frequencies; a cosine is a sine a quarter turn on."""
    column = np.arange(d_model)
    rates = np.exp(-np.log(base) * (column - column % 2) / d_model)
    return np.sin(np.outer(positions, rates) + np.pi / 2 * (column % 2))


def table_by_complex_numbers(positions, d_model, base):
    """Right: imaginary and real part of a point on the circle, side by side."""
    points = np.exp(1j * np.multiply.outer(positions, frequencies(d_model, base)))
    both = np.stack([points.imag, points.real], axis=-1)
    return both.reshape(len(positions), -1)[:, :d_model]


def table_by_loops(positions, d_model, base):
    """Right: two loops."""
    rows = []
    for position in positions:
        row = []
        for start in range(0, d_model, 2):
            angle = position / base ** (start / d_model)
            row += [np.sin(angle), np.cos(angle)]
        rows.append(row[:d_model])
    return np.array(rows)


SINUSOIDAL_TABLE = Exercise(
    id="sinusoidal_table",
    title="The table of sines and cosines",
    asks="Give each position its vector of sines and cosines, interleaved.",
    parameters=("positions", "d_model", "base"),
    groups={
        "values": Group(1, "positions 0, 1, 2, …"),
        "positions": Group(1, "any positions"),
        "odd": Group(1, "odd widths"),
        "base": Group(1, "any base"),
    },
    cases=table_cases,
    reference=table_reference,
    misconceptions=(
        Misconception(
            exponent_doubled,
            "The exponent is twice too large: a counter that steps by two is doubled once more.",
            "Write down the exponent of columns 2 and 3, from the formula and from your code.",
        ),
        Misconception(
            exponent_halved,
            "The exponent is half of what it should be: pair i has 2i/d_model, not i/d_model.",
            "Write down the exponent of columns 2 and 3, from the formula and from your code.",
        ),
        Misconception(
            exponent_by_column,
            "Every column has a frequency of its own; sine and cosine of a pair share one.",
            "Which exponent have columns 2 and 3 by the formula? Is it the same?",
        ),
        Misconception(
            width_less_two,
            "The exponent is divided by d_model − 2, so the last pair reaches the base itself.",
            "By what does the formula divide 2i?",
        ),
        Misconception(
            angle_multiplied,
            "The position is multiplied by the power of the base: waves get ever shorter.",
            "Should later columns turn faster or slower than column 0?",
        ),
        Misconception(
            base_of_1000,
            "The base is 1000 here, whatever the argument says.",
            "Where does `base` enter your computation?",
        ),
        Misconception(
            table_ignores_base,
            "The base is always 10000: the argument has no effect.",
            "Where does `base` enter your computation?",
        ),
        Misconception(
            sine_and_cosine_swapped,
            "Sine and cosine have changed places.",
            "Look at the row of position 0: which columns should be 0, which 1?",
        ),
        Misconception(
            sines_first_then_cosines,
            "All sines come first, then all cosines. Here they take turns, column by column.",
            "Assign to every second column: `table[:, 0::2]` and `table[:, 1::2]`.",
        ),
        Misconception(
            only_sines,
            "Every column is a sine; odd columns should be cosines.",
            "What should the row of position 0 look like?",
        ),
        Misconception(
            table_from_position_one,
            "Positions are counted from 1: every row is that of the next position.",
            "What is sin(0), and where should it stand?",
        ),
        Misconception(
            table_ignores_positions,
            "The rows are those of positions 0, 1, 2, … whatever `positions` holds.",
            "Where do the *values* of `positions` enter, and not only their number?",
        ),
        Misconception(
            only_the_start_counts,
            "Only the first position is used, and the others are counted on from it.",
            "Take positions such as [7, 3, 40] in hand.",
        ),
        Misconception(
            sorted_positions,
            "The positions were put in order; row i belongs to `positions[i]`.",
            "Take positions such as [7, 3, 40] in hand.",
        ),
        Misconception(
            odd_width_rounded_up,
            "With an odd width, the exponents are those of a table one column wider.",
            "Which d_model stands in the exponent?",
        ),
        Misconception(
            odd_width_fails,
            "An odd width has one cosine less than sines, so the two halves do not fit.",
            "How many odd columns are there for d_model = 5? Cut the cosines to that number.",
        ),
        Misconception(
            odd_width_loses_a_column,
            "With an odd width the last column is missing.",
            "What does point 3 of the exercise say about the last column?",
        ),
    ),
    accepted=(
        table_by_where,
        table_by_logarithms,
        table_by_complex_numbers,
        table_by_loops,
    ),
)
