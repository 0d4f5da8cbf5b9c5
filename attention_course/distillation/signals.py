"""What a student can learn from, as losses for `fit`: labels, or a teacher's logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from attention_course.distillation.words import NO_LABEL, PADDING

Loss = Callable[[nn.Module, torch.Tensor, torch.Tensor, int], torch.Tensor]


def from_labels(labels: torch.Tensor) -> Loss:
    """Learn from labels, int64 (sentences, longest), −100 = none."""

    def loss(model: nn.Module, words: torch.Tensor, rows: torch.Tensor, length: int):
        aims = labels[rows, :length].flatten()
        return F.cross_entropy(model(words).flatten(0, 1), aims, ignore_index=NO_LABEL)

    return loss


def from_logits(logits: torch.Tensor, temperature: float) -> Loss:
    """Learn from a teacher's logits (sentences, longest, classes), softened.

    The loss is a cross-entropy: larger than a divergence, with the same gradient.
    """
    aims = (logits / temperature).softmax(-1)

    def loss(model: nn.Module, words: torch.Tensor, rows: torch.Tensor, length: int):
        tokens = words != PADDING
        found = model(words)[tokens] / temperature
        return temperature**2 * F.cross_entropy(found, aims[rows, :length][tokens])

    return loss


def hard_labels(logits: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """The teacher's choices as labels, int64 (sentences, longest); −100 at padding."""
    return logits.argmax(-1).masked_fill(words == PADDING, NO_LABEL)
