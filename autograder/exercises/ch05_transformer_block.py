"""Exercises of chapter 05: the transformer block in PyTorch, from LayerNorm to a padded stack.

Weights are given as `nn.Linear` stores them, (width out, width in). Masks are True where a token
may be seen.
"""

from __future__ import annotations

from autograder.exercises._ch05_block import ENCODER_BLOCK
from autograder.exercises._ch05_counts import BERT_PARAMETERS
from autograder.exercises._ch05_dropout import DROPOUT
from autograder.exercises._ch05_gradients import GRADIENT_NORMS
from autograder.exercises._ch05_mlp import MLP
from autograder.exercises._ch05_norms import LAYER_NORM
from autograder.exercises._ch05_packed import PACKED_MLP
from autograder.exercises._ch05_padded import PADDED_ENCODER
from autograder.exercises._ch05_residual import ADD_AND_NORM
from autograder.exercises._ch05_stack import ENCODER_STACK

EXERCISES = [
    MLP,
    PACKED_MLP,
    GRADIENT_NORMS,
    LAYER_NORM,
    ADD_AND_NORM,
    DROPOUT,
    ENCODER_BLOCK,
    ENCODER_STACK,
    PADDED_ENCODER,
    BERT_PARAMETERS,
]
