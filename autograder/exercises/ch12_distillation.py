"""Exercises of chapter 12: distillation, from gold labels to counterfactual swaps, in PyTorch.

Masks are True where a token stands; −100 marks a place without a label.
"""

from __future__ import annotations

from autograder.exercises._ch12_attention import ATTENTION_LOSS
from autograder.exercises._ch12_cosine import COSINE_LOSS
from autograder.exercises._ch12_counterfactual import COUNTERFACTUAL_LOSS
from autograder.exercises._ch12_distilbert import INITIALISE_FROM_TEACHER
from autograder.exercises._ch12_eight_bits import INT8_LINEAR
from autograder.exercises._ch12_errors import COPIED_ERRORS
from autograder.exercises._ch12_exits import SELF_DISTILLATION_LOSS
from autograder.exercises._ch12_hidden import HIDDEN_LOSS
from autograder.exercises._ch12_labels import GOLD_LOSS, HARD_LABEL_LOSS
from autograder.exercises._ch12_measuring import COMPARE_LATENCY, MODEL_SIZE
from autograder.exercises._ch12_soft import SOFT_LOSS
from autograder.exercises._ch12_step import DISTILLATION_STEP
from autograder.exercises._ch12_swaps import SWAP_LAYER
from autograder.exercises._ch12_teachers import TEACHER_AVERAGE
from autograder.exercises._ch12_together import CO_DISTILLATION_LOSSES
from autograder.exercises._ch12_triple import TRIPLE_LOSS

EXERCISES = [
    GOLD_LOSS,
    HARD_LABEL_LOSS,
    SOFT_LOSS,
    DISTILLATION_STEP,
    COSINE_LOSS,
    HIDDEN_LOSS,
    ATTENTION_LOSS,
    INITIALISE_FROM_TEACHER,
    TRIPLE_LOSS,
    MODEL_SIZE,
    COMPARE_LATENCY,
    COPIED_ERRORS,
    INT8_LINEAR,
    TEACHER_AVERAGE,
    CO_DISTILLATION_LOSSES,
    SELF_DISTILLATION_LOSS,
    SWAP_LAYER,
    COUNTERFACTUAL_LOSS,
]
