"""The task of chapter 14, which of two tokens stands first, and how to look into a model of it.

A bag of tokens cannot tell: both tokens are in every sequence, once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course.tasks.small import SmallEncoder, train_small

VOCABULARY = 10  # token 0 is padding
LONGEST, SHORTEST = 8, 4


def make_orders(
    rng: np.random.Generator, count: int, first: int, second: int
) -> tuple[np.ndarray, np.ndarray]:
    """Make `count` different sequences that hold the tokens `first` and `second` once each.

    No sequence comes twice, so that two parts of what is returned have none in common. Returns
    tokens, int64 (count, LONGEST), padded with 0 at the end, and labels, int64 (count,): 1 where
    `first` stands before `second`, otherwise 0. Half of the labels are 1 (rounded up).
    """
    others = [token for token in range(1, VOCABULARY) if token not in (first, second)]
    labels = rng.permutation(np.arange(count) % 2 == 0).astype(np.int64)
    tokens = np.zeros((count, LONGEST), dtype=np.int64)
    seen: set[bytes] = set()
    for row, label in zip(tokens, labels, strict=True):
        pair = (first, second) if label else (second, first)
        while row.tobytes() in seen or not row.any():
            row[:] = _draw_sequence(rng, others, pair)
        seen.add(row.tobytes())
    return tokens, labels


def _draw_sequence(
    rng: np.random.Generator, others: list[int], pair: tuple[int, int]
) -> np.ndarray:
    length = rng.integers(SHORTEST, LONGEST + 1)
    row = np.zeros(LONGEST, dtype=np.int64)
    row[:length] = rng.choice(others, size=length)
    row[np.sort(rng.choice(length, size=2, replace=False))] = pair
    return row


def make_task(seed: int, training: int = 600, test: int = 400) -> SimpleNamespace:
    """Draw two tokens that matter, and sequences about them; no test sequence is trained on.

    Returns `first`, `second`, and the tensors `tokens`, `labels`, `test_tokens`, `test_labels`.
    """
    rng = np.random.default_rng(seed)
    first, second = (int(t) for t in rng.choice(np.arange(1, VOCABULARY), size=2, replace=False))
    made = make_orders(rng, training + test, first, second)
    tokens, labels = (torch.from_numpy(part) for part in made)
    return SimpleNamespace(
        first=first,
        second=second,
        tokens=tokens[:training],
        labels=labels[:training],
        test_tokens=tokens[training:],
        test_labels=labels[training:],
    )


class GivenReader(nn.Module):
    """The course's small encoder; the mean of its outputs over real tokens are the logits."""

    def __init__(self, positions: bool = True):
        super().__init__()
        self.encoder = SmallEncoder(VOCABULARY, LONGEST, 2)
        if not positions:
            nn.init.zeros_(self.encoder.places.weight).requires_grad_(False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map int64 tokens (batch, length), 0 = padding, to logits (batch, 2)."""
        real = (tokens != 0)[..., None]
        return (self.encoder(tokens) * real).sum(dim=1) / real.sum(dim=1)


def train_given(task: SimpleNamespace, seed: int, steps: int, positions: bool = True) -> nn.Module:
    """Train the course's reader on a task; its first weights and its batches follow the seed."""

    def loss(model: nn.Module, rows: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(task.tokens[rows]), task.labels[rows])

    return train_small(lambda: GivenReader(positions), loss, len(task.tokens), seed, steps)


def share_right(model: nn.Module, task: SimpleNamespace) -> float:
    """Share of a task's test sequences that a model gets right."""
    with torch.no_grad():
        guesses = model(task.test_tokens).argmax(dim=1)
    return float((guesses == task.test_labels).double().mean())


def _attentions(model: nn.Module) -> list[nn.MultiheadAttention]:
    found = [part for part in model.modules() if isinstance(part, nn.MultiheadAttention)]
    if not found:
        raise ValueError(
            "the model has no `nn.MultiheadAttention` to look into; let your own attention return "
            "its weights, and give them to the view yourself"
        )
    return found


@contextlib.contextmanager
def _changed_calls(model: nn.Module, change: Callable[[dict[str, Any]], dict[str, Any]]):
    """Within the block every attention of the model is called with changed keyword arguments."""

    def before(_, given, keywords):
        return given, {**keywords, **change(keywords)}

    handles = [
        part.register_forward_pre_hook(before, with_kwargs=True) for part in _attentions(model)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def _kept_weights(model: nn.Module) -> Iterator[list[torch.Tensor]]:
    kept: list[torch.Tensor] = []
    handles = [
        part.register_forward_hook(lambda _, __, result: kept.append(result[1].detach()))
        for part in _attentions(model)
    ]
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


def attention_of(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    """Attention weights of every layer of a model for one sequence, int64 (length,).

    Looks into each `nn.MultiheadAttention`, in the order in which they run; all have equally many
    heads. Returns (layers, heads, length, length). Raises ValueError if there is none.
    """
    wanted = {"need_weights": True, "average_attn_weights": False}
    with _changed_calls(model, lambda _: wanted), _kept_weights(model) as kept:
        model(tokens[None])
    return torch.cat(kept)


def logits_without(model: nn.Module, tokens: torch.Tensor, key: int) -> torch.Tensor:
    """Logits of one sequence, int64 (length,), if no token may look at place `key`, in any layer.

    The token keeps its own state: it is hidden as a key, not taken out. Returns (classes,). Raises
    ValueError if the model has no `nn.MultiheadAttention`.
    """
    hidden = torch.zeros(1, len(tokens)).index_fill_(1, torch.tensor([key]), -torch.inf)

    def hide(keywords: dict[str, Any]) -> dict[str, Any]:
        mask = keywords.get("key_padding_mask")
        if mask is None:
            return {"key_padding_mask": hidden}
        if mask.dtype == torch.bool:
            return {"key_padding_mask": mask | hidden.isinf()}
        return {"key_padding_mask": mask + hidden}

    with _changed_calls(model, hide):
        return model(tokens[None])[0].detach()
