"""Claim: encoder-decoder, causal and prefix models differ in what the input sees of itself.

One task, three networks with the same number of weights. A row of letters ends with an instruction:
copy it, turn it round, or sort it. A causal model has read the letters before it knows why.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_course.language.llama import Layer, Llama, Shape, rotate, rotation
from attention_course.language.training import fit

WAYS = ("causal", "prefix", "encoder-decoder")
LETTERS, LENGTH, INSTRUCTIONS = 10, 8, 3
START, FIRST_LETTER = 0, 1
FIRST_INSTRUCTION = FIRST_LETTER + LETTERS
VOCABULARY = FIRST_INSTRUCTION + INSTRUCTIONS
WIDTH, HEADS, ONE_NETWORK, TWO_NETWORKS = 48, 4, 96, 64  # the last two: widths of the MLPs


def draw_task(generator: torch.Generator, batch: int) -> tuple[Tensor, Tensor]:
    """Draw inputs (batch, LENGTH + 1), instruction last, and outputs (batch, LENGTH)."""
    letters = FIRST_LETTER + torch.randint(LETTERS, (batch, LENGTH), generator=generator)
    kind = torch.randint(INSTRUCTIONS, (batch, 1), generator=generator)
    answers = torch.stack([letters, letters.flip(1), letters.sort(dim=1).values])
    outputs = answers.gather(0, kind.expand(-1, LENGTH)[None])[0]
    return torch.cat([letters, FIRST_INSTRUCTION + kind], dim=1), outputs


class CrossLayer(Layer):
    """A decoder's block: between self-attention and MLP it looks at the encoder's output."""

    def __init__(self, shape: Shape):
        super().__init__(shape)
        self.cross_norm = nn.RMSNorm(shape.width, shape.epsilon)
        self.cross = nn.ModuleList(
            nn.Linear(shape.width, shape.width, bias=False) for _ in range(4)
        )

    def look_across(self, x: Tensor, memory: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Add what queries from x, (batch, queries, width), find in memory, (batch, keys, width).

        cos, sin: of at least as many positions as there are queries or keys.
        """
        to_queries, to_keys, to_values, to_output = self.cross
        queries, keys, values = (
            part.unflatten(-1, (self.shape.heads, -1)).transpose(1, 2)
            for part in (to_queries(self.cross_norm(x)), to_keys(memory), to_values(memory))
        )
        length, others = x.shape[1], memory.shape[1]
        found = F.scaled_dot_product_attention(
            rotate(queries, cos[:length], sin[:length]),
            rotate(keys, cos[:others], sin[:others]),
            values,
        )
        return x + to_output(found.transpose(1, 2).flatten(2))


class EncoderDecoder(nn.Module):
    """One layer that reads the input in both directions, and one that writes and looks across."""

    def __init__(self, shape: Shape, generator: torch.Generator):
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.encoder, self.decoder = Layer(shape), CrossLayer(shape)
        self.memory_norm = nn.RMSNorm(shape.width, shape.epsilon)
        self.norm = nn.RMSNorm(shape.width, shape.epsilon)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02, generator=generator)

    def forward(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Give logits, (batch, length of outputs, vocabulary), of what follows each output."""
        x, y = self.embed_tokens(inputs), self.embed_tokens(outputs)
        longest, head_width = max(x.shape[1], y.shape[1]), self.shape.width // self.shape.heads
        cos, sin = rotation(longest, head_width, self.shape.base)
        everything = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        memory = self.encoder(x, cos[: x.shape[1]], sin[: x.shape[1]], everything)
        y = self.decoder.attend(y, cos[: y.shape[1]], sin[: y.shape[1]], None)
        y = self.decoder.look_across(y, self.memory_norm(memory), cos, sin)
        return F.linear(self.norm(self.decoder.transform(y)), self.embed_tokens.weight)


class OneRow(nn.Module):
    """One network that reads input and output in a row; `prefix`: the input in both directions."""

    def __init__(self, shape: Shape, generator: torch.Generator, prefix: bool):
        super().__init__()
        self.network = Llama(shape, generator)
        self.prefix = prefix

    def forward(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Give logits, (batch, length of outputs, vocabulary), of what follows each output."""
        row = torch.cat([inputs, outputs], dim=1)
        mask = None
        if self.prefix:
            mask = torch.ones(row.shape[1], row.shape[1], dtype=torch.bool).tril()
            mask[:, : inputs.shape[1]] = True
        return self.network(row, mask)[:, inputs.shape[1] :]


def build(way: str, generator: torch.Generator) -> nn.Module:
    """Make the network of one way. Raises ValueError for a way that is not in WAYS."""
    if way not in WAYS:
        raise ValueError(f"way must be one of {', '.join(WAYS)}; got {way!r}.")
    if way == "encoder-decoder":
        shape = Shape(VOCABULARY, WIDTH, 2, HEADS, HEADS, TWO_NETWORKS)
        return EncoderDecoder(shape, generator)
    shape = Shape(VOCABULARY, WIDTH, 2, HEADS, HEADS, ONE_NETWORK)
    return OneRow(shape, generator, prefix=way == "prefix")


def train_way(way: str, seed: int, steps: int, every: int, batch: int = 32) -> list[float]:
    """Train one way; give the share of right test answers (all letters) after `every` steps each.

    Answers are judged letter by letter with the true letters before them, and count if all are
    right: that is the same as writing greedily.
    """
    generator = torch.Generator().manual_seed(seed)
    model = build(way, generator)
    test_inputs, test_outputs = draw_task(torch.Generator().manual_seed(10_000), 500)
    shares: list[float] = []

    def logits(inputs: Tensor, outputs: Tensor) -> Tensor:
        return model(inputs, F.pad(outputs[:, :-1], (1, 0), value=START))

    def loss_of_step(step: int) -> Tensor:
        inputs, outputs = draw_task(generator, batch)
        return F.cross_entropy(logits(inputs, outputs).flatten(0, 1), outputs.flatten())

    def after_step(step: int) -> None:
        if step % every == 0:
            with torch.no_grad():
                said = logits(test_inputs, test_outputs).argmax(dim=-1)
            shares.append((said == test_outputs).all(dim=1).float().mean().item())

    fit(model, loss_of_step, steps, 4e-3, after_step)
    return shares
