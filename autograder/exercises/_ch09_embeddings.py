"""Chapter 09: token, position and segment embeddings, added and normalised."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_parts import EPSILON, draw, draw_weights, embedding_shapes


def bert_embeddings_cases(rng):
    """Batches with both segments; rows of tiny variance; a single token."""

    def case(group, about, size=1.0, single=False):
        s = draw_sizes(rng, "batch", "length", among=(2, 3, 4))
        batch, length = (2, 1) if single else (s.batch, s.length)
        d_model = int(rng.integers(4, 6))
        build = {"vocabulary": 9, "positions": 7, "segments": 2, "d_model": d_model}
        segments = rng.integers(0, 2, size=(batch, length))
        segments[0], segments[-1, -1] = 0, 1
        inputs = {"tokens": rng.integers(0, 9, size=(batch, length)), "segments": segments}
        weights = draw_weights(rng, embedding_shapes(**build), size)
        weights["word_embeddings.weight"] += 0.4 * size
        upstream = draw(rng, (batch, length, d_model))
        given = {"build": build, "weights": weights, "inputs": inputs, "upstream": upstream}
        return Case(group, given, about)

    yield case("values", "a batch")
    yield case("small", "embeddings of a thousandth", size=1e-3)
    yield case("small", "one token", single=True)


class _Tables(nn.Module):
    """The parameters that the exercise names; the wrong versions are made of `mixed`."""

    epsilon = EPSILON

    def __init__(self, vocabulary, positions, segments, d_model):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, d_model)
        self.position_embeddings = nn.Embedding(positions, d_model)
        self.token_type_embeddings = nn.Embedding(segments, d_model)
        self.LayerNorm = nn.LayerNorm(d_model, eps=self.epsilon)

    def parts(self, tokens, segments):
        """Embeddings of words, positions and segments."""
        places = torch.arange(tokens.shape[1])
        return (
            self.word_embeddings(tokens),
            self.position_embeddings(places),
            self.token_type_embeddings(segments),
        )

    def mixed(self, words, places, segments):
        """What comes out."""
        return self.LayerNorm(words + places + segments)

    def forward(self, tokens, segments):
        """Give vectors (batch, length, d_model)."""
        return self.mixed(*self.parts(tokens, segments))


class BertEmbeddingsReference(_Tables):
    """Products with one-hot vectors, the norm by its formula."""

    def forward(self, tokens, segments):
        """Give vectors (batch, length, d_model)."""
        x = 0.0
        places = torch.arange(tokens.shape[1]).expand_as(tokens)
        for table, numbers in (
            (self.word_embeddings, tokens),
            (self.position_embeddings, places),
            (self.token_type_embeddings, segments),
        ):
            x = x + F.one_hot(numbers, len(table.weight)).double() @ table.weight
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred**2).mean(-1, keepdim=True)
        return (
            centred / torch.sqrt(variance + EPSILON) * self.LayerNorm.weight + self.LayerNorm.bias
        )


class WithoutSegments(_Tables):
    """Forgets the segments."""

    def mixed(self, words, places, segments):
        return self.LayerNorm(words + places)


class WithoutPositions(_Tables):
    """Forgets the positions."""

    def mixed(self, words, places, segments):
        return self.LayerNorm(words + segments)


class WithoutNorm(_Tables):
    """Forgets the LayerNorm."""

    def mixed(self, words, places, segments):
        return words + places + segments


class NormBeforeAdding(_Tables):
    """Normalises the words and adds the rest afterwards."""

    def mixed(self, words, places, segments):
        return self.LayerNorm(words) + places + segments


class WordsScaled(_Tables):
    """Multiplies the word embeddings by √d_model, as the first transformer did."""

    def mixed(self, words, places, segments):
        return self.LayerNorm(words * words.shape[-1] ** 0.5 + places + segments)


class PositionsFromOne(_Tables):
    """The first position is 1."""

    def parts(self, tokens, segments):
        words, _, kinds = super().parts(tokens, segments)
        return words, self.position_embeddings(torch.arange(tokens.shape[1]) + 1), kinds


class PositionsAlongTheBatch(_Tables):
    """Counts rows of the batch instead of places in the sentence."""

    def parts(self, tokens, segments):
        words, _, kinds = super().parts(tokens, segments)
        return words, self.position_embeddings(torch.arange(len(tokens)))[:, None], kinds


class OnePositionForAll(_Tables):
    """Looks up position 0 for every token."""

    def parts(self, tokens, segments):
        words, _, kinds = super().parts(tokens, segments)
        return words, self.position_embeddings(torch.zeros_like(tokens)), kinds


class UsualEpsilon(_Tables):
    """Leaves `nn.LayerNorm` its default epsilon."""

    epsilon = 1e-5


class NormOverTheSentence(_Tables):
    """One mean and one variance for all tokens of a sentence."""

    def mixed(self, words, places, segments):
        x = words + places + segments
        variance, mean = torch.var_mean(x, dim=(1, 2), correction=0, keepdim=True)
        normed = (x - mean) / torch.sqrt(variance + EPSILON)
        return normed * self.LayerNorm.weight + self.LayerNorm.bias


class PositionsFixed(_Tables):
    """Positions do not learn."""

    def mixed(self, words, places, segments):
        return self.LayerNorm(words + places.detach() + segments)


class FirstSegmentForAll(_Tables):
    """Every token gets segment 0."""

    def parts(self, tokens, segments):
        return super().parts(tokens, torch.zeros_like(segments))


class ByIndexing(_Tables):
    """Right: indexes the tables, slices the positions."""

    def forward(self, tokens, segments):
        x = self.word_embeddings.weight[tokens]
        x = x + self.position_embeddings.weight[: tokens.shape[1]]
        x = x + self.token_type_embeddings.weight[segments]
        return F.layer_norm(x, x.shape[-1:], self.LayerNorm.weight, self.LayerNorm.bias, EPSILON)


class ByFunctions(_Tables):
    """Right: `F.embedding`, positions of the batch's shape, a stack that is summed."""

    def forward(self, tokens, segments):
        places = torch.cumsum(torch.ones_like(tokens), dim=1) - 1
        parts = [
            F.embedding(tokens, self.word_embeddings.weight),
            F.embedding(places, self.position_embeddings.weight),
            F.embedding(segments, self.token_type_embeddings.weight),
        ]
        return self.LayerNorm(torch.stack(parts).sum(dim=0))


