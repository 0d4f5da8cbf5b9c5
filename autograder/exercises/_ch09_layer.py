"""Chapter 09: one layer of BERT, with the parameter names of Hugging Face's."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_parts import (
    EPSILON,
    draw,
    draw_padding_mask,
    draw_weights,
    layer_shapes,
)

SAME_EXCHANGE = "two axes are exchanged, in whatever order they are named"


def bert_layer_cases(rng):
    """All tokens visible; padding of unequal length; tiny vectors; one token."""

    def case(group, about, batch, length, heads, width, size=1.0, padded=False):
        d_model, d_hidden = heads * width, 5
        weights = draw_weights(rng, layer_shapes(d_model, d_hidden), size)
        x = draw(rng, (batch, length, d_model)) * size
        mask = np.ones((batch, length), dtype=bool)
        if padded:
            mask = draw_padding_mask(rng, batch, length)
        x[~mask] *= 3.0
        return Case(
            group,
            {
                "build": {"d_model": d_model, "heads": heads, "d_hidden": d_hidden},
                "weights": weights,
                "inputs": {"x": x, "mask": mask},
                "upstream": draw(rng, x.shape) * mask[..., None],
            },
            about,
        )

    yield case("values", "no padding", 2, 3, 3, 2)
    yield case("padding", "sentences of unequal lengths", 3, 4, 2, 2, padded=True)
    yield case("small", "vectors and weights of a thousandth", 1, 3, 2, 2, size=1e-3)
    yield case("small", "one token", 2, 1, 2, 2)


def plain_layer(x, mask, weights, heads):
    """One layer in formulas, head by head: the reference, from a dict of tensors."""

    def linear(name, vectors):
        return (
            torch.einsum("oi,bli->blo", weights[f"{name}.weight"], vectors)
            + weights[f"{name}.bias"]
        )

    def norm(name, vectors):
        centred = vectors - vectors.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + EPSILON).sqrt()
        return centred / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    queries, keys, values = (
        linear(f"attention.self.{name}", x) for name in ("query", "key", "value")
    )
    width, outputs = x.shape[-1] // heads, []
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        scores = torch.einsum("bqd,bkd->bqk", queries[..., part], keys[..., part])
        scores = scores / math.sqrt(width)
        scores = scores.masked_fill(~mask[:, None, :], -math.inf)
        outputs.append(torch.einsum("bqk,bkd->bqd", scores.softmax(-1), values[..., part]))
    attended = linear("attention.output.dense", torch.cat(outputs, dim=-1))
    x = norm("attention.output.LayerNorm", x + attended)
    inner = linear("intermediate.dense", x)
    inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    return norm("output.LayerNorm", x + linear("output.dense", inner))


class _Names(nn.Module):
    """The parameters that the notebook's cell sets up."""

    epsilon = EPSILON

    def __init__(self, d_model, heads, d_hidden):
        super().__init__()
        self.heads = heads
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict(
                    {name: nn.Linear(d_model, d_model) for name in ("query", "key", "value")}
                ),
                "output": nn.ModuleDict(
                    {
                        "dense": nn.Linear(d_model, d_model),
                        "LayerNorm": nn.LayerNorm(d_model, eps=self.epsilon),
                    }
                ),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(d_model, d_hidden)})
        self.output = nn.ModuleDict(
            {
                "dense": nn.Linear(d_hidden, d_model),
                "LayerNorm": nn.LayerNorm(d_model, eps=self.epsilon),
            }
        )


class BertLayerReference(_Names):
    """The formulas."""

    def forward(self, x, mask):
        """Give vectors (batch, length, d_model)."""
        return plain_layer(x, mask, dict(self.named_parameters()), self.heads)


