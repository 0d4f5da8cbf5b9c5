"""Chapter 12: what several of its exercises draw their cases from, and losses token by token."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from autograder.case_making import draw_lengths

NO_LABEL = -100
# (batch, length, classes), all different, no number of tokens equal to that of classes; a check
# stores what every known mistake gives.
SIZES = ((2, 3, 6), (2, 4, 3))


def draw_sizes_of_tokens(rng: np.random.Generator) -> tuple[int, int, int]:
    """Draw (batch, length, classes), all different."""
    return SIZES[rng.integers(len(SIZES))]


def draw_real(rng: np.random.Generator, batch: int, length: int) -> np.ndarray:
    """Draw a bool mask (batch, length), True = a token: rows with unequal numbers of tokens."""
    ordered = np.arange(length) < draw_lengths(rng, batch, length)[:, None]
    return rng.permuted(ordered, axis=1)


def draw_labels(rng: np.random.Generator, real: np.ndarray, classes: int) -> np.ndarray:
    """Draw a class for each token, int64 (batch, length); `NO_LABEL` where `real` is False."""
    labels = rng.integers(0, classes, size=real.shape)
    return np.where(real, labels, NO_LABEL).astype(np.int64)


def poisoned(array: np.ndarray, real: np.ndarray, factor: float = 30.0) -> np.ndarray:
    """Give vectors (..., batch, length, width) with large finite ones where `real` is False."""
    return np.where(real[..., None], array, factor * array)


def divergence(from_logits: torch.Tensor, to_logits: torch.Tensor) -> torch.Tensor:
    """KL(from ‖ to) of every row of logits; shape (...,)."""
    ours, theirs = from_logits.log_softmax(-1), to_logits.log_softmax(-1)
    return (ours.exp() * (ours - theirs)).sum(-1)


def gold(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over labelled places, by PyTorch's own loss."""
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=NO_LABEL)


def draw_model(
    rng: np.random.Generator, width: int, d_model: int, layers: int, classes: int
) -> dict[str, np.ndarray]:
    """Draw the weights of a model as `drivers.distilling.make_model` wants them."""
    weights = {"embedding.weight": rng.normal(size=(d_model, width)) / np.sqrt(width)}
    for layer in range(layers):
        weights[f"layers.{layer}.weight"] = rng.normal(size=(d_model, d_model)) / np.sqrt(d_model)
        weights[f"layers.{layer}.bias"] = 0.5 * rng.normal(size=d_model)
    weights["head.weight"] = rng.normal(size=(classes, d_model)) / np.sqrt(d_model)
    return weights
