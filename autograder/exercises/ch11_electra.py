"""Exercises of chapter 11: ELECTRA and its ablations, in PyTorch.

Ids below `first_word` are special; a label is True where a word was replaced.
"""

from __future__ import annotations

from autograder.exercises._ch11_adversarial import ADVERSARIAL_LOSS
from autograder.exercises._ch11_copying import COPY_LOSSES
from autograder.exercises._ch11_corruption import CHOOSE_POSITIONS, CORRUPT
from autograder.exercises._ch11_flops import STEP_FLOPS
from autograder.exercises._ch11_head import DISCRIMINATOR_HEAD
from autograder.exercises._ch11_joint import ELECTRA_LOSS
from autograder.exercises._ch11_keep import KEEP_DISCRIMINATOR
from autograder.exercises._ch11_labels import DISCRIMINATOR_LOSS, REPLACED_LABELS
from autograder.exercises._ch11_plan import STEP_PLAN
from autograder.exercises._ch11_sampling import SAMPLE_TOKENS
from autograder.exercises._ch11_sharing import SHARE_WEIGHTS
from autograder.exercises._ch11_stage import START_SECOND_STAGE

EXERCISES = [
    CHOOSE_POSITIONS,
    SAMPLE_TOKENS,
    CORRUPT,
    REPLACED_LABELS,
    DISCRIMINATOR_HEAD,
    DISCRIMINATOR_LOSS,
    ELECTRA_LOSS,
    SHARE_WEIGHTS,
    KEEP_DISCRIMINATOR,
    STEP_FLOPS,
    STEP_PLAN,
    COPY_LOSSES,
    START_SECOND_STAGE,
    ADVERSARIAL_LOSS,
]
