"""Claim: who hides two words at once and predicts each by itself mixes pairs up.

A sentence is four words: a filler, two words that belong together, a filler. Both kinds of training
use the same network on the same hidden places; only a mask differs. "by itself": each hidden word
is predicted from the open words. "in order": the second one also sees the first.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.language.training import fit

PAIRS, FILLERS, LENGTH, HIDDEN = 8, 5, 4, 2
FIRST, SECOND = 0, PAIRS  # ids of the first word of a pair, then of the second, then fillers
WORDS = 2 * PAIRS + FILLERS
WIDTH = 32
BY_ITSELF, IN_ORDER = "by itself", "in order"


def draw_sentences(generator: torch.Generator, batch: int) -> Tensor:
    """Draw int64 (batch, LENGTH): filler, word k of the firsts, word k of the seconds, filler."""
    fillers = 2 * PAIRS + torch.randint(FILLERS, (batch, 2), generator=generator)
    pair = torch.randint(PAIRS, (batch,), generator=generator)
    return torch.stack([fillers[:, 0], FIRST + pair, SECOND + pair, fillers[:, 1]], dim=1)


def _draw_ranks(generator: torch.Generator, batch: int) -> Tensor:
    """Draw (batch, LENGTH): −1 for open words, 0 and 1 for the two hidden ones."""
    step = torch.rand(batch, LENGTH, generator=generator).argsort(dim=1)
    return (step - (LENGTH - HIDDEN)).clamp(min=-1)


class OrderedReader(nn.Module):
    """PyTorch's encoder over 2 · LENGTH tokens: first the contents, then a question for each place.

    A question sees itself (it holds nothing but its place) and contents of smaller rank.
    """

    def __init__(self, kind: str, generator: torch.Generator):
        super().__init__()
        self.kind = kind
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(2 * LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 2, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.to_scores = nn.Linear(WIDTH, WORDS)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.15, generator=generator)

    def forward(self, tokens: Tensor, ranks: Tensor) -> Tensor:
        """Give scores, (batch, LENGTH, WORDS), of the word at each place. ranks: as drawn."""
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


def train_pairs(kind: str, seed: int, steps: int = 250, batch: int = 48) -> tuple[float, float]:
    """Train one kind; then hide both words of pairs, and write them.

    Returns (share of written pairs that there are, nats of a true pair). A true pair is worth
    log(PAIRS) nats, and by itself each of its words is, too. Raises ValueError for another kind.
    """
    if kind not in (BY_ITSELF, IN_ORDER):
        raise ValueError(f"kind must be {BY_ITSELF!r} or {IN_ORDER!r}; got {kind!r}.")
    generator = torch.Generator().manual_seed(seed)
    model = OrderedReader(kind, generator)

    def loss_of_step(step: int) -> Tensor:
        tokens, ranks = draw_sentences(generator, batch), _draw_ranks(generator, batch)
        chosen = ranks >= 0
        return F.cross_entropy(model(tokens, ranks)[chosen], tokens[chosen])

    fit(model, loss_of_step, steps, 5e-3)
    tests = draw_sentences(torch.Generator().manual_seed(10_000 + seed), 400)
    ranks = torch.tensor([-1, 0, 1, -1]).expand_as(tests)
    with torch.no_grad():
        logs = model(tests, ranks).log_softmax(dim=-1)
        nats = -logs.gather(2, tests[..., None])[:, 1:3, 0].sum(dim=1).mean().item()
        written = tests.clone()
        for place in (1, 2):
            chances = model(written, ranks)[:, place].softmax(dim=-1)
            written[:, place] = torch.multinomial(chances, 1, generator=generator)[:, 0]
    exists = (written[:, 1] < PAIRS) & (written[:, 2] == written[:, 1] + SECOND)
    return exists.float().mean().item(), nats


def nats_of_a_pair() -> float:
    """What no model can go below: the pairs are equally frequent."""
    return math.log(PAIRS)
