"""The small encoder that chapter 10 trains in seconds, and how it is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)
WIDTH, LAYERS, BATCH, RATE = 64, 2, 64, 3e-3


class SmallEncoder(nn.Module):
    """Embeddings, two layers of a transformer encoder and a linear head at each token."""

    def __init__(self, vocabulary: int, longest: int, outputs: int):
        super().__init__()
        self.words = nn.Embedding(vocabulary, WIDTH, padding_idx=0)
        self.places = nn.Embedding(longest, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False
        )
        self.out = nn.Linear(WIDTH, outputs)

    def forward(self, ids: Tensor) -> Tensor:
        """Map int64 ids (batch, length), 0 = padding, to numbers (batch, length, outputs)."""
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        return self.out(self.encoder(x, src_key_padding_mask=ids == 0))


def train_small(
    make: Callable[[], Model],
    loss: Callable[[Model, Tensor], Tensor],
    rows: int,
    seed: int,
    steps: int,
) -> Model:
    """Make a model and train it with AdamW and a one-cycle rate.

    Args:
        make: makes the model; its weights are drawn from the seed.
        loss: gives the loss of the model on some rows, int64 (BATCH,).
        rows: how many rows there are to draw from.
        seed: of the weights and of the batches.
        steps: of the optimizer.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=steps, pct_start=0.1
    )
    for _ in range(steps):
        value = loss(model, torch.randint(rows, (BATCH,), generator=generator))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        schedule.step()
    return model.eval()
