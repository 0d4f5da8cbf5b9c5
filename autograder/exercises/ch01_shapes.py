"""Exercises of chapter 01: shapes. Broadcasting, masks, picking, products, and splitting heads.

Masks are True where something counts: a real token, a key that may be seen.
"""

from __future__ import annotations

from autograder.exercises._ch01_broadcasting import AS_COLUMN, OUTER_DIFFERENCE
from autograder.exercises._ch01_causal import CAUSAL_MASK
from autograder.exercises._ch01_mean import MASKED_MEAN
from autograder.exercises._ch01_merge import MERGE_HEADS
from autograder.exercises._ch01_padding import PADDING_MASK
from autograder.exercises._ch01_pairs import PAIRWISE_SCORES
from autograder.exercises._ch01_pick import PICK_PER_ROW
from autograder.exercises._ch01_rows import NORMALISE_ROWS
from autograder.exercises._ch01_rule import BROADCAST_SHAPE
from autograder.exercises._ch01_split import SPLIT_HEADS

EXERCISES = [
    AS_COLUMN,
    OUTER_DIFFERENCE,
    NORMALISE_ROWS,
    BROADCAST_SHAPE,
    PADDING_MASK,
    MASKED_MEAN,
    CAUSAL_MASK,
    PICK_PER_ROW,
    PAIRWISE_SCORES,
    SPLIT_HEADS,
    MERGE_HEADS,
]
