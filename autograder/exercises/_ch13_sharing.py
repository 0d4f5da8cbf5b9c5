"""Exercise of chapter 13 on ALBERT: small embeddings and one layer used again and again."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.func import functional_call

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_parts import draw_weights, shapes_of

SIZES = ((6, 2, 9), (6, 3, 8), (9, 3, 7))  # d_model, heads, d_hidden


def _layer(d_model, heads, d_hidden):
    return nn.TransformerEncoderLayer(d_model, heads, d_hidden, dropout=0.0, batch_first=True)


class SharedStackReference(nn.Module):
    """PyTorch's stack of `layers` layers, run with the same weights in each."""

    def __init__(self, words, small, d_model, heads, d_hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(words, small)
        self.widen = nn.Linear(small, d_model)
        self.layer = _layer(d_model, heads, d_hidden)
        stack = nn.TransformerEncoder(self.layer, layers, enable_nested_tensor=False)
        self._stack = [stack]  # in a list: its layers are no parameters

    def forward(self, tokens):
        """tokens: int64 (batch, length)."""
        weights = {
            f"layers.{n}.{name}": parameter
            for n in range(len(self._stack[0].layers))
            for name, parameter in self.layer.named_parameters()
        }
        embedded = nn.functional.linear(
            self.embedding.weight[tokens], self.widen.weight, self.widen.bias
        )
        return functional_call(self._stack[0].double(), weights, (embedded,))


def shared_stack_cases(rng):
    """Three passes, and a single one."""
    for group, batch, length, layers, about in (
        ("stack", 2, 5, 3, "one layer, three times"),
        ("edges", 2, 3, 1, "one layer, once"),
    ):
        d_model, heads, d_hidden = SIZES[rng.integers(len(SIZES))]
        words, small = (int(n) for n in rng.permutation([10, 11, 5, 4])[:2])
        build = {
            "words": words,
            "small": small,
            "d_model": d_model,
            "heads": heads,
            "d_hidden": d_hidden,
            "layers": layers,
        }
        weights = draw_weights(rng, shapes_of(SharedStackReference(**build)))
        inputs = {"tokens": rng.integers(words, size=(batch, length))}
        upstream = rng.normal(size=(batch, length, d_model))
        case = {"build": build, "weights": weights, "inputs": inputs, "upstream": upstream}
        yield Case(group, case, about)


class SharedStack(nn.Module):
    """Right, in small parts, which the wrong versions exchange."""

    extra = 0

    def __init__(self, words, small, d_model, heads, d_hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(words, small)
        self.widen = nn.Linear(small, d_model)
        self.layer = _layer(d_model, heads, d_hidden)
        self.layers = layers

    def embed(self, tokens):
        """Small vectors, widened."""
        return self.widen(self.embedding(tokens))

    def forward(self, tokens):
        x = self.embed(tokens)
        for _ in range(self.layers + self.extra):
            x = self.layer(x)
        return x


class OnePassOnly(SharedStack):
    """Runs the layer once."""

    def forward(self, tokens):
        return self.layer(self.embed(tokens))


class OnePassTooMany(SharedStack):
    """One pass more."""

    extra = 1


class OnePassTooFew(SharedStack):
    """One pass less."""

    extra = -1


class CopiesOfTheLayer(SharedStack):
    """Runs copies: the same numbers, but only the first pass trains the layer."""

    def forward(self, tokens):
        x = self.layer(self.embed(tokens))
        for _ in range(self.layers - 1):
            x = copy.deepcopy(self.layer).requires_grad_(False)(x)
        return x


class GradientOfTheLastPass(SharedStack):
    """Cuts the graph between passes."""

    def forward(self, tokens):
        x = self.embed(tokens)
        for _ in range(self.layers):
            x = self.layer(x.detach())
        return x


class EmbeddingAddedEachTime(SharedStack):
    """Adds the embedding in front of every pass."""

    def forward(self, tokens):
        embedded = self.embed(tokens)
        x = 0 * embedded
        for _ in range(self.layers):
            x = self.layer(x + embedded)
        return x


class LinkAroundTheLayer(SharedStack):
    """A residual link that the layer has inside already."""

    def forward(self, tokens):
        x = self.embed(tokens)
        for _ in range(self.layers):
            x = x + self.layer(x)
        return x


class WithoutWidensBias(SharedStack):
    """The widening without its bias."""

    def embed(self, tokens):
        return self.embedding(tokens) @ self.widen.weight.T


class LayersOfTheirOwn(SharedStack):
    """A list of different layers: nothing is shared."""

    def __init__(self, words, small, d_model, heads, d_hidden, layers):
        super().__init__(words, small, d_model, heads, d_hidden, layers)
        del self.layer
        self.stack = nn.ModuleList(_layer(d_model, heads, d_hidden) for _ in range(layers))

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.stack:
            x = layer(x)
        return x


class SharedByRecursion(SharedStack):
    """Right: calls itself."""

    def again(self, x, left):
        """Run the layer `left` times."""
        return x if left == 0 else self.again(self.layer(x), left - 1)

    def forward(self, tokens):
        return self.again(self.embed(tokens), self.layers)


class SharedInASequence(SharedStack):
    """Right: a list that holds the same object several times."""

    def forward(self, tokens):
        return nn.Sequential(self.embedding, self.widen, *[self.layer] * self.layers)(tokens)


class SharedWithTable(SharedStack):
    """Right: widens the whole table first."""

    def forward(self, tokens):
        table = torch.addmm(self.widen.bias, self.embedding.weight, self.widen.weight.T)
        x, passes = table[tokens], 0
        while passes < self.layers:
            x, passes = self.layer(x), passes + 1
        return x


SHARED_STACK = Exercise(
    id="shared_stack",
    title="One layer, many times",
    asks="Embed in a small space, widen, and run the same layer several times.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=(
        "result",
        "gradient of layer.linear1.weight",
        "gradient of embedding.weight",
        "number of parameters",
    ),
    driver="module",
    seconds=10.0,
    groups={
        "stack": Group(1, "several passes through one layer"),
        "edges": Group(1, "a single pass"),
    },
    cases=shared_stack_cases,
    reference=SharedStackReference,
    misconceptions=(
        Misconception(
            OnePassOnly,
            "The layer runs once, whatever `layers` says.",
            "Where does `layers` enter?",
        ),
        Misconception(
            OnePassTooMany,
            "The layer runs once too often.",
            "With `layers` = 1, how often does it run?",
        ),
        Misconception(
            OnePassTooFew,
            "The layer runs once too little.",
            "With `layers` = 1, how often does it run?",
        ),
        Misconception(
            CopiesOfTheLayer,
            "Copies of the layer are run: the numbers are right, but most passes train nothing.",
            "Use the object itself. Whose gradients are added up then?",
        ),
        Misconception(
            GradientOfTheLastPass,
            "The graph is cut between the passes: only the last one trains the layer.",
            "Sharing weights needs no `detach`.",
        ),
        Misconception(
            EmbeddingAddedEachTime,
            "The embedding is added again in front of every pass.",
            "What goes into the second pass?",
        ),
        Misconception(
            LinkAroundTheLayer,
            "There is a residual link around the layer, which has two inside already.",
            "What goes into the second pass?",
        ),
        Misconception(
            WithoutWidensBias,
            "`widen` was used without its bias.",
            "Call the layer `widen` instead of multiplying by its weight.",
        ),
        Misconception(
            LayersOfTheirOwn,
            "Each pass has a layer of its own: nothing is shared.",
            "How many objects of `nn.TransformerEncoderLayer` should there be?",
        ),
    ),
    accepted=(SharedStack, SharedByRecursion, SharedInASequence, SharedWithTable),
)
