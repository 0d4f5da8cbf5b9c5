"""Training in passes over the data, and rates that shrink from layer to layer.

The rates are those of Howard and Ruder (2018), *Universal Language Model Fine-tuning for Text
Classification*, Section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

BATCH = 32
Groups = list[dict[str, Any]]  # what an optimizer takes: parameters with their rate


def rate_groups(head: nn.Module, layers: Sequence[nn.Module], rate: float, decay: float) -> Groups:
    """Give the head `rate`, and each of the layers `decay` times what stands above it gets.

    `layers` go from the lowest to the highest; what is in neither of them is not trained.
    """
    groups = [{"params": list(head.parameters()), "lr": rate}]
    for layer in reversed(layers):
        rate *= decay
        groups.append({"params": list(layer.parameters()), "lr": rate})
    return groups


def like_lengths(lengths: Sequence[int], generator: torch.Generator) -> list[Tensor]:
    """Batches of rows in random order, each of rows of like length: there is little to pad.

    Args:
        lengths: number of tokens of each row.
        generator: draws which rows of nearly the same length meet, and the order of the batches.

    Returns:
        int64 (at most BATCH,) for each batch; together every row once.
    """
    noise = 4 * torch.rand(len(lengths), generator=generator)
    batches = (torch.tensor(lengths) + noise).argsort().split(BATCH)
    return [batches[place] for place in torch.randperm(len(batches), generator=generator)]


def passes(
    groups: Groups,
    loss: Callable[[Tensor], Tensor],
    lengths: Sequence[int],
    most: int,
    seed: int,
) -> Iterator[int]:
    """Train with AdamW and a one-cycle rate; yield after each pass, so that the caller may stop.

    Args:
        groups: parameters and the highest rate of each group.
        loss: gives the mean loss of some rows, int64 (at most BATCH,).
        lengths: number of tokens of each row.
        most: number of passes over all rows, if nobody stops.
        seed: of the batches.

    Yields:
        The number of the pass that has just ended, from 0.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        [group["lr"] for group in groups],
        total_steps=most * -(-len(lengths) // BATCH),
    )
    for number in range(most):
        for rows in like_lengths(lengths, generator):
            value = loss(rows)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            schedule.step()
        yield number


def train_all(
    model: nn.Module,
    rate: float,
    loss: Callable[[Tensor], Tensor],
    lengths: Sequence[int],
    most: int,
    seed: int,
) -> None:
    """Make all passes, with one rate for everything that is not frozen."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for _ in passes([{"params": trained, "lr": rate}], loss, lengths, most, seed):
        pass
