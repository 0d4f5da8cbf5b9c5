"""Pre-train by one objective, or by two in turn, for a budget of floating-point operations."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from attention_course.electra.corpus import Corpus, batches
from attention_course.electra.objectives import Pretraining, second_stage

BATCH, RATE, WARM_UP = 32, 3e-3, 100
FIRST_STAGE = 0.425  # of the operations: both stages then have about as many steps


@dataclass(frozen=True)
class Progress:
    """How far a run is: `flops` so far, seconds of computing, losses averaged over lately."""

    model: Pretraining
    step: int
    flops: float
    seconds: float
    losses: dict[str, float]


def pretrain(
    objective: str,
    corpus: Corpus,
    stops: Sequence[float],
    seed: int,
    *,
    by: str = "flops",
    **options: float,
) -> Iterator[Progress]:
    """Train from scratch; yield whenever the operations so far reach the next of `stops`.

    The learning rate is constant after a warm-up, so every stop is a run of that length in its
    own right. With `by="step"` stops are numbers of steps. `options` go to `Pretraining`. Sets
    PyTorch's global seed, which weights and dropout are drawn from.
    """
    torch.manual_seed(seed)
    model = Pretraining(objective, len(corpus.words), seed=seed, **options)
    yield from _train(model, _stream(corpus, seed), stops, by)


def pretrain_in_stages(corpus: Corpus, stop: float, seed: int) -> Iterator[Progress]:
    """Train a masked LM, then a discriminator that starts from it and reads its samples.

    Yields once, when both stages together have cost `stop` operations. Sets PyTorch's global seed.
    """
    torch.manual_seed(seed)
    stream = _stream(corpus, seed)
    first = Pretraining("MLM, only [MASK]", len(corpus.words), seed=seed)
    *_, one = _train(first, stream, [FIRST_STAGE * stop])
    *_, two = _train(second_stage(first, seed), stream, [stop - one.flops])
    yield replace(
        two,
        step=one.step + two.step,
        flops=one.flops + two.flops,
        seconds=one.seconds + two.seconds,
    )


def _stream(corpus: Corpus, seed: int) -> Iterator[torch.Tensor]:
    return batches(corpus.train, BATCH, torch.Generator().manual_seed(seed))


def _train(
    model: Pretraining, stream: Iterator[torch.Tensor], stops: Sequence[float], by: str = "flops"
) -> Iterator[Progress]:
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    spent, seconds, losses = {"step": 0, "flops": 0.0}, 0.0, {}
    for stop in stops:
        model.train()
        begin = time.process_time()
        while spent[by] < stop:
            spent["step"] += 1
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1.0, spent["step"] / WARM_UP)
            loss, parts, cost = model(next(stream))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            spent["flops"] += cost
            for name, value in parts.items():
                losses[name] = 0.98 * losses.get(name, value) + 0.02 * value
        seconds += time.process_time() - begin
        model.eval()
        yield Progress(model, spent["step"], spent["flops"], seconds, dict(losses))
