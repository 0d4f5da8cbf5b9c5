"""What chapter 12 distils: a task with ambiguous words, models of any size, a training loop.

It holds no answer to an exercise: the student's losses here are cross-entropies.
"""

from attention_course.distillation.eight_bits import bytes_on_disk, in_8_bits, in_plain_layers
from attention_course.distillation.models import WordModel, attention_of, logits_of
from attention_course.distillation.signals import from_labels, from_logits, hard_labels
from attention_course.distillation.training import accuracy, fit
from attention_course.distillation.words import Sentences, WordTask, make_word_task, words_for

__all__ = [
    "Sentences",
    "WordModel",
    "WordTask",
    "accuracy",
    "attention_of",
    "bytes_on_disk",
    "fit",
    "from_labels",
    "from_logits",
    "hard_labels",
    "in_8_bits",
    "in_plain_layers",
    "logits_of",
    "make_word_task",
    "words_for",
]
