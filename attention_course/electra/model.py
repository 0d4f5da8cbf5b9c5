"""A small pre-LN encoder whose embeddings another one may share, its heads, and their FLOPs."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from attention_course.electra.corpus import PADDING

LONGEST = 48


class Block(nn.Module):
    """Self-attention and MLP, each after a norm and with a residual link."""

    def __init__(self, d_model: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.attention_norm, self.mlp_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.to_all = nn.Linear(d_model, 3 * d_model)
        self.to_output = nn.Linear(d_model, d_model)
        self.wide, self.narrow = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Carry x (batch, length, d_model) through; mask is True where a key may be seen."""
        parts = self.to_all(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        seen = self.to_output(seen.transpose(1, 2).flatten(2))
        x = x + F.dropout(seen, self.dropout, self.training)
        hidden = self.narrow(F.gelu(self.wide(self.mlp_norm(x))))
        return x + F.dropout(hidden, self.dropout, self.training)


class Embeddings(nn.Module):
    """Word and position tables and a norm."""

    def __init__(self, words: int, width: int):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(LONGEST, width)
        self.norm = nn.LayerNorm(width)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Give vectors (batch, length, width)."""
        return self.norm(self.words(ids) + self.places.weight[: ids.shape[1]])


class Encoder(nn.Module):
    """Embeddings, a projection if they have another width, blocks, and a norm."""

    def __init__(
        self,
        words: int,
        d_model: int = 64,
        heads: int = 4,
        layers: int = 2,
        dropout: float = 0.0,  # made-up sentences never run out, so nothing is learned by heart
        embeddings: Embeddings | None = None,
    ):
        super().__init__()
        self.d_model = d_model
        self.embeddings = embeddings or Embeddings(words, d_model)
        width = self.embeddings.words.embedding_dim
        self.project = nn.Linear(width, d_model) if width != d_model else nn.Identity()
        self.blocks = nn.ModuleList(Block(d_model, heads, dropout) for _ in range(layers))
        self.norm, self.dropout = nn.LayerNorm(d_model), dropout

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Read ids (batch, length), int64; gives states (batch, length, d_model)."""
        mask = (ids != PADDING)[:, None, None]
        x = F.dropout(self.embeddings(ids), self.dropout, self.training)
        x = self.project(x)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)

    def flops(self, batch: int, length: int) -> int:
        """Count the floating-point operations of one forward pass (matrix products only)."""
        width, d_model = self.embeddings.words.embedding_dim, self.d_model
        layer = 2 * 12 * d_model * d_model + 4 * length * d_model
        project = 2 * width * d_model if width != d_model else 0
        return batch * length * (len(self.blocks) * layer + project)


class WordHead(nn.Module):
    """Scores of all words, through the embedding table: the output layer of a masked LM."""

    def __init__(self, d_model: int, embeddings: Embeddings):
        super().__init__()
        words, width = embeddings.words.weight.shape
        self.dense, self.norm = nn.Linear(d_model, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(words))
        self.embeddings = embeddings

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Map states (..., d_model) to logits (..., words)."""
        table = self.embeddings.words.weight
        return self.norm(F.gelu(self.dense(states))) @ table.T + self.bias

    def flops(self, positions: int) -> int:
        """Count the operations for so many positions."""
        words, width = self.embeddings.words.weight.shape
        return 2 * positions * (self.dense.in_features * width + width * words)


class ReplacedHead(nn.Module):
    """One score for each position: large if the word was replaced."""

    def __init__(self, d_model: int):
        super().__init__()
        self.dense, self.score = nn.Linear(d_model, d_model), nn.Linear(d_model, 1)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Map states (..., d_model) to logits (...)."""
        return self.score(F.gelu(self.dense(states)))[..., 0]

    def flops(self, positions: int) -> int:
        """Count the operations for so many positions."""
        d_model = self.dense.in_features
        return 2 * positions * (d_model * d_model + d_model)
