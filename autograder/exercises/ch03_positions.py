"""Exercises of chapter 03: telling attention where tokens stand, in NumPy.

Pairs of sine and cosine, and pairs that are turned, are neighbours: columns 2i and 2i + 1.
"""

from __future__ import annotations

from autograder.exercises._ch03_adding import ADD_POSITIONS
from autograder.exercises._ch03_cache import CACHED_ROTARY_STEP
from autograder.exercises._ch03_lookup import LEARNED_POSITIONS
from autograder.exercises._ch03_relative import RELATIVE_WEIGHTS
from autograder.exercises._ch03_rotary import ROTATE_PAIRS
from autograder.exercises._ch03_rotary_attention import ROTARY_ATTENTION
from autograder.exercises._ch03_shift import SHIFT_MATRIX
from autograder.exercises._ch03_sinusoids import SINUSOIDAL_TABLE

EXERCISES = [
    SINUSOIDAL_TABLE,
    ADD_POSITIONS,
    SHIFT_MATRIX,
    LEARNED_POSITIONS,
    RELATIVE_WEIGHTS,
    ROTATE_PAIRS,
    ROTARY_ATTENTION,
    CACHED_ROTARY_STEP,
]
