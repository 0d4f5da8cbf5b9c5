"""Claim: who hides two words at once and predicts each by itself mixes pairs up.

The pairs are those that chapter 09 measures: a noun and its verb, singular or plural both, in
sentences that begin "the girl takes …". Here they are cut after the fourth word. Both kinds of
training use the same network on the same hidden places; only a mask differs. "by itself": each
hidden word is predicted from the open words. "in order": the second one also sees the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.bert import agreement
from attention_course.bert.tiny import Corpus
from attention_course.beyond.drawing import draw_start
from attention_course.language.training import fit

LENGTH, HIDDEN = 4, 2
WIDTH = 32
BY_ITSELF, IN_ORDER = "by itself", "in order"
KINDS = (BY_ITSELF, IN_ORDER)


@dataclass(frozen=True)
class Phrases:
    """Beginnings of sentences, int64 (many, LENGTH), to train on and new ones to test with.

    `words` is the size of the vocabulary. `nouns` and `verbs` hold the ids of singular forms, then
    those of plural forms.
    """

    train: Tensor
    new: Tensor
    words: int
    nouns: list[Tensor]
    verbs: list[Tensor]

    @property
    def share_of_plurals(self) -> float:
        """How often the noun is plural in training."""
        return torch.isin(self.train[:, agreement.NOUN], self.nouns[1]).double().mean().item()


def phrases_of(corpus: Corpus) -> Phrases:
    """Take what chapter 09 measures from its corpus, cut after LENGTH words."""
    train, new = (
        torch.tensor([ids[:LENGTH] for ids in agreement.subjects(corpus, sentences)])
        for sentences in (corpus.sentences, corpus.new)
    )
    return Phrases(train, new, len(corpus.words), *agreement.numbers(corpus))


def _draw_ranks(generator: torch.Generator, batch: int) -> Tensor:
    """Draw (batch, LENGTH): −1 for open words, 0 and 1 for the two hidden ones."""
    step = torch.rand(batch, LENGTH, generator=generator).argsort(dim=1)
    return (step - (LENGTH - HIDDEN)).clamp(min=-1)


class OrderedReader(nn.Module):
    """PyTorch's encoder over 2 · LENGTH tokens: first the contents, then a question for each place.

    A question sees itself (it holds nothing but its place) and contents of smaller rank.
    """

    def __init__(self, kind: str, words: int, generator: torch.Generator):
        super().__init__()
        self.kind = kind
        self.words, self.places = nn.Embedding(words, WIDTH), nn.Embedding(2 * LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.to_scores = nn.Linear(WIDTH, words)
        draw_start(self, 0.15, generator)

    def forward(self, tokens: Tensor, ranks: Tensor) -> Tensor:
        """Give scores, (batch, LENGTH, words), of the word at each place. ranks: as drawn."""
        before = ranks[:, None, :] < ranks[:, :, None]
        if self.kind == BY_ITSELF:
            before = (ranks < 0)[:, None, :].expand_as(before) & (ranks >= 0)[:, :, None]
        both_open = (ranks < 0)[:, :, None] & (ranks < 0)[:, None, :]
        itself = torch.eye(LENGTH, dtype=torch.bool).expand_as(before)
        contents = torch.cat([before | both_open | itself, torch.zeros_like(before)], dim=2)
        hidden = ~torch.cat([contents, torch.cat([before, itself], dim=2)], dim=1)
        x = torch.cat([self.words(tokens), torch.zeros(*tokens.shape, WIDTH)], dim=1)
        x = x + self.places.weight
        x = self.layers(x, mask=hidden.repeat_interleave(2, dim=0))
        return self.to_scores(x[:, LENGTH:])


@torch.no_grad()
def write(model: OrderedReader, phrases: Phrases, generator: torch.Generator) -> float:
    """Hide noun and verb of the new phrases and write them; give how often they agree in number.

    As in chapter 09 only nouns count at the noun's place and present forms at the verb's. A noun is
    drawn for each phrase; the chance that the verb agrees with it is exact.
    """
    tokens, every = phrases.new.clone(), torch.cat(phrases.nouns)
    ranks = torch.full_like(tokens, -1)
    ranks[:, agreement.NOUN], ranks[:, agreement.VERB] = 0, 1
    chances = model(tokens, ranks)[:, agreement.NOUN, every].softmax(-1)
    drawn = every[torch.multinomial(chances, 1, generator=generator)]
    tokens[:, agreement.NOUN] = drawn[:, 0]
    verbs = agreement.number_shares(model(tokens, ranks)[:, agreement.VERB], phrases.verbs)
    plural = torch.isin(drawn, phrases.nouns[1]).long()
    return verbs.gather(1, plural).mean().item()


def train_pairs(kind: str, phrases: Phrases, seed: int, steps: int = 300, batch: int = 48) -> float:
    """Train one kind on phrases with two random words hidden; give what `write` gives.

    Raises ValueError for a kind that is not in KINDS.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be {BY_ITSELF!r} or {IN_ORDER!r}; got {kind!r}.")
    generator = torch.Generator().manual_seed(seed)
    model = OrderedReader(kind, phrases.words, generator)

    def loss_of_step(step: int) -> Tensor:
        rows = torch.randint(len(phrases.train), (batch,), generator=generator)
        tokens, ranks = phrases.train[rows], _draw_ranks(generator, batch)
        chosen = ranks >= 0
        return F.cross_entropy(model(tokens, ranks)[chosen], tokens[chosen])

    fit(model, loss_of_step, steps, 5e-3)
    return write(model, phrases, generator)
