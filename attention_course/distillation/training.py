"""One training loop for teachers and students: the loss is a function that the caller gives."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from attention_course.distillation.models import logits_of
from attention_course.distillation.words import NO_LABEL, PADDING, Sentences


def fit(
    model: nn.Module,
    words: torch.Tensor,
    loss_of: Callable[[nn.Module, torch.Tensor, torch.Tensor, int], torch.Tensor],
    *,
    steps: int,
    seed: int,
    size: int = 32,
    rate: float = 3e-3,
) -> float:
    """Train a model in place, by AdamW with a rate that falls to zero along a line.

    Sentences are shuffled anew whenever all have been seen.

    Args:
        model: what is trained.
        words: int64 (sentences, longest).
        loss_of: gets the model, the words of a batch (batch, length), the rows (batch,) that they
            are in `words`, and the length; gives a loss.
        steps: number of batches, whatever the number of sentences: so runs on sets of different
            sizes are equally long.
        seed: of the shuffling.
        size: sentences in a batch.
        rate: the first learning rate.

    Returns:
        The last loss.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    generator = torch.Generator().manual_seed(seed)
    rows, loss = torch.empty(0, dtype=torch.int64), torch.zeros(())
    lengths = (words != PADDING).sum(1)
    model.train()
    for step in range(steps):
        while len(rows) < size:
            rows = torch.cat([rows, torch.randperm(len(words), generator=generator)])
        batch, rows = rows[:size], rows[size:]
        length = int(lengths[batch].max())
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        loss = loss_of(model, words[batch, :length], batch, length)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    return float(loss.detach())


def accuracy(model: nn.Module, data: Sentences) -> float:
    """Share of words that get the right class."""
    right = logits_of(model, data.words).argmax(-1) == data.labels
    return float(right[data.labels != NO_LABEL].double().mean())
