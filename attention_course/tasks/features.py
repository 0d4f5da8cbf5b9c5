"""Texts as fixed vectors, and a linear classifier on top: the baselines of chapter 10."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

WORD = re.compile(r"[a-z]+|[0-9]")


def words_of(text: str) -> list[str]:
    """Words of a text in small letters, and single digits."""
    return WORD.findall(text.lower())


def vocabulary_of(texts: Sequence[str], least: int = 2) -> dict[str, int]:
    """Number the words that come at least `least` times, from 2 on: 0 is padding, 1 unknown."""
    counts = Counter(word for text in texts for word in words_of(text))
    known = sorted(word for word, count in counts.items() if count >= least)
    return {word: number for number, word in enumerate(known, 2)}


def tf_idf(texts: Sequence[str], vocabulary: dict[str, int], train: Sequence[str]) -> Tensor:
    """Bags of words, rare words weighing more: float32 (texts, words), rows of length 1.

    A word's weight is its count times log(1 + texts / texts that hold it), texts of `train`.
    """
    found = Counter(word for text in train for word in set(words_of(text)))
    weights = torch.zeros(len(vocabulary) + 2)
    for word, number in vocabulary.items():
        weights[number] = torch.log1p(torch.tensor(len(train) / max(found[word], 1)))
    bags = torch.zeros(len(texts), len(weights))
    for row, text in zip(bags, texts, strict=True):
        for word in words_of(text):
            row[vocabulary.get(word, 1)] += 1
    return F.normalize(bags * weights, dim=1)


def fit_linear(features: Tensor, labels: Tensor, classes: int, decay: float = 1e-4) -> Tensor:
    """Fit logistic regression by L-BFGS; give its weights (features + 1, classes), bias last.

    features: float32 (texts, features). labels: int64 (texts). `decay` times the squared weights
    is added to the mean loss.
    """
    weights = torch.zeros(features.shape[1] + 1, classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(scores_of(features, weights), labels)
        loss = loss + decay * weights[:-1].square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weights.detach()


def scores_of(features: Tensor, weights: Tensor) -> Tensor:
    """Logits (texts, classes) of `fit_linear`'s weights."""
    return features @ weights[:-1] + weights[-1]


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """Share of texts whose largest logit is that of their label."""
    return (logits.argmax(-1) == labels).double().mean().item()
