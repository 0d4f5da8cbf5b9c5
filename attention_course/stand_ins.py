"""What stands in a student's library for parts that are not answered yet: PyTorch's own.

Each has the name, the arguments and the results that the exercise of its chapter asks for.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


def softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    """Positive weights that sum to 1 along an axis (chapter 02)."""
    return torch.from_numpy(scores).softmax(dim=axis).numpy()


def scaled_dot_product_attention(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Output (..., q, d_v) and weights (..., q, k); True in `mask` = may be seen (chapter 02)."""
    given = [torch.from_numpy(np.asarray(part)) for part in (queries, keys)]
    visible = None if mask is None else torch.from_numpy(np.asarray(mask))
    # PyTorch's function keeps the weights to itself; the unit matrix for values brings them out.
    unit = torch.eye(keys.shape[-2], dtype=given[0].dtype).expand(*keys.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(*given, unit, attn_mask=visible).numpy()
    return weights @ values, weights


def learned_positions(positions: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Rows of a table (chapter 03). Raises ValueError for a position without a row."""
    if positions.min() < 0 or positions.max() >= len(table):
        raise ValueError(f"positions must be 0 to {len(table) - 1}, the table has no other rows")
    return F.embedding(torch.from_numpy(positions), torch.from_numpy(table)).numpy()


class MultiHeadAttention(nn.Module):
    """Multi-head self-attention by PyTorch's own function (chapter 04).

    Raises ValueError if `heads` does not divide `d_model`.
    """

    def __init__(self, d_model: int, heads: int):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"heads = {heads} does not divide d_model = {d_model}")
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x: (batch, length, d_model). Returns (output, weights (batch, heads, length, length))."""
        batch, length, d_model = x.shape
        hidden = None
        if mask is not None:
            hidden = ~mask.broadcast_to(batch, self.heads, length, length).flatten(0, 1)
        rows = x.transpose(0, 1)
        output, weights = F.multi_head_attention_forward(
            *(rows, rows, rows, d_model, self.heads),
            *(self.qkv.weight, self.qkv.bias, None, None, False, 0.0),
            *(self.out.weight, self.out.bias),
            attn_mask=hidden,
            average_attn_weights=False,
        )
        return output.transpose(0, 1), weights


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Layer norm over the last axis (chapter 05)."""
    return F.layer_norm(x, gain.shape, gain, bias, epsilon)


def mlp(
    x: Tensor, w_in: Tensor, b_in: Tensor, w_out: Tensor, b_out: Tensor, activation: str
) -> Tensor:
    """Widen, bend, narrow (chapter 05); `activation` is one of `ACTIVATIONS`."""
    return F.linear(ACTIVATIONS[activation](F.linear(x, w_in, b_in)), w_out, b_out)


class EncoderBlock(nn.TransformerEncoderLayer):
    """PyTorch's encoder layer with the exact GELU and nothing dropped (chapter 05)."""

    def __init__(self, d_model: int, heads: int, d_hidden: int, norm_first: bool):
        super().__init__(
            *(d_model, heads, d_hidden, 0.0, "gelu"), batch_first=True, norm_first=norm_first
        )

    def forward(self, x: Tensor, **masks: Tensor) -> Tensor:
        """x: (batch, length, d_model). `masks` are those of PyTorch's layer."""
        return super().forward(x, **masks)


class PaddedEncoder(nn.Module):
    """A stack of PyTorch's layers over a padded batch (chapter 05)."""

    def __init__(self, d_model: int, heads: int, d_hidden: int, layers: int, norm_first: bool):
        super().__init__()
        made = (EncoderBlock(d_model, heads, d_hidden, norm_first) for _ in range(layers))
        self.layers = nn.ModuleList(made)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """x: (batch, length, d_model). Returns the states, 0 in the padding, and their means."""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~real)
        states = x * real[..., None]
        return states, states.sum(dim=1) / lengths[:, None]
