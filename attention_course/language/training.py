"""One training loop for all experiments of the chapter."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

WARM_UP = 50  # steps until the learning rate is at its height
LEAST = 0.05  # share of the height at which it ends


def rate_factor(step: int, steps: int) -> float:
    """Rise in a line, then fall in a line; a share of the highest rate."""
    return min(1.0, (step + 1) / WARM_UP) * max(LEAST, 1 - step / steps)


def fit(
    model: nn.Module,
    loss_of_step: Callable[[int], Tensor],
    steps: int,
    rate: float,
    after_step: Callable[[int], None] = lambda step: None,
) -> None:
    """Train with AdamW; `loss_of_step(step)` draws a batch and gives its loss."""
    parameters = list(model.parameters())
    optimiser = torch.optim.AdamW(
        parameters, lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * rate_factor(step, steps)
        loss = loss_of_step(step)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        after_step(step + 1)
