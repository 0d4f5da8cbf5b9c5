"""Pairs of sentences on which a bag of words is lost: who did it, and to whom?

"anna helped ben" and "ben was helped by anna" say the same; "anna was helped by ben" does not.
Every pair has a twin in which the two persons of the second sentence have changed places: each
sentence has the words that it had, and the label is the other one. So whatever is computed from
which words the two sentences hold gives a pair and its twin the same answer, and is right in
exactly one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_course.tasks.small import SmallEncoder, train_small

NAMES = ("anna", "ben", "carla", "david", "emma", "felix", "greta", "henry")
VERBS = ("helped", "called", "painted", "found", "followed", "paid")
CLS, SEP = "[CLS]", "[SEP]"
VOCABULARY = ("[PAD]", CLS, SEP, "was", "by", *NAMES, *VERBS)
NUMBER = {word: number for number, word in enumerate(VOCABULARY)}
LONGEST = 11  # [CLS], three words, [SEP], at most five words, [SEP]


@dataclass(frozen=True)
class Pair:
    """Two sentences as words, and whether the first says what the second says."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    follows: bool


def _tell(who: str, verb: str, whom: str, passive: bool) -> tuple[str, ...]:
    return (whom, "was", verb, "by", who) if passive else (who, verb, whom)


def split_pairs(rng: np.random.Generator, held_out: int) -> tuple[list[Pair], list[Pair]]:
    """All pairs in two lists, for training and for the test; in both a pair stands before its twin.

    `held_out` facts, a verb with two persons, are in the test only, whoever of the two does it.

    Raises ValueError if no fact would be left for one of the two lists.
    """
    facts = [(verb, *both) for verb in VERBS for both in combinations(NAMES, 2)]
    if not 0 < held_out < len(facts):
        raise ValueError(f"held_out must be from 1 to {len(facts) - 1}; got {held_out!r}.")
    order = rng.permutation(len(facts))
    parts = order[held_out:], order[:held_out]
    train, test = ([pair for place in part for pair in _pairs(*facts[place])] for part in parts)
    return train, test


def _pairs(verb: str, one: str, other: str) -> Iterator[Pair]:
    for passive in (False, True):
        for who, whom in ((one, other), (other, one)):
            first = (who, verb, whom)
            yield Pair(first, _tell(who, verb, whom, passive), True)
            yield Pair(first, _tell(whom, verb, who, passive), False)


def as_ids(pairs: Sequence[Pair]) -> tuple[Tensor, Tensor]:
    """[CLS] first [SEP] second [SEP] as int64 (pairs, LONGEST), 0 = padding; labels int64."""
    ids = torch.zeros(len(pairs), LONGEST, dtype=torch.int64)
    for row, pair in zip(ids, pairs, strict=True):
        words = (CLS, *pair.first, SEP, *pair.second, SEP)
        row[: len(words)] = torch.tensor([NUMBER[word] for word in words])
    return ids, torch.tensor([int(pair.follows) for pair in pairs])


def bags(pairs: Sequence[Pair]) -> Tensor:
    """How often each sentence holds each word: float (pairs, 2 · vocabulary), first one first."""
    counts = torch.zeros(len(pairs), 2, len(VOCABULARY))
    for bag, pair in zip(counts, pairs, strict=True):
        for side, sentence in zip(bag, (pair.first, pair.second), strict=True):
            for word in sentence:
                side[NUMBER[word]] += 1
    return counts.flatten(1)


class PairEncoder(SmallEncoder):
    """Reads two sentences together; two classes at [CLS]."""

    def __init__(self):
        super().__init__(len(VOCABULARY), LONGEST, outputs=2)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of both classes: int64 (batch, LONGEST) → (batch, 2)."""
        return super().forward(ids)[:, 0]


def train_pair_encoder(pairs: Sequence[Pair], seed: int, steps: int) -> PairEncoder:
    """Train an encoder on all of `pairs`; the seed draws its weights and its batches."""
    ids, labels = as_ids(pairs)

    def loss(model: PairEncoder, rows: Tensor) -> Tensor:
        return F.cross_entropy(model(ids[rows]), labels[rows])

    return train_small(PairEncoder, loss, len(ids), seed, steps)
