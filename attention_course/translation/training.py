"""Train a translator by teacher forcing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from attention_course.translation.text import PADDING, Vocabulary, batches


@dataclass(frozen=True)
class Progress:
    """After one epoch: its number from 1, steps so far, and the mean loss of a word in it."""

    epoch: int
    step: int
    loss: float


def train(
    model: torch.nn.Module,
    pairs: Sequence,
    source: Vocabulary,
    target: Vocabulary,
    *,
    epochs: int,
    seed: int,
    size: int = 64,
    rate: float = 3e-3,
    warm_up: int = 100,
) -> Iterator[Progress]:
    """Train the model in place, and yield after every epoch.

    AdamW; the rate rises over `warm_up` steps and falls to zero along a cosine. Gradients are
    clipped to norm 1.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), fused=True)
    generator = torch.Generator().manual_seed(seed)
    last, step = epochs * math.ceil(len(pairs) / size), 0
    for epoch in range(1, epochs + 1):
        total, words = 0.0, 0
        for batch in batches(pairs, source, target, size, generator):
            step += 1
            part = min(1.0, step / warm_up) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / last)))
            for group in optimizer.param_groups:
                group["lr"] = rate * part
            logits = model.decode(batch.target_input, model.encode(batch.source))
            loss = F.cross_entropy(
                logits.flatten(0, 1), batch.target.flatten(), ignore_index=PADDING
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            count = int((batch.target != PADDING).sum())
            total, words = total + float(loss.detach()) * count, words + count
        yield Progress(epoch, step, total / words)
