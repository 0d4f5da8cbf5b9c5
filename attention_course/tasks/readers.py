"""Claim: scores for start and end find spans more exactly than a yes or no for each token.

The same small encoder, data and number of steps; only the head and what it is trained for differ.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_course.tasks.small import SmallEncoder, train_small
from attention_course.tasks.stories import VOCABULARY

HEADS = ("start and end", "ones")


class Reader(SmallEncoder):
    """Two numbers for each token of a story."""

    def __init__(self, longest: int):
        super().__init__(len(VOCABULARY), longest, outputs=2)

    def forward(self, ids: Tensor) -> Tensor:
        """Two scores for each token: (batch, length) → (2, batch, length)."""
        return super().forward(ids).movedim(-1, 0)


def loss_of(head: str, scores: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """The loss of a head: two choices among allowed places, or a yes or no for each of them."""
    allowed = batch["context"].clone()
    allowed[:, 0] = True
    firsts, lasts = batch["firsts"], batch["lasts"]
    if head == "start and end":
        start, end = scores.masked_fill(~allowed, -torch.inf)
        return (F.cross_entropy(start, firsts) + F.cross_entropy(end, lasts)) / 2
    places = torch.arange(allowed.shape[1])
    inside = (places >= firsts[:, None]) & (places <= lasts[:, None])
    losses = F.binary_cross_entropy_with_logits(scores[0], inside.float(), reduction="none")
    return losses[allowed].mean()


def answers(head: str, scores: Tensor, context: Tensor, longest: int = 4) -> list[tuple[int, int]]:
    """Read (first, last) off the scores of each story; (0, 0) is no answer."""
    if head == "ones":
        return [_run_around_the_best(*row) for row in zip(scores[0], context, strict=True)]
    start, end = scores.masked_fill(~context, -torch.inf)
    pairs = start[:, :, None] + end[:, None, :]
    length = pairs.shape[-1]
    band = torch.ones(length, length, dtype=torch.bool).triu().tril(longest - 1)
    best, place = pairs.masked_fill(~band, -torch.inf).flatten(1).max(dim=1)
    nothing = best <= scores[0, :, 0] + scores[1, :, 0]
    return [
        (0, 0) if none else divmod(int(p), length) for none, p in zip(nothing, place, strict=True)
    ]


def _run_around_the_best(scores: Tensor, context: Tensor) -> tuple[int, int]:
    """The run of positive scores around the highest one of the passage."""
    inside = scores.masked_fill(~context, -torch.inf)
    first = last = int(inside.argmax())
    if inside[first] <= 0:
        return 0, 0
    while inside[first - 1] > 0:
        first -= 1
    while last + 1 < len(inside) and inside[last + 1] > 0:
        last += 1
    return first, last


def train_reader(head: str, data: dict[str, Tensor], seed: int, steps: int = 500) -> Reader:
    """Train a reader with one of `HEADS` on all of `data`. Raises ValueError for another head."""
    if head not in HEADS:
        raise ValueError(f"head must be one of {HEADS}; got {head!r}.")

    def loss(model: Reader, rows: Tensor) -> Tensor:
        batch = {name: values[rows] for name, values in data.items()}
        width = int((batch["ids"] > 0).sum(1).max())
        batch["ids"], batch["context"] = batch["ids"][:, :width], batch["context"][:, :width]
        return loss_of(head, model(batch["ids"]), batch)

    longest = data["ids"].shape[1]
    return train_small(lambda: Reader(longest), loss, len(data["ids"]), seed, steps)


@torch.no_grad()
def found_exactly(model: Reader, head: str, data: dict[str, Tensor]) -> Tensor:
    """Which stories' answers are found exactly: bool (stories)."""
    spans = answers(head, model(data["ids"]), data["context"])
    wanted = zip(data["firsts"].tolist(), data["lasts"].tolist(), strict=True)
    return torch.tensor([span == truth for span, truth in zip(spans, wanted, strict=True)])
