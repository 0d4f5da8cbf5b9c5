"""Train a decoder on the characters of a text, measure it, and let it write."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.language.llama import Llama, Shape
from attention_course.language.training import fit

CONTEXT = 64
BATCH = 12
RATE = 4e-3


def small_decoder(vocabulary: int, seed: int) -> Llama:
    """Make a decoder of about 100,000 weights, drawn from a generator with this seed."""
    shape = Shape(vocabulary, width=64, layers=2, heads=4, key_heads=4, hidden=168)
    return Llama(shape, torch.Generator().manual_seed(seed))


def loss_of(model: nn.Module, windows: Tensor) -> Tensor:
    """Mean loss in nats of predicting each token of windows, (batch, length + 1), but the first."""
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def validation_loss(model: nn.Module, tokens: Tensor, most: int = 200) -> float:
    """Mean loss over at most this many windows that lie side by side, spread over the tokens."""
    windows = tokens.unfold(0, CONTEXT + 1, CONTEXT)
    chosen = torch.linspace(0, len(windows) - 1, min(most, len(windows))).long()
    with torch.no_grad():
        return float(loss_of(model, windows[chosen]))


def train_on_text(
    model: nn.Module,
    tokens: Tensor,
    seed: int,
    steps: int,
    after_step: Callable[[int], None],
) -> None:
    """Train on windows that start anywhere; calls `after_step` with 1, 2, ... after each step."""
    generator = torch.Generator().manual_seed(seed)
    windows = tokens.unfold(0, CONTEXT + 1, 1)

    def loss_of_step(step: int) -> Tensor:
        starts = torch.randint(len(windows), (BATCH,), generator=generator)
        return loss_of(model, windows[starts])

    fit(model, loss_of_step, steps, RATE, after_step)


def write(
    model: nn.Module,
    prompt: Tensor,
    steps: int,
    seed: int,
    change: Callable[[Tensor], Tensor] = lambda logits: logits,
) -> Tensor:
    """Continue a prompt, (length,), by `steps` tokens drawn from `change(logits)`."""
    generator = torch.Generator().manual_seed(seed)
    tokens = prompt.clone()
    with torch.no_grad():
        for _ in range(steps):
            logits = change(model(tokens[None, -CONTEXT:])[0, -1])
            drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
            tokens = torch.cat([tokens, drawn])
    return tokens
