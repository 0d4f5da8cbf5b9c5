"""Chapter 05: a padded batch through a stack, so that padding does not matter."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch05_parts import draw_block_sizes, draw_stack_weights
from autograder.exercises._ch05_stack import make_layer


def padded_encoder_cases(rng):
    """Unequal lengths, poison in the padding also where no sequence fills the batch."""

    def inputs(lengths, width, poison=1.0, norm_first=False):
        s = draw_block_sizes(rng)
        lengths = np.array(lengths)
        x = rng.normal(size=(len(lengths), width, s.d_model))
        real = np.arange(width) < lengths[:, None]
        build = {"d_model": s.d_model, "heads": s.heads, "d_hidden": s.d_hidden, "layers": 2}
        return {
            "build": {**build, "norm_first": norm_first},
            "weights": draw_stack_weights(rng, 2, s.d_model, s.d_hidden, False),
            "inputs": {"x": np.where(real[..., None], x, poison * x), "lengths": lengths},
        }

    short = int(rng.integers(1, 3))
    yield Case("values", inputs(rng.permutation([short, 3, 5]), 5), "unequal lengths, post-LN")
    two = rng.permutation([2, 4])
    yield Case("values", inputs(two, 4, norm_first=True), "unequal lengths, pre-LN")
    yield Case("poison", inputs(rng.permutation([1, 3]), 5, 1e3), "large numbers in the padding")
    yield Case("poison", inputs([3, 2], 4, -1e3, True), "every sequence is padded")


class PaddedEncoderReference(nn.Module):
    """Each sequence goes through the layers alone, cut to its length: there is no padding."""

    def __init__(self, d_model, heads, d_hidden, layers, norm_first):
        super().__init__()
        made = (make_layer(d_model, heads, d_hidden, norm_first) for _ in range(layers))
        self.layers = nn.ModuleList(made)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        """x: (batch, length, d_model). lengths: (batch,)."""
        states, sentences = [], []
        for tokens, length in zip(x, lengths.tolist(), strict=True):
            state = tokens[None, :length]
            for layer in self.layers:
                state = layer(state)
            states.append(torch.cat([state[0], torch.zeros_like(tokens[length:])]))
            sentences.append(state[0].mean(dim=0))
        return torch.stack(states), torch.stack(sentences)


class Padded(nn.Module):
    """A right answer in small parts, which the wrong versions exchange one by one."""

    def __init__(self, d_model, heads, d_hidden, layers, norm_first):
        super().__init__()
        made = (make_layer(d_model, heads, d_hidden, norm_first) for _ in range(layers))
        self.layers = nn.ModuleList(made)

    def real(self, x, lengths):
        """Say where tokens are, (batch, length)."""
        return torch.arange(x.shape[1]) < lengths[:, None]

    def ignored(self, real, layer):
        """Say which keys a layer must ignore."""
        return ~real

    def encode(self, x, real):
        """Send x through all layers."""
        for number, layer in enumerate(self.layers):
            x = layer(x, src_key_padding_mask=self.ignored(real, number))
        return x

    def clean(self, states, real):
        """Set the padding to 0."""
        return states * real[..., None]

    def pool(self, states, real):
        """Give the mean over real tokens."""
        return (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        """x: (batch, length, d_model). lengths: (batch,)."""
        real = self.real(x, lengths)
        states = self.encode(x, real)
        return self.clean(states, real), self.pool(states, real)


class PaddedMaskInverted(Padded):
    """Hands over the course's mask, whose True means the opposite in `nn.TransformerEncoder`."""

    def ignored(self, real, layer):
        return real


class PaddedNoMask(Padded):
    """Attends to padding; zeros and means are right afterwards."""

    def ignored(self, real, layer):
        return None


class PaddedFirstLayerOnly(Padded):
    """Masks in the first layer only."""

    def ignored(self, real, layer):
        return ~real if layer == 0 else None


class PaddedZeroedInput(Padded):
    """Sets the padding to 0 in the input and masks nothing: a zero vector is a key as well."""

    def encode(self, x, real):
        x = x * real[..., None]
        for layer in self.layers:
            x = layer(x)
        return x


class PaddedZeroedEverywhere(Padded):
    """Sets the padding to 0 before and after every layer and masks nothing."""

    def encode(self, x, real):
        for layer in self.layers:
            x = layer(x * real[..., None])
        return x


class PaddedOneTooMany(Padded):
    """One place of the padding counts as a token."""

    def real(self, x, lengths):
        return torch.arange(x.shape[1]) <= lengths[:, None]


class PaddedOneTooFew(Padded):
    """The last token counts as padding, except where it is the only one."""

    def real(self, x, lengths):
        return torch.arange(x.shape[1]) < (lengths[:, None] - 1).clamp(min=1)


class PaddedInFront(Padded):
    """Takes the first places for padding."""

    def real(self, x, lengths):
        return torch.arange(x.shape[1]).flip(0) < lengths[:, None]


class PaddedMeanOfAll(Padded):
    """The mean runs over the padding's states too."""

    def pool(self, states, real):
        return states.mean(dim=1)


class PaddedMeanOverWidth(Padded):
    """The sum over tokens is divided by the padded length."""

    def pool(self, states, real):
        return (states * real[..., None]).mean(dim=1)


