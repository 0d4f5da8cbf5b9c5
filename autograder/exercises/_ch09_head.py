"""Chapter 09: from vectors to scores of words."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch09_parts import EPSILON, draw, draw_weights


def mlm_head_cases(rng):
    """A batch; vectors of any leading shape; tiny vectors."""

    def case(group, about, lead, size=1.0):
        s = draw_sizes(rng, "d_model", "vocabulary", among=(3, 4, 5))
        d_model, vocabulary = s.d_model, s.vocabulary
        shapes = {
            "dense.weight": (d_model, d_model),
            "dense.bias": (d_model,),
            "LayerNorm.weight": (d_model,),
            "LayerNorm.bias": (d_model,),
            "bias": (vocabulary,),
        }
        return Case(
            group,
            {
                "build": {"d_model": d_model, "vocabulary": vocabulary},
                "weights": draw_weights(rng, shapes, size),
                "inputs": {
                    "states": draw(rng, (*lead, d_model)) * size,
                    "word_embeddings": draw(rng, (vocabulary, d_model)),
                },
                "upstream": draw(rng, (*lead, vocabulary)),
            },
            about,
        )

    yield case("values", "a batch of sentences", (2, 3))
    yield case("other", "selected tokens only: (count, d_model)", (2,))
    yield case("other", "vectors and weights of a thousandth", (1, 2), size=1e-3)


class Head(nn.Module):
    """Right, in parts that the wrong versions exchange."""

    epsilon = EPSILON

    def __init__(self, d_model, vocabulary):
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)
        self.LayerNorm = nn.LayerNorm(d_model, eps=self.epsilon)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def change(self, states):
        """Before the words."""
        return self.LayerNorm(F.gelu(self.dense(states)))

    def score(self, x, word_embeddings):
        """Logits."""
        return x @ word_embeddings.T + self.bias

    def forward(self, states, word_embeddings):
        """Give logits (..., vocabulary)."""
        return self.score(self.change(states), word_embeddings)


class MlmHeadReference(Head):
    """In formulas."""

    def forward(self, states, word_embeddings):
        """Give logits (..., vocabulary)."""
        x = torch.einsum("oi,...i->...o", self.dense.weight, states) + self.dense.bias
        x = x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        x = x - x.mean(-1, keepdim=True)
        x = x / torch.sqrt(x.square().mean(-1, keepdim=True) + EPSILON)
        x = x * self.LayerNorm.weight + self.LayerNorm.bias
        return torch.einsum("vd,...d->...v", word_embeddings, x) + self.bias


class NoBias(Head):
    """Forgets the bias of the words."""

    def score(self, x, word_embeddings):
        return x @ word_embeddings.T + 0 * self.bias


class NoChange(Head):
    """Multiplies the vectors themselves by the embeddings."""

    def change(self, states):
        return states


class NoActivation(Head):
    """Forgets GELU."""

    def change(self, states):
        return self.LayerNorm(self.dense(states))


class NoNorm(Head):
    """Forgets the LayerNorm."""

    def change(self, states):
        return F.gelu(self.dense(states))


class NormBeforeActivation(Head):
    """Normalises first, then bends."""

    def change(self, states):
        return F.gelu(self.LayerNorm(self.dense(states)))


class NormFirstOfAll(Head):
    """Normalises the vectors that come in."""

    def change(self, states):
        return F.gelu(self.dense(self.LayerNorm(states)))


class HeadWithRelu(Head):
    """ReLU."""

    def change(self, states):
        return self.LayerNorm(F.relu(self.dense(states)))


class HeadWithTanh(Head):
    """tanh, as in the pooler."""

    def change(self, states):
        return self.LayerNorm(torch.tanh(self.dense(states)))


class HeadWithTanhGelu(Head):
    """The approximation of GELU."""

    def change(self, states):
        return self.LayerNorm(F.gelu(self.dense(states), approximate="tanh"))


class HeadWithLink(Head):
    """Adds a residual link."""

    def change(self, states):
        return self.LayerNorm(states + F.gelu(self.dense(states)))


class HeadWithUsualEpsilon(Head):
    """PyTorch's default epsilon."""

    epsilon = 1e-5


class TieCutOff(Head):
    """The embeddings get no gradient."""

    def score(self, x, word_embeddings):
        return x @ word_embeddings.detach().T + self.bias


