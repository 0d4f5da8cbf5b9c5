"""Small translators: sentences as numbers, models to compare, training, reading their attention.

What the notebooks train and look at. It holds no answer to an exercise: the transformer is
PyTorch's, and decoding here knows no end.
"""

from attention_course.translation.models import RecurrentTranslator, TransformerTranslator
from attention_course.translation.reading import (
    all_attention,
    cross_attention,
    share_right,
    translate,
)
from attention_course.translation.recording import read_prefixes, record_greedy
from attention_course.translation.text import Batch, Vocabulary, batches, make_batch
from attention_course.translation.training import Progress, train

__all__ = [
    "Batch",
    "Progress",
    "RecurrentTranslator",
    "TransformerTranslator",
    "Vocabulary",
    "all_attention",
    "batches",
    "cross_attention",
    "make_batch",
    "read_prefixes",
    "record_greedy",
    "share_right",
    "train",
    "translate",
]
