"""Exercises of chapter 14: an encoder from end to end, what it must not read, what it looks at."""

from __future__ import annotations

from autograder.exercises._ch14_effect import MASKING_EFFECT
from autograder.exercises._ch14_encoder import ENCODER_CLASSIFIER
from autograder.exercises._ch14_leaks import LEAKS
from autograder.exercises._ch14_train import TRAIN_READER

EXERCISES = [ENCODER_CLASSIFIER, LEAKS, TRAIN_READER, MASKING_EFFECT]
