"""Exercises of chapter 09: BERT from WordPiece to its losses, in PyTorch.

Masks are True where something may be seen. Parameters have the names of Hugging Face's BERT.
"""

from __future__ import annotations

from autograder.exercises._ch09_corrupt import MLM_CORRUPT
from autograder.exercises._ch09_count import BERT_PARTS
from autograder.exercises._ch09_embeddings import BERT_EMBEDDINGS
from autograder.exercises._ch09_fill import FILL_ONE_BY_ONE
from autograder.exercises._ch09_head import MLM_HEAD
from autograder.exercises._ch09_layer import BERT_LAYER
from autograder.exercises._ch09_loss import MLM_LOSS, PRETRAINING_LOSS
from autograder.exercises._ch09_nsp import NSP_PAIRS
from autograder.exercises._ch09_pack import PACK_SENTENCES
from autograder.exercises._ch09_pseudo import PSEUDO_PERPLEXITY
from autograder.exercises._ch09_roberta import EPOCH_SCORES
from autograder.exercises._ch09_states import BERT_STATES
from autograder.exercises._ch09_text import NORMALISE_TEXT
from autograder.exercises._ch09_whole import WHOLE_WORD_MASK
from autograder.exercises._ch09_wordpiece import WORDPIECE

EXERCISES = [
    NORMALISE_TEXT,
    WORDPIECE,
    PACK_SENTENCES,
    BERT_EMBEDDINGS,
    BERT_LAYER,
    BERT_STATES,
    BERT_PARTS,
    MLM_CORRUPT,
    MLM_HEAD,
    MLM_LOSS,
    WHOLE_WORD_MASK,
    PSEUDO_PERPLEXITY,
    FILL_ONE_BY_ONE,
    NSP_PAIRS,
    PRETRAINING_LOSS,
    EPOCH_SCORES,
]
