"""Chapter 14: the assembled encoder with a classifier on top, against PyTorch's encoder."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch05_parts import draw_linear, draw_stack_weights
from autograder.exercises._ch05_stack import make_layer

# (d_model, heads, d_hidden, classes, vocabulary, longest): all different in each.
SIZES = ((6, 2, 9, 3, 8, 7), (6, 3, 10, 2, 9, 7), (8, 4, 10, 3, 7, 6))


def draw_tokens(rng: np.random.Generator, lengths: list[int], width: int, vocabulary: int):
    """Draw int64 tokens (batch, width) of these lengths, padded with 0 at the end."""
    tokens = rng.integers(1, vocabulary, size=(len(lengths), width))
    return np.where(np.arange(width) < np.array(lengths)[:, None], tokens, 0)


def encoder_classifier_cases(rng):
    """Unequal lengths, no padding at all, more padding than tokens."""

    def inputs(lengths, width):
        d_model, heads, d_hidden, classes, vocabulary, longest = SIZES[rng.integers(len(SIZES))]
        weights = {
            "embedding.weight": rng.normal(size=(vocabulary, d_model)),
            "positions.weight": rng.normal(size=(longest, d_model)),
            **draw_stack_weights(rng, 2, d_model, d_hidden, True),
        }
        weights["head.weight"], weights["head.bias"] = draw_linear(rng, d_model, classes)
        build = {
            "vocabulary": vocabulary,
            "longest": longest,
            "d_model": d_model,
            "heads": heads,
            "d_hidden": d_hidden,
            "layers": 2,
            "classes": classes,
        }
        tokens = draw_tokens(rng, list(rng.permutation(lengths)), width, vocabulary)
        return {"build": build, "weights": weights, "inputs": {"tokens": tokens}}

    yield Case("values", inputs([4, 4, 4], 4), "no padding")
    yield Case("values", inputs([2, 3, 5, 5], 5), "unequal lengths")
    yield Case("padding", inputs([1, 2], 5), "more padding than tokens")


class EncoderClassifierReference(nn.TransformerEncoder):
    """PyTorch's encoder, each sequence alone and cut to its length: there is no padding."""

    def __init__(self, vocabulary, longest, d_model, heads, d_hidden, layers, classes):
        layer = make_layer(d_model, heads, d_hidden, True)
        super().__init__(layer, layers, nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.embedding = nn.Embedding(vocabulary, d_model)
        self.positions = nn.Embedding(longest, d_model)
        self.head = nn.Linear(d_model, classes)

    def forward(self, tokens: torch.Tensor):
        """tokens: int64 (batch, length)."""
        rows = []
        for row in tokens:
            row = row[row != 0]
            x = self.embedding(row) + self.positions(torch.arange(len(row)))
            rows.append(self.head(super().forward(x[None])[0].mean(dim=0)))
        return torch.stack(rows)


class Classifier(nn.Module):
    """A right answer in small parts, which the wrong versions exchange one by one."""

    norm_first = True

    def __init__(self, vocabulary, longest, d_model, heads, d_hidden, layers, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d_model)
        self.positions = nn.Embedding(longest, d_model)
        made = (make_layer(d_model, heads, d_hidden, self.norm_first) for _ in range(layers))
        self.layers = nn.ModuleList(made)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, classes)

    def real(self, tokens):
        """Say where tokens are, (batch, length)."""
        return tokens != 0

    def places(self, tokens):
        """Give the vectors of the places, (length, d_model)."""
        return self.positions.weight[: tokens.shape[1]]

    def embed(self, tokens):
        """Give the layers' first input."""
        return self.embedding(tokens) + self.places(tokens)

    def ignored(self, real, layer):
        """Say which keys a layer must ignore."""
        return ~real

    def pool(self, x, real):
        """Give the mean over real tokens."""
        return (x * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)

    def finish(self, x, real):
        """Norm, mean, head."""
        return self.head(self.pool(self.norm(x), real))

    def forward(self, tokens: torch.Tensor):
        """tokens: int64 (batch, length)."""
        real = self.real(tokens)
        x = self.embed(tokens)
        for number, layer in enumerate(self.layers):
            x = layer(x, src_key_padding_mask=self.ignored(real, number))
        return self.finish(x, real)


