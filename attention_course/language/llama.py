"""A decoder as models have it today: RMSNorm, rotary positions, gated MLP, fewer key/value heads.

Names and shapes are those of Llama (Touvron et al. 2023), so that weights of such models fit. With
another mask the same network is an encoder or a prefix language model.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder. `heads` must divide `width`, and `key_heads` must divide `heads`."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int
    hidden: int
    base: float = 10_000.0
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        if self.width % self.heads or self.heads % self.key_heads:
            raise ValueError(
                f"heads ({self.heads}) must divide width ({self.width}), and key_heads "
                f"({self.key_heads}) must divide heads. Choose other sizes."
            )
        if self.width // self.heads % 2:
            raise ValueError(
                f"a head's width must be even, for pairs to rotate; it is "
                f"{self.width // self.heads}. Choose other sizes."
            )


def rotation(length: int, head_width: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines of shape (length, head_width), the two halves alike (Su et al. 2021)."""
    rates = base ** (-torch.arange(0, head_width, 2) / head_width)
    angles = torch.outer(torch.arange(length), rates).repeat(1, 2)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn every pair (i, i + head_width / 2) of x, (..., length, head_width), by its angle."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Layer(nn.Module):
    """One block: norm, attention, residual; norm, gated MLP, residual."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        head_width = shape.width // shape.heads
        keys_width = shape.key_heads * head_width
        self.input_layernorm = nn.RMSNorm(shape.width, shape.epsilon)
        self.q_proj = nn.Linear(shape.width, shape.width, bias=False)
        self.k_proj = nn.Linear(shape.width, keys_width, bias=False)
        self.v_proj = nn.Linear(shape.width, keys_width, bias=False)
        self.o_proj = nn.Linear(shape.width, shape.width, bias=False)
        self.post_attention_layernorm = nn.RMSNorm(shape.width, shape.epsilon)
        self.gate_proj = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down_proj = nn.Linear(shape.hidden, shape.width, bias=False)

    def attend(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None) -> Tensor:
        """Add what attention finds to x, (batch, length, width)."""
        normed = self.input_layernorm(x)
        queries, keys, values = (
            project(normed).unflatten(-1, (-1, cos.shape[-1])).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        attended = F.scaled_dot_product_attention(
            rotate(queries, cos, sin),
            rotate(keys, cos, sin),
            values,
            attn_mask=mask,
            is_causal=mask is None,
            enable_gqa=self.shape.key_heads < self.shape.heads,
        )
        return x + self.o_proj(attended.transpose(1, 2).flatten(2))

    def transform(self, x: Tensor) -> Tensor:
        """Add what the gated MLP makes of each place."""
        normed = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(normed)) * self.up_proj(normed))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None) -> Tensor:
        """Run the block on x, (batch, length, width)."""
        return self.transform(self.attend(x, cos, sin, mask))


class Llama(nn.Module):
    """Tokens to logits. Weights are drawn from `generator`."""

    def __init__(self, shape: Shape, generator: torch.Generator | None = None):
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, shape.epsilon)
        if generator is not None:
            for parameter in self.parameters():
                if parameter.ndim > 1:
                    nn.init.normal_(parameter, std=0.02, generator=generator)
            for layer in self.layers:  # keeps the residual stream's size the same at any depth
                for last in (layer.o_proj, layer.down_proj):
                    nn.init.normal_(
                        last.weight, std=0.02 / (2 * shape.layers) ** 0.5, generator=generator
                    )

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Give logits, (batch, length, vocabulary), for tokens, (batch, length).

        mask: None for a causal one, or bool that broadcasts to (batch, length, length), True = may
        be seen. No row of it may be empty.
        """
        cos, sin = rotation(tokens.shape[1], self.shape.width // self.shape.heads, self.shape.base)
        x = self.embed_tokens(tokens)
        mask = mask if mask is None else mask.unsqueeze(-3)
        for layer in self.layers:
            x = layer(x, cos.to(x), sin.to(x), mask)
        return F.linear(self.norm(x), self.embed_tokens.weight)
