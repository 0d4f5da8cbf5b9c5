"""Translators to compare: a transformer, and recurrent networks with and without attention.

All have the methods `encode(source)`, which gives a memory, and `decode(target, memory)`, which
gives the logits of the next word after every prefix of `target`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from attention_course.translation.text import PADDING

LONGEST = 64  # words of a sentence that has positions


class Memory(NamedTuple):
    """What the encoder found: vectors (batch, source, d_model) and a mask (batch, source).

    The mask is True for words. `state` is the last state of a recurrent encoder.
    """

    vectors: torch.Tensor
    mask: torch.Tensor
    state: torch.Tensor | None = None


def _positions(length: int, d_model: int) -> torch.Tensor:
    """Sinusoids, (length, d_model)."""
    powers = torch.arange(0, d_model, 2) / d_model
    angles = torch.arange(length)[:, None] / 10_000**powers
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(length, d_model)


class TransformerTranslator(nn.Module):
    """PyTorch's `nn.Transformer` (pre-LN, no dropout) between embeddings and a tied output."""

    def __init__(
        self,
        source_words: int,
        target_words: int,
        d_model: int = 64,
        heads: int = 4,
        layers: int = 2,
        hidden: int = 256,
    ):
        super().__init__()
        self.scale = d_model**0.5
        self.source_embedding = nn.Embedding(source_words, d_model)
        self.target_embedding = nn.Embedding(target_words, d_model)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=d_model**-0.5)
        self.register_buffer("positions", _positions(LONGEST, d_model), persistent=False)
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d_model, heads, hidden, **options),
            layers,
            nn.LayerNorm(d_model),
            enable_nested_tensor=False,  # or PyTorch warns that pre-LN does not allow it
        )
        self.stacks = nn.Transformer(
            d_model, heads, layers, layers, hidden, custom_encoder=encoder, **options
        )

    def _embed(self, embedding: nn.Embedding, words: torch.Tensor) -> torch.Tensor:
        return embedding(words) * self.scale + self.positions[: words.shape[1]]

    def encode(self, source: torch.Tensor) -> Memory:
        """Read source sentences, int (batch, source)."""
        mask = source != PADDING
        x = self._embed(self.source_embedding, source)
        return Memory(self.stacks.encoder(x, src_key_padding_mask=~mask), mask)

    def decode(self, target: torch.Tensor, memory: Memory) -> torch.Tensor:
        """Give logits (batch, target, target words)."""
        length = target.shape[1]
        states = self.stacks.decoder(
            self._embed(self.target_embedding, target),
            memory.vectors,
            tgt_mask=torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1),
            memory_key_padding_mask=~memory.mask,
        )
        return states @ self.target_embedding.weight.T


class RecurrentTranslator(nn.Module):
    """Two GRUs. With `attention`, every step looks back at the encoder's states (Luong's "dot").

    Without it, the encoder's last state is all that the decoder gets (Sutskever et al. 2014).
    """

    def __init__(self, source_words: int, target_words: int, d_model: int, attention: bool):
        super().__init__()
        self.attention = attention
        self.source_embedding = nn.Embedding(source_words, d_model)
        self.target_embedding = nn.Embedding(target_words, d_model)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=d_model**-0.5)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.combine = nn.Linear(2 * d_model if attention else d_model, d_model)

    def encode(self, source: torch.Tensor) -> Memory:
        """Read source sentences, int (batch, source)."""
        mask = source != PADDING
        states, _ = self.encoder(self.source_embedding(source))
        last = mask.sum(dim=1) - 1
        state = states[torch.arange(len(source)), last][None]
        return Memory(states, mask, state)

    def decode(self, target: torch.Tensor, memory: Memory) -> torch.Tensor:
        """Give logits (batch, target, target words)."""
        states, _ = self.decoder(self.target_embedding(target), memory.state.contiguous())
        if self.attention:
            scores = states @ memory.vectors.mT
            weights = scores.masked_fill(~memory.mask[:, None], -torch.inf).softmax(dim=-1)
            states = torch.cat([weights @ memory.vectors, states], dim=-1)
        return torch.tanh(self.combine(states)) @ self.target_embedding.weight.T
