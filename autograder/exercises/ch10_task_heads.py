"""Exercises of chapter 10: heads on an encoder for classes, pairs, answers and tags, in PyTorch.

Masks are True where something may be seen.
"""

from __future__ import annotations

from autograder.exercises._ch10_answers import ANSWER_TEXT, EXACT_MATCH_AND_F1
from autograder.exercises._ch10_best_span import BEST_SPAN
from autograder.exercises._ch10_early_stop import EARLY_STOP
from autograder.exercises._ch10_entities import ENTITY_F1
from autograder.exercises._ch10_fertility import FERTILITY
from autograder.exercises._ch10_layers import LAYER_FEATURES, TOKEN_GRADIENTS
from autograder.exercises._ch10_pairs import PAIR_FEATURES
from autograder.exercises._ch10_sentences import SENTENCE_CLASSIFIER, SENTENCE_VECTORS
from autograder.exercises._ch10_spans import ANSWER_TARGETS, SPAN_LOSS
from autograder.exercises._ch10_tags import PIECE_LABELS, TAG_LOSS
from autograder.exercises._ch10_tuning import LEARNING_RATES
from autograder.exercises._ch10_word_tags import WORD_TAGS

EXERCISES = [
    SENTENCE_VECTORS,
    SENTENCE_CLASSIFIER,
    TOKEN_GRADIENTS,
    PAIR_FEATURES,
    ANSWER_TARGETS,
    SPAN_LOSS,
    BEST_SPAN,
    ANSWER_TEXT,
    EXACT_MATCH_AND_F1,
    PIECE_LABELS,
    TAG_LOSS,
    WORD_TAGS,
    ENTITY_F1,
    LAYER_FEATURES,
    LEARNING_RATES,
    EARLY_STOP,
    FERTILITY,
]