class Probabilities(Head):
    """Ends in a softmax."""

    def score(self, x, word_embeddings):
        return super().score(x, word_embeddings).softmax(-1)


class ByLinear(Head):
    """Right: `F.linear` with the embeddings as its weight."""

    def forward(self, states, word_embeddings):
        x = nn.functional.layer_norm(
            nn.GELU()(self.dense(states)),
            (states.shape[-1],),
            self.LayerNorm.weight,
            self.LayerNorm.bias,
            1e-12,
        )
        return F.linear(x, word_embeddings, self.bias)


class ByParts(nn.Module):
    """Right: the same parameters from other modules."""

    def __init__(self, d_model, vocabulary):
        super().__init__()
        self.bias = nn.Parameter(torch.empty(vocabulary))
        self.dense = nn.Linear(in_features=d_model, out_features=d_model)
        self.act = nn.GELU()
        self.LayerNorm = nn.LayerNorm((d_model,), eps=1e-12)

    def forward(self, states, word_embeddings):
        changed = self.LayerNorm(self.act(self.dense(states)))
        return torch.matmul(changed, word_embeddings.transpose(0, 1)).add(self.bias)


class ByHand(Head):
    """Right: GELU and norm by formula."""

    def forward(self, states, word_embeddings):
        x = states @ self.dense.weight.T + self.dense.bias
        x = x * torch.distributions.Normal(0.0, 1.0).cdf(x)
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        x = (x - mean) * torch.rsqrt(variance + 1e-12)
        x = x * self.LayerNorm.weight + self.LayerNorm.bias
        return torch.einsum("...d,vd->...v", x, word_embeddings) + self.bias


MLM_HEAD = Exercise(
    id="mlm_head",
    title="The masked-LM head",
    asks="Turn vectors into logits of words, with the word embeddings as output matrix.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=("logits", "number of parameters", "gradient of states", "gradient of word_embeddings"),
    driver="module",
    groups={
        "values": Group(2, "batches of sentences"),
        "other": Group(1, "selected tokens, tiny vectors"),
    },
    cases=mlm_head_cases,
    reference=MlmHeadReference,
    misconceptions=(
        Misconception(
            NoBias,
            "The bias of the words is not added.",
            "Every word has a number of its own that is added to its logit.",
        ),
        Misconception(
            NoChange,
            "The vectors were multiplied by the embeddings as they came.",
            "`dense` and `LayerNorm` come before the words.",
        ),
        Misconception(
            NoActivation,
            "There is no GELU.",
            "What stands between `dense` and `LayerNorm`?",
        ),
        Misconception(
            NoNorm,
            "The LayerNorm is missing.",
            "Which parts does point 2 of the exercise list?",
        ),
        Misconception(
            NormBeforeActivation,
            "The LayerNorm comes before GELU.",
            "In which order does point 2 list the parts?",
        ),
        Misconception(
            NormFirstOfAll,
            "The LayerNorm comes first.",
            "In which order does point 2 list the parts?",
        ),
        Misconception(
            HeadWithRelu,
            "The activation is ReLU.",
            "BERT uses one activation everywhere: which?",
        ),
        Misconception(
            HeadWithTanh,
            "The activation is tanh; that is the pooler's.",
            "BERT's head uses the activation of its layers.",
        ),
        Misconception(
            HeadWithTanhGelu,
            "This is the tanh approximation of GELU.",
            "Which GELU does PyTorch give without options?",
        ),
        Misconception(
            HeadWithLink,
            "A residual link was added; the head has none.",
            "What does the exercise add to the output of `dense`?",
        ),
        Misconception(
            HeadWithUsualEpsilon,
            "The LayerNorm has PyTorch's epsilon of 1e-5.",
            "Read point 1 of the exercise again.",
        ),
        Misconception(
            TieCutOff,
            "The word embeddings get no gradient from here.",
            "Look for `detach`, `.data` or `no_grad`.",
        ),
        Misconception(
            Probabilities,
            "The result is a softmax; logits are asked for.",
            "What does `cross_entropy` take?",
        ),
    ),
    accepted=(ByLinear, ByParts, ByHand),
    equivalent_mutants={
        "`torch.zeros(vocabulary)` → `torch.ones(vocabulary)`": "the checks load weights: no start "
        "value of a parameter is ever compared",
    },
)