class PaddedSum(Padded):
    """The sum over tokens is not divided at all."""

    def pool(self, states, real):
        return (states * real[..., None]).sum(dim=1)


class PaddedFirstToken(Padded):
    """Takes the first token's state for the sentence."""

    def pool(self, states, real):
        return states[:, 0]


class PaddedMeanOverLongest(Padded):
    """Divides every sum by the largest length."""

    def pool(self, states, real):
        return (states * real[..., None]).sum(dim=1) / real.sum(dim=1).max()


class PaddedNotCleaned(Padded):
    """Leaves in the padding what the layers made of it."""

    def clean(self, states, real):
        return states


class PaddedByCoreEncoder(nn.Module):
    """Right: the layers of an `nn.TransformerEncoder`, under the exercise's names."""

    def __init__(self, d_model, heads, d_hidden, layers, norm_first):
        super().__init__()
        layer = make_layer(d_model, heads, d_hidden, norm_first)
        encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.layers = encoder.layers

    def forward(self, x, lengths):
        places = torch.arange(x.size(1)).expand(x.size(0), -1)
        padding = places >= lengths.unsqueeze(1)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        x = x.masked_fill(padding.unsqueeze(-1), 0.0)
        return x, x.sum(1) / lengths.unsqueeze(1)


class PaddedByPairs(Padded):
    """Right: a mask for every pair of query and key, and head."""

    def encode(self, x, real):
        heads = self.layers[0].self_attn.num_heads
        length = x.shape[1]
        pairs = (~real)[:, None, None, :].expand(-1, heads, length, -1).flatten(0, 1)
        for layer in self.layers:
            x = layer(x, src_mask=pairs)
        return x


class PaddedByAddition(Padded):
    """Right: minus infinity is added to the scores of padded keys."""

    def ignored(self, real, layer):
        return torch.zeros(real.shape, dtype=torch.float64).masked_fill(~real, -torch.inf)

    def pool(self, states, real):
        weights = real / real.sum(dim=1, keepdim=True)
        return torch.einsum("bl,bld->bd", weights.to(states.dtype), states)


PADDED_ENCODER = Exercise(
    id="padded_encoder",
    title="A padded batch through a stack",
    asks="Run a padded batch so that padding does not matter; give states and their mean.",
    parameters=("build", "weights", "inputs"),
    outputs=("states", "sentence"),
    driver="module",
    seconds=10.0,
    groups={
        "values": Group(1.5, "unequal lengths"),
        "poison": Group(1.5, "large numbers in the padding"),
    },
    cases=padded_encoder_cases,
    reference=PaddedEncoderReference,
    misconceptions=(
        Misconception(
            PaddedMaskInverted,
            "The mask is the wrong way round: in `src_key_padding_mask` True means *ignore*.",
            "This course's True means “may be seen”. How do you turn one into the other?",
        ),
        Misconception(
            PaddedNoMask,
            "The layers see the padding: they get no mask.",
            "Change a number in the padding: do the states of real tokens change?",
        ),
        Misconception(
            PaddedFirstLayerOnly,
            "Only the first layer gets the mask; padding has states in later layers too.",
            "Which layers attend?",
        ),
        Misconception(
            PaddedZeroedInput,
            "The padding is set to 0 but not masked: a zero vector still gets weight.",
            "What is the score of a key of zeros (and biases)? And its weight?",
        ),
        Misconception(
            PaddedOneTooMany,
            "The first place of the padding counts as a token: off by one.",
            "A sequence of length 3 has tokens at the places 0, 1, 2.",
        ),
        Misconception(
            PaddedOneTooFew,
            "The last token counts as padding: off by one.",
            "A sequence of length 3 has tokens at the places 0, 1, 2.",
        ),
        Misconception(
            PaddedInFront,
            "The first places are taken for padding; it stands at the end.",
            "Compare the places 0, 1, 2, … with the length.",
        ),
        Misconception(
            PaddedMeanOfAll,
            "The sentence is the mean over all places, padding included.",
            "How many vectors enter the mean of a sequence of length 2?",
        ),
        Misconception(
            PaddedMeanOverWidth,
            "The sum is over real tokens, but it is divided by the padded length.",
            "By what is the sum of a sequence of length 2 divided?",
        ),
        Misconception(
            PaddedSum,
            "The sentence is the sum of the states; the mean is asked.",
            "By what is the sum of a sequence of length 2 divided?",
        ),
        Misconception(
            PaddedFirstToken,
            "The sentence is the first token's state; the mean is asked.",
            "Read point 4 of the contract again.",
        ),
        Misconception(
            PaddedMeanOverLongest,
            "Every sum is divided by the length of the longest sequence.",
            "Each sequence has its own length.",
        ),
        Misconception(
            PaddedNotCleaned,
            "The padding has states; the contract asks for zeros there.",
            "The mask hides padded *keys*; padded places are still queries and get an output.",
        ),
        Misconception(
            PaddedZeroedEverywhere,
            "The padding is set to 0 before every layer but not masked: zeros still get weight.",
            "What is the score of a key of zeros (and biases)? And its weight?",
        ),
    ),
    accepted=(Padded, PaddedByCoreEncoder, PaddedByPairs, PaddedByAddition),
)
