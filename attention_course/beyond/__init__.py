"""What the experiments of chapter 13 train: readers with a memory, pairs of words, moved texts.

It holds no answer to an exercise: distances are one learned number or one learned vector each, and
both streams of an ordered reader run as one sequence of twice the length.
"""

from attention_course.beyond.moved import KINDS, train_moved
from attention_course.beyond.pairs import phrases_of, train_pairs
from attention_course.beyond.recall import train_recall

__all__ = ["KINDS", "phrases_of", "train_moved", "train_pairs", "train_recall"]
