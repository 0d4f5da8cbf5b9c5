"""Exercises of chapter 04: multi-head attention, from NumPy to a PyTorch module.

Matrices stand to the right of the vectors, and the columns of a fused matrix are in three chunks,
unless an exercise says otherwise. Masks are True where a query may look at a key.
"""

from __future__ import annotations

from autograder.exercises._ch04_apart import GATED_HEADS, SLICE_HEADS
from autograder.exercises._ch04_count import ATTENTION_PARAMETERS
from autograder.exercises._ch04_importance import HEAD_IMPORTANCE
from autograder.exercises._ch04_layouts import CHUNKED_FROM_INTERLEAVED, FROM_PYTORCH
from autograder.exercises._ch04_masks import ATTEND_WITH_PADDING
from autograder.exercises._ch04_module import MULTI_HEAD_ATTENTION
from autograder.exercises._ch04_numpy import MULTI_HEAD, PROJECT_QKV
from autograder.exercises._ch04_split import FROM_HEADS, TO_HEADS

EXERCISES = [
    PROJECT_QKV,
    MULTI_HEAD,
    TO_HEADS,
    FROM_HEADS,
    MULTI_HEAD_ATTENTION,
    ATTENTION_PARAMETERS,
    FROM_PYTORCH,
    CHUNKED_FROM_INTERLEAVED,
    ATTEND_WITH_PADDING,
    SLICE_HEADS,
    GATED_HEADS,
    HEAD_IMPORTANCE,
]