class NoPositions(Classifier):
    """Adds no positions."""

    def places(self, tokens):
        return 0 * super().places(tokens)


class PositionsFromOne(Classifier):
    """The first token gets row 1."""

    def places(self, tokens):
        return self.positions.weight[1 : tokens.shape[1] + 1]


class PositionsBackwards(Classifier):
    """The last place gets row 0."""

    def places(self, tokens):
        return super().places(tokens).flip(0)


class FirstPositionOnly(Classifier):
    """Every token gets the same row."""

    def places(self, tokens):
        return self.positions.weight[:1]


class EmbeddingScaled(Classifier):
    """Multiplies embeddings by the root of the width."""

    def embed(self, tokens):
        width = self.embedding.embedding_dim
        return self.embedding(tokens) * width**0.5 + self.places(tokens)


class PaddingSeen(Classifier):
    """No mask."""

    def ignored(self, real, layer):
        return None


class MaskInverted(Classifier):
    """Hands over the course's mask, whose True means the opposite."""

    def ignored(self, real, layer):
        return real


class MaskInFirstLayerOnly(Classifier):
    """The second layer sees padding."""

    def ignored(self, real, layer):
        return ~real if layer == 0 else None


class MeanOverPadding(Classifier):
    """The mean runs over the padding's states too."""

    def pool(self, x, real):
        return x.mean(dim=1)


class MeanOverWidth(Classifier):
    """The sum over real tokens divided by the padded length."""

    def pool(self, x, real):
        return (x * real[..., None]).mean(dim=1)


class SumOverTokens(Classifier):
    """The sum is not divided."""

    def pool(self, x, real):
        return (x * real[..., None]).sum(dim=1)


class FirstToken(Classifier):
    """Takes the first token's state."""

    def pool(self, x, real):
        return x[:, 0]


class LastPlace(Classifier):
    """Takes the state at the last place, padding or not."""

    def pool(self, x, real):
        return x[:, -1]


class LargestFeatures(Classifier):
    """Takes the maximum over real tokens."""

    def pool(self, x, real):
        return x.masked_fill(~real[..., None], -torch.inf).amax(dim=1)


class NoFinalNorm(Classifier):
    """Leaves `norm` out."""

    def finish(self, x, real):
        return self.head(self.pool(x, real))


class NormAfterMean(Classifier):
    """Normalises the mean instead of the states."""

    def finish(self, x, real):
        return self.head(self.norm(self.pool(x, real)))


class PostNorm(Classifier):
    """Norms behind the residual links."""

    norm_first = False


class Probabilities(Classifier):
    """Gives probabilities."""

    def finish(self, x, real):
        return super().finish(x, real).softmax(dim=-1)


class ByCoreEncoder(nn.TransformerEncoder):
    """Right: PyTorch's encoder with the mask, for the whole batch."""

    def __init__(self, vocabulary, longest, d_model, heads, d_hidden, layers, classes):
        layer = make_layer(d_model, heads, d_hidden, True)
        super().__init__(layer, layers, nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.embedding = nn.Embedding(vocabulary, d_model, padding_idx=0)
        self.positions = nn.Embedding(longest, d_model)
        self.head = nn.Linear(d_model, classes)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.size(1)))
        padding = tokens.eq(0)
        states = super().forward(x, src_key_padding_mask=padding)
        states = states.masked_fill(padding.unsqueeze(-1), 0.0)
        return self.head(states.sum(1) / (~padding).sum(1, keepdim=True))


class OwnBlock(nn.Module):
    """A block of chapter 05 that takes a mask (True = may be seen)."""

    def __init__(self, d_model, heads, d_hidden):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, real):
        y = self.norm1(x)
        x = x + self.self_attn(y, y, y, key_padding_mask=~real, need_weights=False)[0]
        return x + self.linear2(nn.functional.gelu(self.linear1(self.norm2(x))))


class ByOwnBlocks(Classifier):
    """Right: blocks written by hand; the head at every token, then the mean of the logits."""

    def __init__(self, vocabulary, longest, d_model, heads, d_hidden, layers, classes):
        super().__init__(vocabulary, longest, d_model, heads, d_hidden, layers, classes)
        self.layers = nn.ModuleList(OwnBlock(d_model, heads, d_hidden) for _ in range(layers))

    def forward(self, tokens):
        real = tokens != 0
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, real)
        logits = self.head(self.norm(x))
        return torch.stack([row[keep].mean(0) for row, keep in zip(logits, real, strict=True)])


