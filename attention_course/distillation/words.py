"""A task with ambiguous words: say for each French word which English word it becomes.

"le" is "the" as an article and "him" as a pronoun, "son" is "his" or "her" by the subject, "un" is
"a" or "an" by the next English word. Sentences are those of `attention_course.data.fragment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from attention_course.data.fragment import Pair, sentences

PADDING = 0  # word id of places without a word
NO_LABEL = -100
NOTHING = "–"  # label of a word that has no translation of its own
LONGEST_SENTENCE = 12  # words; short sentences train faster


def words_for(pair: Pair) -> list[str]:
    """For each French word its English word.

    Of several English words the one with the fewest sources counts, then the last: "n' aime" is
    "do like", and "aime" is "like".
    """
    labels = []
    for place in range(len(pair.source)):
        fitting = [i for i, places in enumerate(pair.links) if place in places]
        best = min(fitting, key=lambda i: (len(pair.links[i]), -i), default=None)
        labels.append(NOTHING if best is None else pair.target[best])
    return labels


@dataclass(frozen=True)
class Sentences:
    """Sentences as numbers: `words` and `labels`, both int64 (sentences, longest).

    Words are `PADDING` and labels `NO_LABEL` where there is no word.
    """

    words: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: slice) -> Sentences:
        """Some of the sentences, without places that are padding in all of them."""
        words, labels = self.words[rows], self.labels[rows]
        longest = int((words != PADDING).sum(1).max())
        return Sentences(words[:, :longest], labels[:, :longest])


@dataclass(frozen=True)
class WordTask:
    """The task: `sets` by name, French words by id, English words by class."""

    sets: dict[str, Sentences]
    french: list[str]
    english: list[str]

    def reading(self, words: torch.Tensor) -> list[str]:
        """The French words of one row of numbers."""
        return [self.french[i] for i in words.tolist() if i != PADDING]


def make_word_task(seed: int, sizes: dict[str, int]) -> WordTask:
    """Draw sentences of at most 12 words, none twice, and deal them out to sets of these sizes.

    The vocabulary is that of all sets together.

    Raises:
        ValueError: if a size is not positive.
    """
    if not sizes or min(sizes.values()) < 1:
        raise ValueError(f"sizes must name sets of at least one sentence; got {sizes}.")
    drawn = (pair for pair in sentences(seed) if len(pair.source) <= LONGEST_SENTENCE)
    pairs = {name: [next(drawn) for _ in range(size)] for name, size in sizes.items()}
    every = [pair for some in pairs.values() for pair in some]
    french = ["[padding]", *sorted({word for pair in every for word in pair.source})]
    english = sorted({word for pair in every for word in words_for(pair)})
    sets = {name: _numbers(some, french, english) for name, some in pairs.items()}
    return WordTask(sets, french, english)


def _numbers(pairs: Sequence[Pair], french: list[str], english: list[str]) -> Sentences:
    word_ids = {word: i for i, word in enumerate(french)}
    classes = {word: i for i, word in enumerate(english)}
    longest = max(len(pair.source) for pair in pairs)
    words = torch.full((len(pairs), longest), PADDING)
    labels = torch.full((len(pairs), longest), NO_LABEL)
    for row, pair in enumerate(pairs):
        length = len(pair.source)
        words[row, :length] = torch.tensor([word_ids[word] for word in pair.source])
        labels[row, :length] = torch.tensor([classes[word] for word in words_for(pair)])
    return Sentences(words, labels)
