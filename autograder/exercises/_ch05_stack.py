"""Chapter 05: a stack of encoder blocks."""

from __future__ import annotations

import copy

import torch
from torch import nn

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch05_parts import draw_block_sizes, draw_stack_weights


def encoder_stack_cases(rng):
    """Two and three layers, both norm orders, with and without a final norm; training mode."""

    def inputs(layers, norm_first, final_norm, training=False):
        s = draw_block_sizes(rng)
        build = {"d_model": s.d_model, "heads": s.heads, "d_hidden": s.d_hidden, "layers": layers}
        weights = draw_stack_weights(rng, layers, s.d_model, s.d_hidden, final_norm)
        return {
            "build": {**build, "norm_first": norm_first, "final_norm": final_norm},
            "weights": weights,
            "inputs": {"x": rng.normal(size=(s.batch, s.length, s.d_model))},
            "training": training,
        }

    yield Case("layers", inputs(3, False, False), "three layers, post-LN, no final norm")
    yield Case("norm", inputs(2, True, True), "two layers, pre-LN, a final norm")
    yield Case("training", inputs(2, True, False, training=True), "two layers in training mode")


def make_layer(
    d_model: int, heads: int, d_hidden: int, norm_first: bool, **changes
) -> nn.TransformerEncoderLayer:
    """Make one layer of the kind that the exercise names; `changes` overrides its options."""
    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": norm_first}
    return nn.TransformerEncoderLayer(d_model, heads, d_hidden, **(options | changes))


class EncoderStackReference(nn.TransformerEncoder):
    """PyTorch's own stack, which copies its first layer."""

    def __init__(self, d_model, heads, d_hidden, layers, norm_first, final_norm):
        super().__init__(
            make_layer(d_model, heads, d_hidden, norm_first),
            layers,
            norm=nn.LayerNorm(d_model) if final_norm else None,
            enable_nested_tensor=False,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, d_model)."""
        return super().forward(x)


class Stack(nn.Module):
    """A right stack in small parts, which the wrong versions exchange one by one."""

    changes: dict = {}  # noqa: RUF012

    def __init__(self, d_model, heads, d_hidden, layers, norm_first, final_norm):
        super().__init__()
        make = [lambda: make_layer(d_model, heads, d_hidden, norm_first, **self.changes)] * layers
        self.layers = self.collect(make)
        if final_norm:
            self.norm = nn.LayerNorm(d_model)
        self.final_norm = final_norm

    def collect(self, make):
        """Make the layers."""
        return nn.ModuleList(one() for one in make)

    def through(self, x: torch.Tensor) -> torch.Tensor:
        """Send x through all layers."""
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, d_model)."""
        x = self.through(x)
        return self.norm(x) if self.final_norm else x


class StackOfOneLayer(Stack):
    """`[layer] * N`: the same layer N times."""

    def collect(self, make):
        return nn.ModuleList([make[0]()] * len(make))


class StackInAPythonList(Stack):
    """A list that `nn.Module` does not look into."""

    def collect(self, make):
        return [one() for one in make]


class StackReversed(Stack):
    """Goes through the layers from the last to the first."""

    def through(self, x):
        for layer in reversed(self.layers):
            x = layer(x)
        return x


class StackFirstLayerOnly(Stack):
    """Goes through the first layer again and again."""

    def through(self, x):
        for _ in self.layers:
            x = self.layers[0](x)
        return x


class StackForgetsTheState(Stack):
    """Every layer reads the stack's input: only the last one counts."""

    def through(self, x):
        for layer in self.layers:
            output = layer(x)
        return output


class StackMissesTheLast(Stack):
    """Stops one layer too early."""

    def through(self, x):
        for layer in self.layers[:-1]:
            x = layer(x)
        return x


