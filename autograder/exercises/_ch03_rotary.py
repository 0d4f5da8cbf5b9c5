"""Chapter 03: rotary embedding: each pair of components turns by its position."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch03_parts import (
    angles_of,
    frequencies,
    interleaved,
    rotated,
    turned,
)
from autograder.exercises._ch03_sinusoids import draw_positions


def rotate_cases(rng):
    """Positions 0, 1, ...; other positions; batches and heads; other bases."""

    def case(group, about, shape, positions, base=10000.0):
        x = rng.normal(size=shape)
        return Case(group, {"x": x, "positions": positions, "base": base}, about)

    length, width = int(rng.choice([5, 7])), int(rng.choice([6, 8]))
    yield case("values", "positions 0, 1, 2, …", (length, width), np.arange(length))
    yield case("values", "positions 0, 1, 2, …, another width", (3, 10), np.arange(3))
    start = int(rng.integers(20, 90))
    late = np.arange(start, start + length)
    yield case("positions", "positions from a later one on", (length, width), late)
    gaps = draw_positions(rng, 5, 200)
    yield case("positions", "positions with gaps, out of order", (5, 8), gaps)
    yield case("leading", "a batch, the same positions", (3, 5, 4), gaps)
    each = np.stack([draw_positions(rng, 3, 90) for _ in range(2)])
    yield case("leading", "positions of their own for each text", (2, 5, 3, 4), each[:, None, :])
    base = float(rng.integers(20, 900))
    yield case("base", "another base", (4, 6), 1 + np.arange(4), base)
    yield case("base", "another base, other positions", (2, 4, 6), draw_positions(rng, 4, 60), base)


def rotate_reference(x, positions, base):
    """One pair at a time, as a product of complex numbers."""
    width = x.shape[-1]
    where = np.broadcast_to(positions, x.shape[:-1])
    result = np.empty(x.shape)
    for place in np.ndindex(x.shape[:-1]):
        for i in range(width // 2):
            point = complex(x[(*place, 2 * i)], x[(*place, 2 * i + 1)])
            point *= np.exp(1j * float(where[place]) / base ** (2 * i / width))
            result[(*place, 2 * i)], result[(*place, 2 * i + 1)] = point.real, point.imag
    return result


def halves_paired(x, positions, base):
    """Pairs component i with component i + d/2."""
    half = x.shape[-1] // 2
    angles = angles_of(positions, x.shape[-1], base)
    first, second = x[..., :half], x[..., half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def turned_with_the_clock(x, positions, base):
    """Turns by minus the angle."""
    return turned(x, -angles_of(positions, x.shape[-1], base))


def rotation_ignores_positions(x, positions, base):
    """Takes 0, 1, 2, ... for the positions."""
    return rotated(x, np.arange(x.shape[-2]), base)


def rotation_counts_from_the_first(x, positions, base):
    """Subtracts the first position."""
    return rotated(x, positions - positions[..., :1], base)


def rotation_from_position_one(x, positions, base):
    """Counts positions from 1."""
    return rotated(x, positions + 1, base)


def all_pairs_alike(x, positions, base):
    """Turns every pair by the position itself."""
    return turned(x, np.asarray(positions)[..., None] * np.ones(x.shape[-1] // 2))


def rotation_exponent_doubled(x, positions, base):
    """Exponent 4i/d."""
    return rotated(x, positions, base**2)


def rotation_exponent_halved(x, positions, base):
    """Exponent i/d."""
    return rotated(x, positions, base**0.5)


def rotation_ignores_base(x, positions, base):
    """Uses 10000 whatever `base` says."""
    return rotated(x, positions, 10000.0)


def rotation_without_minus(x, positions, base):
    """Both sines with a plus: pairs are stretched."""
    angles = angles_of(positions, x.shape[-1], base)
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], np.cos(angles), np.sin(angles)
    return interleaved(first * cos + second * sin, first * sin + second * cos, x.shape[-1])


def sinusoids_added(x, positions, base):
    """Adds the sinusoidal vector instead of turning."""
    angles = angles_of(positions, x.shape[-1], base)
    return x + interleaved(np.sin(angles), np.cos(angles), x.shape[-1])


def sine_for_cosine(x, positions, base):
    """Sine and cosine have changed places."""
    return turned(x, np.pi / 2 - angles_of(positions, x.shape[-1], base))


def first_overwritten(x, positions, base):
    """Computes the second of a pair from the first one that is already turned."""
    angles = angles_of(positions, x.shape[-1], base)
    cos, sin = np.cos(angles), np.sin(angles)
    x = x.copy()
    x[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    x[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return x


def rotated_in_place(x, positions, base):
    """Writes into the caller's array, and reads what it has just written."""
    x[...] = first_overwritten(x, positions, base)
    return x


def turned_parts_not_interleaved(x, positions, base):
    """All first components, then all second ones."""
    whole = rotated(x, positions, base)
    return np.concatenate([whole[..., 0::2], whole[..., 1::2]], axis=-1)


