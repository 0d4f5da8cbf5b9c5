"""Exercises of chapter 10 on whole sentences: one vector, one class."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch10_parts import draw_padding

# --- sentence_vectors ----------------------------------------------------------------------------


def sentence_vectors_cases(rng):
    """Padding on the right, with large numbers in it; padding on the left; one sentence."""
    s = draw_sizes(rng, "batch", "length", "d_model", among=(3, 5, 6, 7))
    for group, batch, left, poison, about in (
        ("right", s.batch, False, 1.0, "padding on the right"),
        ("right", s.batch, False, 80.0, "large numbers in the padding"),
        ("left", s.batch, True, 20.0, "padding on the left"),
        ("left", 1, True, 1.0, "one sentence"),
    ):
        mask = draw_padding(rng, batch, s.length, left)
        hidden = rng.normal(size=(batch, s.length, s.d_model))
        hidden[~mask] *= poison
        yield Case(group, {"hidden": hidden, "mask": mask}, about)


def sentence_vectors_reference(hidden, mask):
    """Sentence by sentence."""
    rows = [vectors[seen] for vectors, seen in zip(hidden, mask, strict=True)]
    return torch.stack([row[0] for row in rows]), torch.stack([row.mean(0) for row in rows])


def _vectors(hidden, mask, first=None, mean=None):
    """Right vectors, with one of them exchanged."""
    right = sentence_vectors_reference(hidden, mask)
    return right[0] if first is None else first, right[1] if mean is None else mean


def padding_averaged(hidden, mask):
    """Averages over padding, too."""
    return _vectors(hidden, mask, mean=hidden.mean(dim=1))


def place_zero_taken(hidden, mask):
    """Takes place 0, which is padding in a row padded on the left."""
    return _vectors(hidden, mask, first=hidden[:, 0])


def divided_by_the_width(hidden, mask):
    """Sums over tokens, divides by the length of the padded row."""
    return _vectors(hidden, mask, mean=(hidden * mask[..., None]).mean(dim=1))


def padding_alone_averaged(hidden, mask):
    """Reads the mask the wrong way round."""
    padding = ~mask[..., None]
    return _vectors(hidden, mask, mean=(hidden * padding).sum(1) / padding.sum(1).clamp(min=1))


def divided_by_all_tokens(hidden, mask):
    """Divides by the number of tokens in the batch."""
    return _vectors(hidden, mask, mean=(hidden * mask[..., None]).sum(1) / mask.sum())


def last_token_taken(hidden, mask):
    """Takes the last token for the first."""
    rows = [vectors[seen][-1] for vectors, seen in zip(hidden, mask, strict=True)]
    return _vectors(hidden, mask, first=torch.stack(rows))


def first_token_left_out(hidden, mask):
    """Leaves [CLS] out of the mean."""
    rows = [vectors[seen] for vectors, seen in zip(hidden, mask, strict=True)]
    total = torch.stack([row.sum(0) - row[0] for row in rows])
    return _vectors(hidden, mask, mean=total / (mask.sum(1, keepdim=True) - 1).clamp(min=1))


def largest_taken(hidden, mask):
    """Takes the largest entry of each feature instead of the mean."""
    return _vectors(hidden, mask, mean=hidden.masked_fill(~mask[..., None], -torch.inf).amax(1))


def by_weights(hidden, mask):
    """Right: a product with weights that sum to 1, and with a one-hot row."""
    weights = mask / mask.sum(dim=1, keepdim=True)
    first = mask & (mask.cumsum(dim=1) == 1)
    pooled = torch.stack([first.to(hidden.dtype), weights.to(hidden.dtype)], dim=1) @ hidden
    return pooled[:, 0], pooled[:, 1]


def by_filling(hidden, mask):
    """Right: fills padding with zeros; gather picks the first."""
    places = mask.int().argmax(dim=1)[:, None, None].expand(-1, 1, hidden.shape[-1])
    kept = hidden.masked_fill(~mask.unsqueeze(-1), 0.0)
    return hidden.gather(1, places).squeeze(1), kept.sum(dim=1) / mask.sum(dim=1).unsqueeze(-1)


def by_einsum(hidden, mask):
    """Right: einsum for the sums."""
    count = mask.sum(dim=-1).double()
    mean = torch.einsum("bld,bl->bd", hidden, mask.to(hidden.dtype)) / count[:, None]
    return hidden[mask & (mask.cumsum(1) == 1)], mean


SENTENCE_VECTORS = Exercise(
    id="sentence_vectors",
    title="One vector for a sentence",
    asks="Give the vector of each sentence's first token, and the mean over its tokens.",
    parameters=("hidden", "mask"),
    outputs=("first", "mean"),
    driver="tensor_function",
    groups={
        "right": Group(2, "padding on the right"),
        "left": Group(1, "padding on the left"),
    },
    cases=sentence_vectors_cases,
    reference=sentence_vectors_reference,
    misconceptions=(
        Misconception(
            padding_averaged,
            "The mean runs over padding, too: the same sentence gets another vector in a longer "
            "batch.",
            "Which of the vectors belong to tokens?",
        ),
        Misconception(
            place_zero_taken,
            "Place 0 is taken, but in a row padded on the left padding stands there.",
            "Where is the first True of each row of `mask`?",
        ),
        Misconception(
            divided_by_the_width,
            "Padding adds nothing to the sum, yet it counts when you divide.",
            "By how many vectors must each sentence's sum be divided?",
        ),
        Misconception(
            padding_alone_averaged,
            "The mask is read the wrong way round: True means that a token is there.",
            "What does `mask` say about the first token of a sentence?",
        ),
        Misconception(
            divided_by_all_tokens,
            "Every sum is divided by the number of tokens of the whole batch.",
            "Which axis should the count of tokens keep?",
        ),
        Misconception(
            last_token_taken,
            "`first` holds the last token of each sentence.",
            "Which token is [CLS]?",
        ),
        Misconception(
            first_token_left_out,
            "The first token is left out of the mean; by the contract it counts like any other.",
            "Over which tokens does point 3 average?",
        ),
        Misconception(
            largest_taken,
            "The largest entry of each feature is taken: that is max pooling.",
            "What does point 3 ask for?",
        ),
    ),
    accepted=(by_weights, by_filling, by_einsum),
)

# --- sentence_classifier -------------------------------------------------------------------------

SHAPES = (("dense", "d_model", "d_model"), ("out", "classes", "d_model"))


def sentence_classifier_cases(rng):
    """Both poolings; large numbers in the padding."""
    for group, pooling, poison, about in (
        ("first", "first", 1.0, "from the first token"),
        ("mean", "mean", 1.0, "from the mean"),
        ("mean", "mean", 60.0, "from the mean, large numbers in the padding"),
    ):
        s = draw_sizes(rng, "batch", "length", "d_model", "classes", among=(2, 3, 5, 6, 7))
        mask = draw_padding(rng, s.batch, s.length)
        hidden = rng.normal(size=(s.batch, s.length, s.d_model))
        hidden[~mask] *= poison
        weights = {}
        for name, rows, columns in SHAPES:
            rows, columns = getattr(s, rows), getattr(s, columns)
            weights[f"{name}.weight"] = rng.normal(size=(rows, columns)) / np.sqrt(columns / 2)
            weights[f"{name}.bias"] = rng.normal(size=rows)
        inputs = {
            "build": {"d_model": s.d_model, "classes": s.classes, "pooling": pooling},
            "weights": weights,
            "inputs": {"hidden": hidden, "mask": mask},
            "upstream": rng.normal(size=(s.batch, s.classes)),
        }
        yield Case(group, inputs, about)


class _Head(nn.Module):
    """The right head, in parts that wrong ones exchange."""

    def __init__(self, d_model, classes, pooling):
        super().__init__()
        self.pooling = pooling
        self.dense = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, classes)

    def pooled(self, hidden, mask):
        return sentence_vectors_reference(hidden, mask)[self.pooling == "mean"]

    def forward(self, hidden, mask):
        return self.out(torch.tanh(self.dense(self.pooled(hidden, mask))))


class WithoutTanh(_Head):
    """Two linear maps in a row."""

    def forward(self, hidden, mask):
        return self.out(self.dense(self.pooled(hidden, mask)))


class WithReLU(_Head):
    """ReLU for tanh."""

    def forward(self, hidden, mask):
        return self.out(torch.relu(self.dense(self.pooled(hidden, mask))))


class TanhAtTheEnd(_Head):
    """Squashes the logits as well."""

    def forward(self, hidden, mask):
        return torch.tanh(super().forward(hidden, mask))


class SoftmaxAtTheEnd(_Head):
    """Gives probabilities."""

    def forward(self, hidden, mask):
        return super().forward(hidden, mask).softmax(dim=-1)


class DenseLeftOut(_Head):
    """Does not use the first linear map."""

    def forward(self, hidden, mask):
        return self.out(torch.tanh(self.pooled(hidden, mask)))


class PaddingAveraged(_Head):
    """Averages over padding."""

    def pooled(self, hidden, mask):
        return super().pooled(hidden, mask if self.pooling == "first" else torch.ones_like(mask))


class AlwaysFirst(_Head):
    """Ignores `pooling`."""

    def pooled(self, hidden, mask):
        return hidden[:, 0]


class PooledLate(_Head):
    """Averages after dense and tanh."""

    def forward(self, hidden, mask):
        return self.out(self.pooled(torch.tanh(self.dense(hidden)), mask))


class FeaturesDetached(_Head):
    """Cuts the gradient off: the encoder would learn nothing."""

    def forward(self, hidden, mask):
        return super().forward(hidden.detach(), mask)


class WithFunctional(_Head):
    """Right: F.linear and a masked sum."""

    def forward(self, hidden, mask):
        if self.pooling == "mean":
            kept = torch.where(mask[..., None], hidden, 0.0)
            vectors = kept.sum(1) / mask.sum(1)[:, None]
        else:
            vectors = hidden[:, 0, :]
        vectors = F.tanh(F.linear(vectors, self.dense.weight, self.dense.bias))
        return F.linear(vectors, self.out.weight, self.out.bias)


class WithSequential(nn.Module):
    """Right: pools with a product, the rest in one expression."""

    def __init__(self, d_model, classes, pooling):
        super().__init__()
        self.dense, self.out = nn.Linear(d_model, d_model), nn.Linear(d_model, classes)
        self.mean = pooling == "mean"

    def forward(self, hidden, mask):
        weights = mask.double()
        if not self.mean:
            weights[:, 1:] = 0
        weights = weights / weights.sum(-1, keepdim=True)
        return self.out(self.dense(torch.bmm(weights[:, None], hidden)[:, 0]).tanh())


class WithMatrices(_Head):
    """Right: products with transposed matrices."""

    def forward(self, hidden, mask):
        inner = (self.pooled(hidden, mask) @ self.dense.weight.T + self.dense.bias).tanh()
        return inner @ self.out.weight.T + self.out.bias


SENTENCE_CLASSIFIER = Exercise(
    id="sentence_classifier",
    title="A head for sentences",
    asks="Pool an encoder's output, then dense, tanh, out: logits of classes.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=("logits", "gradient of hidden"),
    driver="module",
    seconds=5.0,
    groups={
        "first": Group(2, "from the first token"),
        "mean": Group(1, "from the mean over tokens"),
    },
    cases=sentence_classifier_cases,
    reference=_Head,
    misconceptions=(
        Misconception(
            WithoutTanh,
            "There is no tanh between the two linear maps: together they are only one.",
            "What stands between `dense` and `out` in point 2?",
        ),
        Misconception(
            WithReLU,
            "ReLU stands where the contract has tanh.",
            "Which values can come out of your non-linearity?",
        ),
        Misconception(
            TanhAtTheEnd,
            "The logits went through a tanh: none can be larger than 1.",
            "Is the last map of point 2 a linear one?",
        ),
        Misconception(
            SoftmaxAtTheEnd,
            "These are probabilities; logits are asked for, the loss takes the softmax itself.",
            "Do your rows sum to 1? Should they?",
        ),
        Misconception(
            DenseLeftOut,
            "`dense` is not used.",
            "How many linear maps does a vector go through in point 2?",
        ),
        Misconception(
            PaddingAveraged,
            "The mean runs over padding, too.",
            "Where does `mask` enter your forward pass?",
        ),
        Misconception(
            AlwaysFirst,
            'The first token is taken even when `pooling` is "mean".',
            "Where does your code look at `pooling`?",
        ),
        Misconception(
            PooledLate,
            "The mean is taken after dense and tanh; by the contract pooling comes first.",
            "Which shape should `dense` get?",
        ),
        Misconception(
            FeaturesDetached,
            "No gradient reaches the encoder's output: the encoder could not be fine-tuned.",
            "Is there a `detach`, a `no_grad` or a `.data` in your forward pass?",
        ),
    ),
    accepted=(WithFunctional, WithSequential, WithMatrices),
)