class ByPairMask(Classifier):
    """Right: minus infinity added to the scores of padded keys; the mean as a matrix product."""

    def ignored(self, real, layer):
        return torch.zeros(real.shape, dtype=torch.float64).masked_fill(~real, -torch.inf)

    def pool(self, x, real):
        weights = real / real.sum(dim=1, keepdim=True)
        return (weights.to(x.dtype)[:, None] @ x)[:, 0]


_MEAN = "By what is the sum over the tokens of a sequence of length 2 divided, and what is in it?"

ENCODER_CLASSIFIER = Exercise(
    id="encoder_classifier",
    title="The whole encoder",
    asks="Put together embeddings, positions, layers, norm, mean and head.",
    parameters=("build", "weights", "inputs"),
    outputs=("logits", "gradient of embedding.weight"),
    driver="module",
    seconds=10.0,
    groups={
        "values": Group(3, "batches with little padding"),
        "padding": Group(1, "more padding than tokens"),
    },
    cases=encoder_classifier_cases,
    reference=EncoderClassifierReference,
    tolerance=Tolerance(1e-6, 1e-7),  # `real.float()` in a mean is no mistake
    misconceptions=(
        Misconception(
            NoPositions,
            "No positions are added: the tokens have no order.",
            "Where in `forward` does `positions` come in?",
        ),
        Misconception(
            PositionsFromOne,
            "The first token gets row 1 of `positions`: rows count from 0.",
            "Print the numbers of the rows that you take.",
        ),
        Misconception(
            PositionsBackwards,
            "The places are counted from the end of the batch.",
            "Which row does the first token get?",
        ),
        Misconception(
            FirstPositionOnly,
            "Every token gets the same row of `positions`.",
            "Print the shape of what you add to the embeddings.",
        ),
        Misconception(
            EmbeddingScaled,
            "The embeddings are multiplied by the root of d_model; here they are not.",
            "Point 2 of the contract says what is added to what.",
        ),
        Misconception(
            PaddingSeen,
            "The layers see the padding: they get no mask.",
            "Change the row of `embedding` for token 0: do the logits change?",
        ),
        Misconception(
            MaskInverted,
            "The mask is the wrong way round: in `src_key_padding_mask` True means *ignore*.",
            "This course's True means “may be seen”. How do you turn one into the other?",
        ),
        Misconception(
            MaskInFirstLayerOnly,
            "Only the first layer gets the mask; padding has states in later layers too.",
            "Which layers attend?",
        ),
        Misconception(MeanOverPadding, "The mean runs over the padding, too.", _MEAN),
        Misconception(
            MeanOverWidth,
            "The sum is over real tokens, but it is divided by the padded length.",
            _MEAN,
        ),
        Misconception(SumOverTokens, "The states are summed; the mean is asked.", _MEAN),
        Misconception(
            FirstToken,
            "The head reads the first token's state; the mean is asked.",
            "Read point 4 of the contract again.",
        ),
        Misconception(
            LastPlace,
            "The head reads the state at the last place, often padding; the mean is asked.",
            "Read point 4 of the contract again.",
        ),
        Misconception(
            LargestFeatures,
            "The head reads the largest value of each feature; the mean is asked.",
            "Read point 4 of the contract again.",
        ),
        Misconception(
            NoFinalNorm,
            "The norm after the last layer is missing.",
            "In pre-LN nobody has normalised what the last layer adds.",
        ),
        Misconception(
            NormAfterMean,
            "The mean is normalised; the states should be, each by itself.",
            "Norm first, then the mean: the two do not commute.",
        ),
        Misconception(
            PostNorm,
            "The layers are post-LN; pre-LN is asked.",
            "Which argument of the layer decides where the norms stand?",
        ),
        Misconception(
            Probabilities,
            "The result has gone through a softmax; logits are asked.",
            "`F.cross_entropy` takes the softmax itself.",
        ),
    ),
    accepted=(ByCoreEncoder, ByOwnBlocks, ByPairMask),
)
