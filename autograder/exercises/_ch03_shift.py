"""Chapter 03: the matrix that moves a sinusoidal vector by k places."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch03_parts import angles_of, frequencies
from autograder.exercises._ch03_sinusoids import wave_table


def shift_cases(rng):
    """Shifts forwards and backwards, other bases, no shift."""

    def case(group, about, k, width, base=10000.0):
        return Case(group, {"k": k, "d_model": width, "base": base}, about)

    narrow, wide = (int(width) for width in rng.choice([4, 6, 8, 10], size=2, replace=False))
    k = int(rng.integers(2, 12))
    yield case("values", "a shift forwards", k, narrow)
    yield case("values", "a longer shift, another width", k + 13, wide)
    yield case("back", "a shift backwards", -int(rng.integers(2, 12)), wide)
    yield case("back", "a shift by nothing", 0, narrow)
    base = float(rng.integers(20, 900))
    yield case("base", "another base", k + 1, wide, base)
    yield case("base", "another base, backwards", -k, narrow, base + 7)


def shift_reference(k, d_model, base):
    """Solves for the matrix: far apart positions in the columns before and after the shift."""
    positions = np.round(np.random.default_rng(5).uniform(0, 8 * base, size=50 * d_model))
    before, after = (
        wave_table(angles_of(positions + step, d_model, base), d_model) for step in (0, k)
    )
    return np.linalg.lstsq(before, after, rcond=None)[0].T


def _blocks(angles, upper=1.0, lower=-1.0):
    """A block [[cos, upper * sin], [lower * sin, cos]] on the diagonal for each angle."""
    matrix = np.zeros((2 * len(angles), 2 * len(angles)))
    for pair, angle in enumerate(angles):
        here = slice(2 * pair, 2 * pair + 2)
        cos, sin = np.cos(angle), np.sin(angle)
        matrix[here, here] = [[cos, upper * sin], [lower * sin, cos]]
    return matrix


def turned_backwards(k, d_model, base):
    """The transposed matrix: it moves by -k."""
    return _blocks(k * frequencies(d_model, base), -1.0, 1.0)


def same_angle_for_all_pairs(k, d_model, base):
    """Every pair turns by k."""
    return _blocks(np.full(d_model // 2, float(k)))


def both_signs_plus(k, d_model, base):
    """No minus sign: the blocks are no rotations."""
    return _blocks(k * frequencies(d_model, base), 1.0, 1.0)


def only_the_diagonal(k, d_model, base):
    """Cosines only: sine and cosine of a pair are not mixed."""
    return _blocks(k * frequencies(d_model, base), 0.0, 0.0)


def sines_on_the_diagonal(k, d_model, base):
    """Cosine and sine have changed places in the blocks."""
    return _blocks(np.pi / 2 - k * frequencies(d_model, base))


def shift_exponent_doubled(k, d_model, base):
    """Exponent 4i/d."""
    return _blocks(k * frequencies(d_model, base) ** 2)


def shift_ignores_base(k, d_model, base):
    """Uses 10000 whatever `base` says."""
    return _blocks(k * frequencies(d_model, 10000.0))


def shift_of_halves(k, d_model, base):
    """Right for a table with all sines on the left and all cosines on the right."""
    order = np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])
    return _blocks(k * frequencies(d_model, base))[np.ix_(order, order)]


def shift_without_direction(k, d_model, base):
    """Forwards whatever the sign of k."""
    return _blocks(abs(k) * frequencies(d_model, base))


def right_for_position_zero(k, d_model, base):
    """Maps the vector of position 0 to that of position k, and no other."""
    zero, shifted = wave_table(angles_of(np.array([0, k]), d_model, base), d_model)
    return np.outer(shifted, zero) / (zero @ zero)


def shift_by_one(k, d_model, base):
    """One step forwards, whatever k is."""
    return _blocks(frequencies(d_model, base))


def shift_by_slices(k, d_model, base):
    """Right: four assignments to every second row and column."""
    angles = k / np.power(base, np.arange(0, d_model, 2) / d_model)
    matrix, even = np.zeros((d_model, d_model)), np.arange(0, d_model, 2)
    matrix[even, even] = matrix[even + 1, even + 1] = np.cos(angles)
    matrix[even, even + 1] = np.sin(angles)
    matrix[even + 1, even] = -np.sin(angles)
    return matrix


def shift_by_powers(k, d_model, base):
    """Right: one step, taken k times; a negative power is the way back."""
    return np.linalg.matrix_power(_blocks(frequencies(d_model, base)), k)


def shift_by_kronecker(k, d_model, base):
    """Right: sums of Kronecker products."""
    matrix = np.zeros((d_model, d_model))
    for pair in range(d_model // 2):
        here = np.zeros((d_model // 2, d_model // 2))
        here[pair, pair] = 1.0
        angle = k * base ** (-2 * pair / d_model)
        turn = np.cos(angle) * np.eye(2) + np.sin(angle) * np.array([[0.0, 1.0], [-1.0, 0.0]])
        matrix += np.kron(here, turn)
    return matrix


SHIFT_MATRIX = Exercise(
    id="shift_matrix",
    title="A shift is a rotation",
    asks="Build the matrix that turns the vector of p into the vector of p + k, for every p.",
    parameters=("k", "d_model", "base"),
    groups={
        "values": Group(1, "shifts forwards"),
        "back": Group(1, "backwards, and not at all"),
        "base": Group(1, "any base"),
    },
    cases=shift_cases,
    reference=shift_reference,
    misconceptions=(
        Misconception(
            turned_backwards,
            "The matrix moves by −k: it is the transposed one.",
            "Multiply it with the vector of position 0, and compare with that of position k.",
        ),
        Misconception(
            same_angle_for_all_pairs,
            "Every pair turns by the same angle; slower waves turn less in k steps.",
            "By which angle does pair i advance from one position to the next?",
        ),
        Misconception(
            both_signs_plus,
            "Both sines have the same sign, and the blocks stretch instead of turning.",
            "Write out cos(a + b) and sin(a + b): one of the four terms has a minus.",
        ),
        Misconception(
            only_the_diagonal,
            "Sine and cosine of a pair are not mixed: only the diagonal is filled.",
            "Write out sin(a + b): it needs sin a and cos a.",
        ),
        Misconception(
            sines_on_the_diagonal,
            "Sines and cosines of the shift have changed places in the blocks.",
            "Which matrix belongs to k = 0?",
        ),
        Misconception(
            shift_exponent_doubled,
            "The exponent is twice too large: a counter that steps by two is doubled once more.",
            "Which frequency has pair 1 in the table?",
        ),
        Misconception(
            shift_ignores_base,
            "The base is always 10000: the argument has no effect.",
            "Where does `base` enter your computation?",
        ),
        Misconception(
            shift_of_halves,
            "This fits a table with all sines on the left; here sine and cosine take turns.",
            "In which two columns does pair 1 stand?",
        ),
        Misconception(
            shift_without_direction,
            "A negative k moves forwards too.",
            "What happens to the sine of the angle when k changes its sign?",
        ),
        Misconception(
            right_for_position_zero,
            "This maps the vector of position 0 rightly, but not those of other positions.",
            "Test your matrix at several positions p with the same k.",
        ),
        Misconception(
            shift_by_one,
            "This is always a shift by one place.",
            "Where does `k` enter your computation?",
        ),
    ),
    accepted=(shift_by_slices, shift_by_powers, shift_by_kronecker),
)
