"""Exercises of chapter 13: memory, orders, disentangled positions, sharing, languages, energy."""

from __future__ import annotations

from autograder.exercises._ch13_deberta import DISENTANGLED_SCORES, RELATIVE_DISTANCE
from autograder.exercises._ch13_energy import TRAINING_FOOTPRINT
from autograder.exercises._ch13_fertility import LANGUAGE_FERTILITY
from autograder.exercises._ch13_languages import PACK_TRANSLATION
from autograder.exercises._ch13_memory import KEEP_MEMORY, MEMORY_MASK
from autograder.exercises._ch13_orders import PERMUTATION_LOSS, PERMUTATION_MASKS
from autograder.exercises._ch13_relative import RELATIVE_ATTENTION
from autograder.exercises._ch13_sharing import SHARED_STACK
from autograder.exercises._ch13_shift import RELATIVE_SHIFT
from autograder.exercises._ch13_streams import TWO_STREAMS

EXERCISES = [
    KEEP_MEMORY,
    MEMORY_MASK,
    RELATIVE_SHIFT,
    RELATIVE_ATTENTION,
    PERMUTATION_MASKS,
    TWO_STREAMS,
    PERMUTATION_LOSS,
    RELATIVE_DISTANCE,
    DISENTANGLED_SCORES,
    SHARED_STACK,
    PACK_TRANSLATION,
    LANGUAGE_FERTILITY,
    TRAINING_FOOTPRINT,
]
