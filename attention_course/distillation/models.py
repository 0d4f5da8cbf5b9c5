"""Models of any size for a class for each word, and what can be read off them."""

from __future__ import annotations

import torch
from torch import nn

from attention_course.distillation.words import PADDING

LONGEST = 48


class WordModel(nn.Module):
    """Embeddings, PyTorch's encoder layers (pre-LN, no dropout), a norm and a linear head.

    `embedding`, `positions`, `layers`, `norm` and `head` are its parts.
    """

    def __init__(self, words: int, classes: int, d_model: int, heads: int, layers: int):
        super().__init__()
        self.embedding = nn.Embedding(words, d_model, padding_idx=PADDING)
        self.positions = nn.Embedding(LONGEST, d_model)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                d_model, heads, 4 * d_model, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, classes)
        nn.init.normal_(self.positions.weight, std=0.3)

    def states(self, words: torch.Tensor) -> list[torch.Tensor]:
        """Read int64 (batch, length).

        Gives the embedding's output and each layer's, each (batch, length, d_model).
        """
        hidden = words == PADDING
        x = self.embedding(words) + self.positions.weight[: words.shape[1]]
        found = [x]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=hidden)
            found.append(x)
        return found

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Read int64 (batch, length); gives logits (batch, length, classes)."""
        return self.head(self.norm(self.states(words)[-1]))


@torch.no_grad()
def attention_of(model: WordModel, words: torch.Tensor) -> torch.Tensor:
    """Attention weights of every layer for one sentence, int64 (length,).

    Returns (layers, heads, length, length).
    """
    found = []
    for layer, x in zip(model.layers, model.states(words[None]), strict=False):
        y = layer.norm1(x)
        found.append(layer.self_attn(y, y, y, average_attn_weights=False)[1][0])
    return torch.stack(found)


@torch.no_grad()
def logits_of(model: WordModel, words: torch.Tensor, size: int = 250) -> torch.Tensor:
    """Logits (sentences, longest, classes) of any number of sentences, in evaluation mode."""
    was_training = model.training
    model.eval()
    result = torch.cat([model(part) for part in words.split(size)])
    model.train(was_training)
    return result
