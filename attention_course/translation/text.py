"""Sentences as numbers: vocabularies and padded batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

PADDING, START, END, UNKNOWN = range(4)
SPECIAL = ("[pad]", "[start]", "[end]", "[unknown]")


class Vocabulary:
    """Words and their ids. The ids 0 to 3 are padding, start, end and unknown."""

    def __init__(self, sentences: Iterable[Sequence[str]]):
        self.words = [*SPECIAL, *sorted({word for sentence in sentences for word in sentence})]
        self._ids = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, sentence: Sequence[str]) -> list[int]:
        """Give the ids of a sentence's words; words never seen become `UNKNOWN`."""
        return [self._ids.get(word, UNKNOWN) for word in sentence]

    def sentence(self, ids: Iterable[int]) -> list[str]:
        """Give the words of ids up to the first `END`, without it."""
        words = []
        for i in ids:
            if i == END:
                break
            words.append(self.words[int(i)])
        return words


@dataclass(frozen=True)
class Batch:
    """Padded ids: `source` (batch, source length), `target` (batch, target length), both int64.

    `target` ends with `END` and has no start token.
    """

    source: torch.Tensor
    target: torch.Tensor

    @property
    def target_input(self) -> torch.Tensor:
        """What a decoder reads while it is trained: the target after a start token."""
        start = torch.full_like(self.target[:, :1], START)
        return torch.cat([start, self.target[:, :-1]], dim=1)


def _padded(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PADDING] * (longest - len(row))] for row in rows])


def make_batch(pairs: Sequence, source: Vocabulary, target: Vocabulary) -> Batch:
    """Make one batch of pairs, things with a `source` and a `target` that are lists of words."""
    return Batch(
        _padded([source.ids(pair.source) for pair in pairs]),
        _padded([[*target.ids(pair.target), END] for pair in pairs]),
    )


def batches(
    pairs: Sequence,
    source: Vocabulary,
    target: Vocabulary,
    size: int,
    generator: torch.Generator,
) -> Iterator[Batch]:
    """Yield all pairs once, in random batches of pairs of similar length."""
    pairs = [pairs[i] for i in torch.randperm(len(pairs), generator=generator)]
    pool = 20 * size
    groups = []
    for first in range(0, len(pairs), pool):
        some = sorted(pairs[first : first + pool], key=lambda pair: len(pair.source))
        groups += [some[i : i + size] for i in range(0, len(some), size)]
    for i in torch.randperm(len(groups), generator=generator):
        yield make_batch(groups[i], source, target)