def outer_of_positions(x, positions, base):
    """Flattens the positions: right only if they have one axis."""
    return turned(x, np.outer(positions, frequencies(x.shape[-1], base)))


def rotate_by_complex(x, positions, base):
    """Right: reads pairs as complex numbers and multiplies."""
    pairs = np.ascontiguousarray(x, dtype=float).view(complex)
    turn = np.exp(1j * angles_of(positions, x.shape[-1], base))
    return np.ascontiguousarray(pairs * turn).view(float)


def rotate_by_swapping(x, positions, base):
    """Right: x·cos + (−second, first)·sin, with every angle written twice."""
    width = x.shape[-1]
    rates = np.repeat(1.0 / base ** (np.arange(0, width, 2) / width), 2)
    angles = np.asarray(positions)[..., None] * rates
    crossed = np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    return x * np.cos(angles) + crossed * np.sin(angles)


def rotate_by_matrices(x, positions, base):
    """Right: a 2 × 2 matrix for each place and pair."""
    angles = angles_of(np.broadcast_to(positions, x.shape[:-1]), x.shape[-1], base)
    cos, sin = np.cos(angles), np.sin(angles)
    matrices = np.stack([np.stack([cos, -sin], axis=-1), np.stack([sin, cos], axis=-1)], axis=-2)
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    return np.einsum("...ij,...j->...i", matrices, pairs).reshape(x.shape)


ROTATE_PAIRS = Exercise(
    id="rotate_pairs",
    title="Rotary embedding",
    asks="Turn each pair of components by its position times the frequency of the pair.",
    parameters=("x", "positions", "base"),
    groups={
        "values": Group(1, "positions 0, 1, 2, …"),
        "positions": Group(1, "any positions"),
        "leading": Group(1, "batches and heads"),
        "base": Group(1, "any base"),
    },
    cases=rotate_cases,
    reference=rotate_reference,
    misconceptions=(
        Misconception(
            halves_paired,
            "Component i is paired with i + d/2; here neighbours make a pair.",
            "Which two components form pair 0 by the exercise?",
        ),
        Misconception(
            turned_with_the_clock,
            "The pairs turn the wrong way round: the minus stands at the other sine.",
            "Turn the pair (1, 0) by a small angle: which sign should its second component get?",
        ),
        Misconception(
            rotation_ignores_positions,
            "The vectors are turned by 0, 1, 2, … whatever `positions` holds.",
            "Where do the values of `positions` enter?",
        ),
        Misconception(
            rotation_counts_from_the_first,
            "The first position is subtracted: every text starts at 0.",
            "The first of the positions may be 57. By which angle is its vector turned?",
        ),
        Misconception(
            rotation_from_position_one,
            "Positions are counted from 1; the vector at position 0 should stay as it is.",
            "By which angle does position 0 turn?",
        ),
        Misconception(
            all_pairs_alike,
            "All pairs turn by the same angle: the frequencies are missing.",
            "How fast does pair i turn?",
        ),
        Misconception(
            rotation_exponent_doubled,
            "The exponent is twice too large: a counter that steps by two is doubled once more.",
            "Write down the exponent of pair 1, from the formula and from your code.",
        ),
        Misconception(
            rotation_exponent_halved,
            "The exponent is half of what it should be: pair i has 2i/d, not i/d.",
            "Write down the exponent of pair 1, from the formula and from your code.",
        ),
        Misconception(
            rotation_ignores_base,
            "The base is always 10000: the argument has no effect.",
            "Where does `base` enter your computation?",
        ),
        Misconception(
            rotation_without_minus,
            "Both sines have a plus, so the pairs are stretched and not turned.",
            "Does your result keep the length of each pair?",
        ),
        Misconception(
            sinusoids_added,
            "Sines and cosines are added to the vectors; a rotation multiplies.",
            "What becomes of a zero vector when it is turned?",
        ),
        Misconception(
            sine_for_cosine,
            "Sine and cosine have changed places.",
            "The vector at position 0 should stay as it is. Does it?",
        ),
        Misconception(
            first_overwritten,
            "The second of each pair is computed from a first one that was already turned.",
            "Keep the old values until both new ones are there.",
        ),
        Misconception(
            rotated_in_place,
            "The caller's `x` is overwritten, and each second component is computed from a first "
            "one that was already turned.",
            "Assign into a new array, such as `np.empty_like(x)`.",
        ),
        Misconception(
            turned_parts_not_interleaved,
            "All first components come first, then all second ones; pairs should stay together.",
            "Where in the result does the pair (2, 3) belong?",
        ),
        Misconception(
            outer_of_positions,
            "Positions of their own for each text are flattened into one axis.",
            "`np.outer` flattens what it gets. Give `positions` one more axis at the end instead.",
        ),
    ),
    accepted=(rotate_by_complex, rotate_by_swapping, rotate_by_matrices),
    equivalent_mutants={
        f"`{name}[..., 0::2]` → `{name}[..., 0:-1:2]`": "the last one has an odd index"
        for name in ("x", "result")
    },
)