class WithABuffer(_Tables):
    """Right: positions as a buffer, and a dropout of 0."""

    def __init__(self, vocabulary, positions, segments, d_model):
        super().__init__(vocabulary, positions, segments, d_model)
        self.register_buffer("position_ids", torch.arange(positions)[None])
        self.dropout = nn.Dropout(0.0)

    def forward(self, tokens, segments):
        places = self.position_embeddings(self.position_ids[:, : tokens.shape[1]])
        x = self.word_embeddings(tokens) + self.token_type_embeddings(segments) + places
        return self.dropout(self.LayerNorm(x))


BERT_EMBEDDINGS = Exercise(
    id="bert_embeddings",
    title="What goes into BERT",
    asks="Add token, position and segment embeddings, then normalise.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=(
        "result",
        "number of parameters",
        "gradient of position_embeddings.weight",
    ),
    driver="module",
    groups={
        "values": Group(2, "batches with both segments"),
        "small": Group(1, "small embeddings, one token"),
    },
    cases=bert_embeddings_cases,
    reference=BertEmbeddingsReference,
    misconceptions=(
        Misconception(
            WithoutSegments,
            "The segment embeddings are missing.",
            "How many tables are added?",
        ),
        Misconception(
            WithoutPositions,
            "The position embeddings are missing: the model would read a bag of words.",
            "How many tables are added?",
        ),
        Misconception(
            WithoutNorm,
            "The sum is not normalised.",
            "Where does `LayerNorm` come in?",
        ),
        Misconception(
            NormBeforeAdding,
            "Only the words were normalised; the rest was added afterwards.",
            "Add first, normalise once.",
        ),
        Misconception(
            WordsScaled,
            "The word embeddings were multiplied by √d_model; BERT does not do that.",
            "Which numbers does the exercise add?",
        ),
        Misconception(
            PositionsFromOne,
            "The positions start at 1.",
            "Which row of the position table belongs to [CLS]?",
        ),
        Misconception(
            PositionsAlongTheBatch,
            "The positions count sentences of the batch instead of tokens of a sentence.",
            "Which axis of `tokens` is the length?",
        ),
        Misconception(
            OnePositionForAll,
            "Every token has position 0.",
            "Print the positions that you look up.",
        ),
        Misconception(
            UsualEpsilon,
            "The LayerNorm has PyTorch's epsilon of 1e-5; BERT's is smaller.",
            "Read point 1 of the exercise again.",
        ),
        Misconception(
            NormOverTheSentence,
            "The norm runs over all tokens of a sentence at once.",
            "Each token is normalised by itself.",
        ),
        Misconception(
            PositionsFixed,
            "The position table gets no gradient, so it would never learn.",
            "Look for `detach`, `.data` or `no_grad`.",
        ),
        Misconception(
            FirstSegmentForAll,
            "Every token has segment 0, whatever `segments` says.",
            "Where does the argument `segments` enter?",
        ),
    ),
    accepted=(ByIndexing, ByFunctions, WithABuffer),
)