class Layer(_Names):
    """Right, in small parts that the wrong versions exchange."""

    def split(self, vectors):
        """(batch, length, d_model) → (batch, heads, length, width)."""
        return vectors.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def roles(self, x):
        """Queries, keys and values."""
        own = self.attention["self"]
        return own["query"](x), own["key"](x), own["value"](x)

    def scale(self, d_model):
        """What scores are divided by."""
        return math.sqrt(d_model // self.heads)

    def hide(self, scores, mask):
        """Scores with hidden keys."""
        return scores.masked_fill(~mask[:, None, None, :], -1e30)

    def weigh(self, scores):
        """Weights."""
        return scores.softmax(-1)

    def project(self, vectors):
        """The output projection."""
        return self.attention["output"]["dense"](vectors)

    def attend(self, x, mask):
        """Self-attention."""
        queries, keys, values = map(self.split, self.roles(x))
        scores = queries @ keys.mT / self.scale(x.shape[-1])
        outputs = self.weigh(self.hide(scores, mask)) @ values
        return self.project(outputs.transpose(1, 2).flatten(2))

    def bend(self, inner):
        """The activation."""
        return F.gelu(inner)

    def mlp(self, x):
        """Widen, bend, narrow."""
        return self.output["dense"](self.bend(self.intermediate["dense"](x)))

    def norm_1(self, x):
        """After the attention."""
        return self.attention["output"]["LayerNorm"](x)

    def norm_2(self, x):
        """After the MLP."""
        return self.output["LayerNorm"](x)

    def forward(self, x, mask):
        """Give vectors (batch, length, d_model)."""
        x = self.norm_1(x + self.attend(x, mask))
        return self.norm_2(x + self.mlp(x))


class NormFirst(Layer):
    """Pre-LN."""

    def forward(self, x, mask):
        x = x + self.attend(self.norm_1(x), mask)
        return x + self.mlp(self.norm_2(x))


class PaddingSeen(Layer):
    """No mask."""

    def hide(self, scores, mask):
        return scores


class TokensHidden(Layer):
    """The mask the wrong way round."""

    def hide(self, scores, mask):
        return scores.masked_fill(mask[:, None, None, :], -1e30)


class QueriesMasked(Layer):
    """The mask along the queries."""

    def hide(self, scores, mask):
        return scores.masked_fill(~mask[:, None, :, None], -1e30)


class MaskAdded(Layer):
    """Adds 1 for a token and 0 for padding."""

    def hide(self, scores, mask):
        return scores + mask[:, None, None, :]


class HiddenScoresZero(Layer):
    """Multiplies scores by the mask."""

    def hide(self, scores, mask):
        return scores * mask[:, None, None, :]


class ScaledByTheWholeWidth(Layer):
    """Divides by √d_model."""

    def scale(self, d_model):
        return math.sqrt(d_model)


class NotScaled(Layer):
    """Divides by nothing."""

    def scale(self, d_model):
        return 1.0


class SoftmaxOverQueries(Layer):
    """The softmax runs over queries."""

    def weigh(self, scores):
        return scores.softmax(-2)


class HeadsByReshape(Layer):
    """Splits heads by a reshape alone."""

    def split(self, vectors):
        batch, length, d_model = vectors.shape
        return vectors.reshape(batch, self.heads, length, d_model // self.heads)


class QueriesAndKeysExchanged(Layer):
    """Takes the one for the other."""

    def roles(self, x):
        queries, keys, values = super().roles(x)
        return keys, queries, values


class ValuesAreKeys(Layer):
    """Mixes keys instead of values."""

    def roles(self, x):
        queries, keys, _ = super().roles(x)
        return queries, keys, keys


class NoOutputProjection(Layer):
    """Forgets `attention.output.dense`."""

    def project(self, vectors):
        return vectors


class WithRelu(Layer):
    """ReLU."""

    def bend(self, inner):
        return inner.relu()


class WithTanhGelu(Layer):
    """The approximation of GELU."""

    def bend(self, inner):
        return F.gelu(inner, approximate="tanh")


class NoFirstLink(Layer):
    """No residual link around the attention."""

    def forward(self, x, mask):
        x = self.norm_1(self.attend(x, mask))
        return self.norm_2(x + self.mlp(x))


class NoSecondLink(Layer):
    """No residual link around the MLP."""

    def forward(self, x, mask):
        return self.norm_2(self.mlp(self.norm_1(x + self.attend(x, mask))))


class SecondLinkFromTheInput(Layer):
    """The second link starts at the layer's input."""

    def forward(self, x, mask):
        return self.norm_2(x + self.mlp(self.norm_1(x + self.attend(x, mask))))


class NormsExchanged(Layer):
    """Takes the one LayerNorm for the other."""

    def forward(self, x, mask):
        x = self.norm_2(x + self.attend(x, mask))
        return self.norm_1(x + self.mlp(x))


class ThroughLibraryAttention(_Names):
    """Right: PyTorch's scaled dot-product attention."""

    def forward(self, x, mask):
        own, after = self.attention["self"], self.attention["output"]
        roles = [
            own[name](x).reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        ]
        y = F.scaled_dot_product_attention(*roles, attn_mask=mask[:, None, None])
        x = after["LayerNorm"](after["dense"](y.transpose(1, 2).reshape(x.shape)) + x)
        inner = nn.functional.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](self.output["dense"](inner) + x)


class HeadByHead(_Names):
    """Right: a loop over heads, a mask that is added."""

    def forward(self, x, mask):
        own, outputs = self.attention["self"], []
        closed = torch.where(mask, 0.0, -1e9)[:, None, :]
        parts = [own[name](x).chunk(self.heads, dim=-1) for name in ("query", "key", "value")]
        for query, key, value in zip(*parts, strict=True):
            scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
            outputs.append(torch.softmax(scores + closed, dim=-1) @ value)
        y = self.attention["output"]["dense"](torch.cat(outputs, -1))
        x = self.attention["output"]["LayerNorm"](x + y)
        y = self.output["dense"](nn.GELU()(self.intermediate["dense"](x)))
        return self.output["LayerNorm"](x + y)


class MaskedAfterwards(Layer):
    """Right: hides weights after the softmax and makes the rest sum to 1 again."""

    def attend(self, x, mask):
        queries, keys, values = map(self.split, self.roles(x))
        weights = torch.softmax(queries @ keys.mT / self.scale(x.shape[-1]), -1)
        weights = weights * mask[:, None, None]
        weights = weights / weights.sum(-1, keepdim=True)
        return self.project((weights @ values).transpose(1, 2).flatten(2))


BERT_LAYER = Exercise(
    id="bert_layer",
    title="One layer of BERT",
    asks="Run self-attention and MLP, each with a residual link and a LayerNorm after it.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=("result", "gradient of x"),
    driver="module",
    seconds=5.0,
    groups={
        "values": Group(2, "no padding"),
        "padding": Group(1, "sentences of unequal lengths"),
        "small": Group(1, "tiny vectors, one token"),
    },
    cases=bert_layer_cases,
    reference=BertLayerReference,
    misconceptions=(
        Misconception(
            NormFirst,
            "The norms come before the sublayers (pre-LN); BERT has them behind the links.",
            "What exactly goes into each LayerNorm?",
        ),
        Misconception(
            PaddingSeen,
            "Padding can be seen.",
            "Where does `mask` enter your scores?",
        ),
        Misconception(
            TokensHidden,
            "The mask is the wrong way round: tokens are hidden and padding is seen.",
            "True means: may be seen.",
        ),
        Misconception(
            QueriesMasked,
            "The mask lies along the queries instead of the keys.",
            "Who must not be looked at? Which axis of the scores is that?",
        ),
        Misconception(
            MaskAdded,
            "The mask was added as 0 and 1: hidden keys only lose a factor e.",
            "Which score gives the weight 0 after a softmax?",
        ),
        Misconception(
            HiddenScoresZero,
            "Hidden scores are 0, and a score of 0 still gets weight.",
            "Which score gives the weight 0 after a softmax?",
        ),
        Misconception(
            ScaledByTheWholeWidth,
            "The scores are divided by √d_model; one head is narrower.",
            "How many numbers are multiplied and summed for one score?",
        ),
        Misconception(
            NotScaled,
            "The scores are not scaled.",
            "What does the formula of attention divide by?",
        ),
        Misconception(
            SoftmaxOverQueries,
            "The softmax runs over the queries.",
            "Over which axis must the weights sum to 1?",
        ),
        Misconception(
            HeadsByReshape,
            "The heads were split by a reshape to (batch, heads, length, width): tokens get mixed.",
            "Split the last axis first, then move the heads.",
        ),
        Misconception(
            QueriesAndKeysExchanged,
            "Queries and keys are exchanged.",
            "Which of the two belongs to the rows of the scores?",
        ),
        Misconception(
            ValuesAreKeys,
            "The keys are mixed instead of the values.",
            "Is `attention.self.value` used anywhere?",
        ),
        Misconception(
            NoOutputProjection,
            "`attention.output.dense` is not used.",
            "What happens to the heads after they have been put together?",
        ),
        Misconception(
            WithRelu,
            "The activation is ReLU; BERT's is GELU.",
            "Read the point on the MLP again.",
        ),
        Misconception(
            WithTanhGelu,
            "This is the tanh approximation of GELU.",
            "Which GELU does PyTorch give without options?",
        ),
        Misconception(
            NoFirstLink,
            "The link around the attention is missing.",
            "What is added to the output of the attention?",
        ),
        Misconception(
            NoSecondLink,
            "The link around the MLP is missing.",
            "What is added to the output of the MLP?",
        ),
        Misconception(
            SecondLinkFromTheInput,
            "The second link starts at the layer's input; it starts behind the first LayerNorm.",
            "Which vectors go into the MLP?",
        ),
        Misconception(
            NormsExchanged,
            "The two LayerNorms are exchanged.",
            "One belongs to `attention.output`, the other to `output`.",
        ),
    ),
    accepted=(ThroughLibraryAttention, HeadByHead, MaskedAfterwards),
    equivalent_mutants={
        "`projections[name](x).unflatten(-1, (self.heads, -1)).transpose(1, 2)` → "
        "`projections[name](x).unflatten(-1, (self.heads, -1)).transpose(2, 1)`": SAME_EXCHANGE,
        "`(scores.softmax(dim=-1) @ values).transpose(1, 2)` → "
        "`(scores.softmax(dim=-1) @ values).transpose(2, 1)`": SAME_EXCHANGE,
    },
)
