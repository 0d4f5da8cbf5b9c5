"""Pre-train by one objective for a budget of floating-point operations."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from attention_course.electra.corpus import Corpus, batches
from attention_course.electra.objectives import Pretraining

BATCH, RATE, WARM_UP = 32, 3e-3, 100


@dataclass(frozen=True)
class Progress:
    """How far a run is: `flops` so far, seconds of computing, losses averaged over lately."""

    model: Pretraining
    step: int
    flops: float
    seconds: float
    losses: dict[str, float]


def pretrain(
    objective: str, corpus: Corpus, stops: Sequence[float], seed: int, **options: float
) -> Iterator[Progress]:
    """Train from scratch; yield whenever the operations so far reach the next of `stops`.

    The learning rate is constant after a warm-up, so every stop is a run of that length in its
    own right. `options` go to `Pretraining`. Sets PyTorch's global seed, which dropout draws from.
    """
    torch.manual_seed(seed)
    model = Pretraining(objective, len(corpus.words), seed=seed, **options)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    stream = batches(corpus.train, BATCH, torch.Generator().manual_seed(seed))
    step, flops, seconds, losses = 0, 0.0, 0.0, {}
    for stop in stops:
        model.train()
        begin = time.process_time()
        while flops < stop:
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1.0, step / WARM_UP)
            loss, parts, cost = model(next(stream))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            flops += cost
            for name, value in parts.items():
                losses[name] = 0.98 * losses.get(name, value) + 0.02 * value
        seconds += time.process_time() - begin
        model.eval()
        yield Progress(model, step, flops, seconds, dict(losses))