class StackWithLinks(Stack):
    """Adds another residual link around every layer."""

    def through(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


class StackWithoutFinalNorm(Stack):
    """Has the final norm and does not use it."""

    def forward(self, x):
        return self.through(x)


class StackAlwaysFinalNorm(Stack):
    """Has a final norm, whatever is asked."""

    def __init__(self, d_model, heads, d_hidden, layers, norm_first, final_norm):
        super().__init__(d_model, heads, d_hidden, layers, norm_first, True)


class StackNormsEveryLayer(Stack):
    """Uses the final norm after every layer."""

    def forward(self, x):
        for layer in self.layers:
            x = self.norm(layer(x)) if self.final_norm else layer(x)
        return x


class StackNormsTheInput(Stack):
    """Uses the final norm before the first layer."""

    def forward(self, x):
        return self.through(self.norm(x) if self.final_norm else x)


class StackWithRelu(Stack):
    """Leaves the activation at PyTorch's default."""

    changes = {"activation": "relu"}  # noqa: RUF012


class StackLengthFirst(Stack):
    """Leaves `batch_first` at PyTorch's default."""

    changes = {"batch_first": False}  # noqa: RUF012


class StackAlwaysPost(Stack):
    """Leaves `norm_first` at PyTorch's default."""

    changes = {"norm_first": False}  # noqa: RUF012


class StackWithDropout(Stack):
    """Leaves `dropout` at PyTorch's default."""

    changes = {"dropout": 0.1}  # noqa: RUF012


class StackOfCopies(Stack):
    """Right: deep copies of one layer."""

    def collect(self, make):
        layer = make[0]()
        return nn.ModuleList([copy.deepcopy(layer) for _ in make])


class StackInSequence(Stack):
    """Right: `nn.Sequential` numbers its parts as a ModuleList does."""

    def collect(self, make):
        return nn.Sequential(*(one() for one in make))

    def through(self, x):
        return self.layers(x)


class StackByRecursion(Stack):
    """Right: the rest of the stack on what the first layer gives."""

    def through(self, x, depth=0):
        if depth == len(self.layers):
            return x
        return self.through(self.layers[depth](x), depth + 1)


ENCODER_STACK = Exercise(
    id="encoder_stack",
    title="A stack of blocks",
    asks="Stack blocks that each have parameters of their own, with a final norm if asked.",
    parameters=("build", "weights", "inputs", "training"),
    outputs=("result", "number of parameters"),
    driver="module",
    seconds=10.0,
    forbidden=("torch.nn.TransformerEncoder.forward",),
    groups={
        "layers": Group(2, "no final norm"),
        "norm": Group(0.5, "pre-LN and a final norm"),
        "training": Group(0.5, "training mode: no dropout anywhere"),
    },
    cases=encoder_stack_cases,
    reference=EncoderStackReference,
    misconceptions=(
        Misconception(
            StackOfOneLayer,
            "All entries are one and the same layer, so they share their parameters: `[layer] * N` "
            "copies references.",
            "Count `model.parameters()`. Where is each layer *made*?",
        ),
        Misconception(
            StackInAPythonList,
            "`nn.Module` does not look into Python lists: an optimiser would get no parameter.",
            "PyTorch has a list of its own for modules.",
        ),
        Misconception(
            StackReversed,
            "The layers are run from the last to the first.",
            "`layers[0]` reads the input of the stack.",
        ),
        Misconception(
            StackFirstLayerOnly,
            "The first layer is run again and again.",
            "What does your loop variable do?",
        ),
        Misconception(
            StackForgetsTheState,
            "Every layer reads the input of the stack, so only the last one counts.",
            "What should the second layer read?",
        ),
        Misconception(
            StackMissesTheLast,
            "The last layer is left out.",
            "How many layers does your loop run?",
        ),
        Misconception(
            StackWithLinks,
            "There is another residual link around each layer; the layers have theirs inside.",
            "What does a layer of the kind given in the text do already?",
        ),
        Misconception(
            StackWithoutFinalNorm,
            "The final norm is there, but `forward` does not use it.",
            "With `final_norm=True`, what is the very last step?",
        ),
        Misconception(
            StackAlwaysFinalNorm,
            "There is a final norm although `final_norm` is False.",
            "Make `norm` only if it is asked for.",
        ),
        Misconception(
            StackNormsEveryLayer,
            "The final norm is applied after every layer.",
            "*Final*: inside or outside of the loop?",
        ),
        Misconception(
            StackNormsTheInput,
            "The final norm is applied before the first layer.",
            "*Final*: before or after the loop?",
        ),
        Misconception(
            StackWithRelu,
            "The layers use ReLU, PyTorch's default; GELU is asked.",
            "Compare your arguments with those of the layer in the text.",
        ),
        Misconception(
            StackLengthFirst,
            "The layers take the first axis for the length, PyTorch's default.",
            "Compare your arguments with those of the layer in the text.",
        ),
        Misconception(
            StackAlwaysPost,
            "The layers are post-LN, PyTorch's default, whatever `norm_first` says.",
            "Compare your arguments with those of the layer in the text.",
        ),
        Misconception(
            StackWithDropout,
            "The layers drop 10 % in training, PyTorch's default; no dropout is asked.",
            "Compare your arguments with those of the layer in the text.",
        ),
    ),
    accepted=(Stack, StackOfCopies, StackInSequence, StackByRecursion),
)
