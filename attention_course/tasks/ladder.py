"""Claim: RNN, RNN with attention, self-attention, pre-trained encoder: each does better.

The published numbers are of sentence pairs (SNLI, half a million of them). Here the task is small:
the class of a noun from its definition, the same labelled texts for all four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.tasks.features import accuracy, words_of
from attention_course.tasks.minilm import MiniLM, minilm_tokenizer, tokenized
from attention_course.tasks.tuning import train_all

WIDTH = 64
Batch = tuple[Tensor, Tensor]  # ids and mask, both (texts, length)


def numbered(texts: Sequence[str], vocabulary: dict[str, int]) -> Batch:
    """Word numbers of texts (texts, longest), 0 for padding, and their mask."""
    rows = [torch.tensor([vocabulary.get(w, 1) for w in words_of(t)] or [1]) for t in texts]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return ids, ids != 0


class RNN(nn.Module):
    """An LSTM; its state after the last word goes to the classes."""

    def __init__(self, words: int, classes: int):
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH, padding_idx=0)
        self.rnn = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(WIDTH, classes)

    def states(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States after every word, and after the last one."""
        states, _ = self.rnn(self.dropout(self.embedding(ids)))
        return states, states[torch.arange(len(ids)), mask.sum(1) - 1]

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits (texts, classes)."""
        return self.out(self.dropout(self.states(ids, mask)[1]))


class AttentiveRNN(RNN):
    """The last state looks back at all states, and what it finds is added."""

    def __init__(self, words: int, classes: int):
        super().__init__(words, classes)
        self.keys = nn.Linear(WIDTH, WIDTH)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits (texts, classes)."""
        states, last = self.states(ids, mask)
        found = F.scaled_dot_product_attention(
            last[:, None], self.keys(states), states, attn_mask=mask[:, None]
        )
        return self.out(self.dropout(last + found[:, 0]))


class SelfAttention(nn.Module):
    """Two transformer layers; the mean over words goes to the classes."""

    def __init__(self, words: int, classes: int):
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH, padding_idx=0)
        self.places = nn.Embedding(64, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 2 * WIDTH, dropout=0.2, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False
        )
        self.out = nn.Linear(WIDTH, classes)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits (texts, classes)."""
        x = self.embedding(ids) + self.places.weight[: ids.shape[1]]
        hidden = self.encoder(x, src_key_padding_mask=~mask)
        return self.out((hidden * mask[..., None]).sum(1) / mask.sum(1)[:, None])


class PreTrained(nn.Module):
    """MiniLM; the mean over pieces goes to the classes. Its embeddings stay as they are."""

    def __init__(self, words: int, classes: int):
        super().__init__()
        self.encoder = MiniLM()
        for part in (self.encoder.words, self.encoder.places, self.encoder.norm):
            part.requires_grad_(False)
        self.out = nn.Linear(384, classes)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits (texts, classes)."""
        hidden = self.encoder(ids, mask)[-1]
        return self.out((hidden * mask[..., None]).sum(1) / mask.sum(1)[:, None])


# name: (model, passes over the data, learning rate)
RUNGS: dict[str, tuple[Callable[[int, int], nn.Module], int, float]] = {
    "RNN": (RNN, 20, 3e-3),
    "RNN and attention": (AttentiveRNN, 20, 3e-3),
    "self-attention": (SelfAttention, 20, 1e-3),
    "pre-trained": (PreTrained, 2, 1e-4),
}


def reader_of(rung: str, vocabulary: dict[str, int]) -> Callable[[Sequence[str]], Batch]:
    """How a rung turns texts into ids and a mask: word pieces for the pre-trained one."""
    if rung == "pre-trained":
        tokenizer = minilm_tokenizer()
        return lambda texts: tokenized(tokenizer, texts)
    return lambda texts: numbered(texts, vocabulary)


def predict(
    model: nn.Module, read: Callable[[Sequence[str]], Batch], texts: Sequence[str]
) -> Tensor:
    """Logits of many texts (texts, classes), computed a hundred at a time, without a gradient."""
    with torch.no_grad():
        parts = [model(*read(texts[low : low + 100])) for low in range(0, len(texts), 100)]
    return torch.cat(parts)


def climb(
    rung: str,
    train: Sequence[tuple[str, int]],
    test: Sequence[tuple[str, int]],
    vocabulary: dict[str, int],
    classes: int,
    seed: int,
    passes: int | None = None,
) -> float:
    """Train one of `RUNGS` on (text, class) pairs; give its accuracy on `test`."""
    make, usual, rate = RUNGS[rung]
    read = reader_of(rung, vocabulary)
    texts, labels = [text for text, _ in train], torch.tensor([label for _, label in train])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make(len(vocabulary) + 2, classes)

        def loss(rows: Tensor) -> Tensor:
            return F.cross_entropy(model(*read([texts[row] for row in rows])), labels[rows])

        lengths = [len(text.split()) for text in texts]
        train_all(model, rate, loss, lengths, passes or usual, seed)
    model.eval()
    logits = predict(model, read, [text for text, _ in test])
    return accuracy(logits, torch.tensor([label for _, label in test]))
