"""Exercises of chapter 07: an encoder-decoder from cross-attention to beam search, in PyTorch.

Masks are True where something may be seen, except in PyTorch's own layers.
"""

from __future__ import annotations

from autograder.exercises._ch07_beam import BEAM_SEARCH
from autograder.exercises._ch07_block import DECODER_BLOCK
from autograder.exercises._ch07_cache import CACHED_STEP
from autograder.exercises._ch07_cross import CROSS_ATTENTION
from autograder.exercises._ch07_greedy import GREEDY_DECODE
from autograder.exercises._ch07_losses import STEP_LOSSES, WARM_UP_RATE
from autograder.exercises._ch07_model import ENCODER_DECODER
from autograder.exercises._ch07_reading import ALIGNMENT_ACCURACY, SENTENCES_RIGHT
from autograder.exercises._ch07_targets import TARGET_MASK, TEACHER_FORCING_INPUT

EXERCISES = [
    CROSS_ATTENTION,
    DECODER_BLOCK,
    TEACHER_FORCING_INPUT,
    TARGET_MASK,
    STEP_LOSSES,
    WARM_UP_RATE,
    ENCODER_DECODER,
    SENTENCES_RIGHT,
    ALIGNMENT_ACCURACY,
    GREEDY_DECODE,
    CACHED_STEP,
    BEAM_SEARCH,
]
