"""Models whose matrices are 8-bit integers: what PyTorch calls dynamic quantisation.

Weights are rounded once, with one scale for each row. Inputs are rounded anew in every call, with
one scale for all of them. The product is that of integers, by PyTorch's own code for the machine.

`torch.ao.quantization.quantize_dynamic` would do the same, but it leaves the projections to
queries, keys and values alone, and an encoder layer's fused path stumbles over what it puts in.
"""

from __future__ import annotations

import copy
import io
import warnings
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

LARGEST = 127


class Int8Linear(nn.Module):
    """An `nn.Linear` in 8 bits: (..., inputs) → (..., outputs), float32. It cannot be trained.

    `integers` (int8), `scales` (one for each output) and `bias` are what it keeps on disk.
    """

    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight = linear.weight.detach()
        scales = weight.abs().amax(dim=1).clamp(min=1e-12) / LARGEST
        self.register_buffer("integers", (weight / scales[:, None]).round().to(torch.int8))
        self.register_buffer("scales", scales)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())
        self._packed = _packed(weight, scales, self.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Round, multiply, scale back."""
        # Without `reduce_range` sums overflow 16 bits on processors that have no VNNI.
        return torch.ops.quantized.linear_dynamic(x, self._packed, reduce_range=True)


def _packed(weight: torch.Tensor, scales: torch.Tensor, bias: torch.Tensor | None) -> Any:
    with warnings.catch_warnings():
        # PyTorch moves this to the package torchao, whose code for CPUs wants a compiler.
        warnings.filterwarnings("ignore", message=".*quantized tensor creation.*")
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        integers = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(integers, bias)


class PlainLayer(nn.Module):
    """What an `nn.TransformerEncoderLayer` computes in evaluation mode; each matrix a `Linear`."""

    def __init__(self, layer: nn.TransformerEncoderLayer):
        super().__init__()
        attention = layer.self_attn
        self.heads, self.norm_first = attention.num_heads, layer.norm_first
        self.activation = layer.activation
        self.to_queries, self.to_keys, self.to_values = (
            _linear(weight, bias)
            for weight, bias in zip(
                attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3), strict=True
            )
        )
        self.out = _linear(attention.out_proj.weight, attention.out_proj.bias)
        self.linear1, self.linear2 = layer.linear1, layer.linear2
        self.norm1, self.norm2 = layer.norm1, layer.norm2

    def forward(
        self, x: torch.Tensor, src_key_padding_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Map (batch, length, d_model) to the same shape; the bool mask is True at padding."""
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_key_padding_mask)
            return x + self._mlp(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_key_padding_mask))
        return self.norm2(x + self._mlp(x))

    def _attend(self, x: torch.Tensor, padding: torch.Tensor | None) -> torch.Tensor:
        queries, keys, values = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.to_queries, self.to_keys, self.to_values)
        )
        mask = None if padding is None else ~padding[:, None, None]
        found = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return self.out(found.transpose(1, 2).flatten(2))

    def _mlp(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear2(self.activation(self.linear1(x)))


def _linear(weight: torch.Tensor, bias: torch.Tensor) -> nn.Linear:
    linear = nn.Linear(*weight.shape[::-1])
    linear.load_state_dict({"weight": weight, "bias": bias})
    return linear


def in_plain_layers(model: nn.Module) -> nn.Module:
    """A copy in evaluation mode, with `PlainLayer` for each of PyTorch's encoder layers."""
    return _exchanged(copy.deepcopy(model).eval(), nn.TransformerEncoderLayer, PlainLayer)


def in_8_bits(model: nn.Module) -> nn.Module:
    """A copy in evaluation mode whose matrices are 8-bit integers; embeddings stay as they are."""
    return _exchanged(in_plain_layers(model), nn.Linear, Int8Linear)


def _exchanged(model: nn.Module, kind: type[nn.Module], make: Any) -> nn.Module:
    for name, part in model.named_children():
        setattr(model, name, make(part) if type(part) is kind else _exchanged(part, kind, make))
    return model


def bytes_on_disk(model: nn.Module) -> int:
    """Bytes of the file that `torch.save` makes of a model's weights."""
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.getbuffer().nbytes
