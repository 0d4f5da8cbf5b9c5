"""Claim: who knows distances does not mind where a text starts; who knows places does.

Texts of random symbols; at every place the model has to name the symbol two places before. In
training all texts start at place 0. In the test they start later.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.beyond.drawing import draw_start
from attention_course.language.training import fit

SYMBOLS, LENGTH, BACK = 12, 12, 2
WIDTH, HEADS, FARTHEST = 32, 2, 6
LAST_START = 48
KINDS = ("learned places", "waves", "learned places, moved in training", "distances")


def _waves(count: int, width: int) -> Tensor:
    """Sines and cosines, (count, width), as in Vaswani et al. 2017."""
    rates = 10_000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(count)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class MovedReader(nn.Module):
    """One layer of attention in both directions that is told places, or distances."""

    def __init__(self, kind: str, generator: torch.Generator):
        super().__init__()
        self.kind = kind
        self.words = nn.Embedding(SYMBOLS, WIDTH)
        self.places = nn.Parameter(
            0.3 * torch.randn(LAST_START + LENGTH, WIDTH, generator=generator)
        )
        self.register_buffer("waves", 0.3 * _waves(LAST_START + LENGTH, WIDTH))
        # A key for each distance, met by the content's queries: one of DeBERTa's two new parts.
        self.distances = nn.Parameter(
            0.3 * torch.randn(2 * FARTHEST + 1, WIDTH // HEADS, generator=generator)
        )
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS))
        for part in (self.words, self.projections, self.mlp):
            draw_start(part, 0.3, generator)

    def forward(self, tokens: Tensor, start: int) -> Tensor:
        """Give scores, (batch, LENGTH, SYMBOLS), for texts (batch, LENGTH) that start there."""
        x = self.words(tokens)
        if self.kind != "distances":
            table = self.waves if self.kind == "waves" else self.places
            x = x + table[start : start + LENGTH]
        queries, keys, values = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.projections(x).chunk(3, dim=-1)
        )
        bias = None
        if self.kind == "distances":
            place = torch.arange(LENGTH)
            apart = (place[:, None] - place).clamp(-FARTHEST, FARTHEST) + FARTHEST
            bias = torch.einsum("bhid,ijd->bhij", queries, self.distances[apart])
            bias = bias / queries.shape[-1] ** 0.5
        found = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        return self.mlp(found.transpose(1, 2).flatten(2))


def train_moved(
    kind: str, seed: int, starts: list[int], steps: int = 400, batch: int = 32
) -> list[float]:
    """Train one kind at start 0 ("moved in training": at any); give the share right at `starts`.

    Raises ValueError for a kind that is not in KINDS, or a start beyond LAST_START.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}; got {kind!r}.")
    if not all(0 <= start <= LAST_START for start in starts):
        raise ValueError(f"starts must lie from 0 to {LAST_START}; got {starts}.")
    generator = torch.Generator().manual_seed(seed)
    model = MovedReader(kind, generator)

    def loss_at(start: int) -> Tensor:
        tokens = torch.randint(SYMBOLS, (batch, LENGTH), generator=generator)
        scores = model(tokens, start)[:, BACK:]
        return F.cross_entropy(scores.flatten(0, 1), tokens[:, :-BACK].flatten())

    def start_of_step() -> int:
        if "moved" not in kind:
            return 0
        return int(torch.randint(LAST_START + 1, (), generator=generator))

    fit(model, lambda step: loss_at(start_of_step()), steps, 1e-2)
    tests = torch.randint(
        SYMBOLS, (300, LENGTH), generator=torch.Generator().manual_seed(10_000 + seed)
    )
    with torch.no_grad():
        return [
            (model(tests, start).argmax(-1)[:, BACK:] == tests[:, :-BACK]).float().mean().item()
            for start in starts
        ]
