"""Exercises of chapter 06: attention where memory and time are counted.

Masks are True where a query may look at a key; `padding` is True where nothing may be seen, as
PyTorch's modules want it. A query that sees nothing gives zeros. Checks run on the CPU.
"""

from __future__ import annotations

from autograder.exercises._ch06_accumulate import ACCUMULATED_STEP
from autograder.exercises._ch06_blocks import BLOCKED_ATTENTION
from autograder.exercises._ch06_cache import CACHED_ATTENTION
from autograder.exercises._ch06_library import LIBRARY_ATTENTION
from autograder.exercises._ch06_memory import ATTENTION_MEMORY
from autograder.exercises._ch06_merge import MERGE_BLOCK
from autograder.exercises._ch06_mixed import MIXED_LOSS
from autograder.exercises._ch06_move import MOVE_BATCH
from autograder.exercises._ch06_penalty import DISTANCE_PENALTY
from autograder.exercises._ch06_timing import MEDIAN_SECONDS, ROOFLINE

EXERCISES = [
    MOVE_BATCH,
    DISTANCE_PENALTY,
    MEDIAN_SECONDS,
    ATTENTION_MEMORY,
    LIBRARY_ATTENTION,
    MERGE_BLOCK,
    BLOCKED_ATTENTION,
    MIXED_LOSS,
    ACCUMULATED_STEP,
    CACHED_ATTENTION,
    ROOFLINE,
]
