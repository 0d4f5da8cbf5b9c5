"""Claim: a memory of earlier segments lets a model answer what its own segment cannot tell.

A stream of random symbols is cut into segments. At every place the model has to name the symbol
that stood `DISTANCE` places before. The segments are shorter than that.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.beyond.drawing import draw_start
from attention_course.language.training import fit

SYMBOLS, SEGMENT, DISTANCE = 12, 8, 12
WIDTH, HEADS = 32, 2
FARTHEST = 40  # distances that have a learned number of their own


class ReaderLayer(nn.Module):
    """Causal attention over memory and segment, with a learned number for each distance; an MLP."""

    def __init__(self, width: int, heads: int, generator: torch.Generator):
        super().__init__()
        self.heads = heads
        self.norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_queries, self.to_output = nn.Linear(width, width), nn.Linear(width, width)
        self.to_keys_and_values = nn.Linear(width, 2 * width)
        self.by_distance = nn.Parameter(torch.zeros(heads, FARTHEST))
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )
        draw_start(self, 0.1, generator)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """x: (batch, length, width), memory: (batch, memory, width); gives the shape of x."""
        seen = self.norm(torch.cat([memory, x], dim=1))
        back = memory.shape[1] + torch.arange(x.shape[1])[:, None] - torch.arange(seen.shape[1])
        bias = self.by_distance[:, back.clamp(0, FARTHEST - 1)].masked_fill(back < 0, -torch.inf)
        keys, values = self.to_keys_and_values(seen).chunk(2, dim=-1)
        queries, keys, values = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.to_queries(self.norm(x)), keys, values)
        )
        found = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        x = x + self.to_output(found.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


class Reader(nn.Module):
    """Embedding, layers, scores of symbols; `memory` places are kept below each layer."""

    def __init__(self, layers: int, memory: int, generator: torch.Generator):
        super().__init__()
        self.memory = memory
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        nn.init.normal_(self.embedding.weight, generator=generator)
        self.layers = nn.ModuleList(ReaderLayer(WIDTH, HEADS, generator) for _ in range(layers))
        self.to_scores = nn.Linear(WIDTH, SYMBOLS)
        draw_start(self.to_scores, 0.1, generator)

    def forward(self, tokens: Tensor, memories: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        """Read one segment, (batch, length); give scores and what is kept for the next one."""
        x, kept = self.embedding(tokens), []
        if memories is None:
            memories = [x[:, :0].detach()] * len(self.layers)
        for layer, memory in zip(self.layers, memories, strict=True):
            below = torch.cat([memory, x.detach()], dim=1)
            kept.append(below[:, below.shape[1] - min(self.memory, below.shape[1]) :])
            x = layer(x, memory)
        return self.to_scores(x), kept


def _segments(generator: torch.Generator, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield segments of an endless stream and the symbol `DISTANCE` before each place."""
    stream = torch.randint(SYMBOLS, (batch, DISTANCE), generator=generator)
    while True:
        new = torch.randint(SYMBOLS, (batch, SEGMENT), generator=generator)
        stream = torch.cat([stream, new], dim=1)
        yield new, stream[:, :SEGMENT]
        stream = stream[:, SEGMENT:]


def train_recall(
    memory: int, seed: int, layers: int = 1, steps: int = 250, batch: int = 16
) -> list[float]:
    """Train a reader with `memory` kept places; give the share of right answers at each place.

    Returns one share for each place of a segment, measured on 20 segments of 100 other streams.
    """
    generator = torch.Generator().manual_seed(seed)
    model = Reader(layers, memory, generator)
    segments, memories = _segments(generator, batch), None

    def loss_of_step(step: int) -> Tensor:
        nonlocal memories
        tokens, answers = next(segments)
        scores, memories = model(tokens, memories)
        return F.cross_entropy(scores.flatten(0, 1), answers.flatten())

    fit(model, loss_of_step, steps, 1e-2)
    right, memories = [], None
    tests = _segments(torch.Generator().manual_seed(10_000 + seed), 100)
    with torch.no_grad():
        for number in range(24):
            tokens, answers = next(tests)
            scores, memories = model(tokens, memories)
            if number >= 4:  # the first ones have no full memory yet
                right.append((scores.argmax(dim=-1) == answers).float().mean(dim=0))
    return torch.stack(right).mean(dim=0).tolist()
