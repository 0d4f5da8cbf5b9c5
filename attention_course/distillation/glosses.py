"""Chapter 12's recorded runs on real text: glosses as words and pieces, MiniLM, its students.

MiniLM's package is optional; without it functions here that read its weights raise `ModelMissing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attention_course.data.glosses import CLASSES, load_glosses
from attention_course.distillation.eight_bits import in_8_bits
from attention_course.distillation.models import WordModel
from attention_course.distillation.words import PADDING
from attention_course.tasks.features import vocabulary_of, words_of
from attention_course.tasks.minilm import MiniLM, mean_vectors, minilm_tokenizer, tokenized

WORDS, PIECES = 24, 32  # a gloss is cut after so many of them
D_MODEL, HEADS = 64, 4  # of small students


class Pooled(nn.Module):
    """An encoder, the mean over its last states, and a linear head: ids → (batch, classes)."""

    def __init__(self, encoder: nn.Module, head: nn.Linear):
        super().__init__()
        self.encoder, self.head = encoder, head

    def means(self, ids: Tensor) -> Tensor:
        """The mean over tokens of every layer's states: (layers + 1, batch, d_model)."""
        real = ids != PADDING
        states = self.encoder(ids, real)
        return (states * real[..., None]).sum(2) / real.sum(1)[:, None]

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (batch, classes)."""
        return self.head(self.means(ids)[-1])


class WordEncoder(WordModel):
    """The encoder of a small student: all states, the last one normalised."""

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Give (layers + 1, batch, length, d_model)."""
        *lower, last = self.states(ids)
        return torch.stack([*lower, self.norm(last)])


@dataclass(frozen=True)
class World:
    """Glosses as words and as pieces, their classes, MiniLM's mean vectors: all in one order."""

    words: Tensor
    pieces: Tensor
    labels: Tensor
    vectors: Tensor  # (layers + 1, glosses, 384)
    rounded: Tensor  # of the last layer in 8 bits, of the test glosses alone
    vocabulary: int


def make_world(test: int, others: int) -> World:
    """Read the glosses; the first `test` are those to test with."""
    pairs = load_glosses()
    order = np.random.default_rng(0).permutation(len(pairs))[: test + others]
    # The short ones first among those to test with: read together, they need little padding.
    tests = sorted(order[:test], key=lambda place: len(pairs[place][0]))
    order = [*tests, *order[test:]]
    glosses, kinds = zip(*(pairs[place] for place in order), strict=True)
    numbers = vocabulary_of(glosses[test:])
    rows = [[numbers.get(w, 1) for w in words_of(text)][:WORDS] or [1] for text in glosses]
    words = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    tokenizer, encoder = minilm_tokenizer(PIECES), MiniLM().eval()
    return World(
        words,
        tokenized(tokenizer, glosses)[0],
        torch.tensor([CLASSES.index(kind) for kind in kinds]),
        mean_vectors(encoder, tokenizer, glosses),
        mean_vectors(in_8_bits(encoder), tokenizer, glosses[:test])[-1],
        len(numbers) + 2,
    )


def small_student(world: World, layers: int, seed: int) -> Pooled:
    """A fresh student that reads words."""
    torch.manual_seed(seed)
    encoder = WordEncoder(world.vocabulary, 1, D_MODEL, HEADS, layers)
    encoder.head = nn.Identity()
    # Smaller numbers than `WordModel` begins with: rare words learn from few steps.
    nn.init.normal_(encoder.embedding.weight, std=D_MODEL**-0.5)
    nn.init.normal_(encoder.positions.weight, std=0.03)
    return Pooled(encoder, nn.Linear(D_MODEL, len(CLASSES)))


def cut_out(head: nn.Linear, layers: Sequence[int]) -> Pooled:
    """Some of MiniLM's layers and a copy of the head; the embeddings stay frozen."""
    encoder = MiniLM()
    encoder.layers = nn.ModuleList(encoder.layers[number] for number in layers)
    for part in (encoder.words, encoder.places, encoder.norm):
        part.requires_grad_(False)
    own = nn.Linear(head.in_features, head.out_features)
    own.load_state_dict(head.state_dict())
    return Pooled(encoder, own)
