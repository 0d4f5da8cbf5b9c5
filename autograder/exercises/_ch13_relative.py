"""Exercise of chapter 13 on Transformer-XL's attention: memory, distances, two learned biases."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_parts import draw_weights, shapes_of

# (batch, length, memory, d_model, heads): batch, heads and a head's width differ; no width of 4.
SIZES = ((4, 3, 2, 6, 2), (4, 2, 3, 6, 2), (4, 3, 2, 6, 3))


class RelativeAttentionReference(nn.Module):
    """Pair by pair: one score for each query and key, straight from the equation."""

    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        for name in ("to_queries", "to_keys", "to_values", "to_positions", "to_output"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))
        self.content_bias = nn.Parameter(torch.zeros(heads, d_model // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, d_model // heads))

    def forward(self, x, memory, positions):
        """x: (batch, length, d_model). memory: (batch, memory, d_model)."""
        before, width = memory.shape[1], self.content_bias.shape[1]
        seen = torch.cat([memory.detach(), x], dim=1)
        queries, keys, values = self.to_queries(x), self.to_keys(seen), self.to_values(seen)
        distances = self.to_positions(positions.flip(0))
        heads = []
        for h in range(self.heads):
            part = slice(h * width, (h + 1) * width)
            rows = []
            for i in range(x.shape[1]):
                place = before + i
                content = torch.einsum(
                    "bd,bjd->bj",
                    queries[:, i, part] + self.content_bias[h],
                    keys[:, : place + 1, part],
                )
                back = distances[place - torch.arange(place + 1), part]
                where = (queries[:, i, part] + self.position_bias[h]) @ back.T
                weights = torch.softmax((content + where) / np.sqrt(width), dim=-1)
                rows.append(torch.einsum("bj,bjd->bd", weights, values[:, : place + 1, part]))
            heads.append(torch.stack(rows, dim=1))
        return self.to_output(torch.cat(heads, dim=-1))


def relative_attention_cases(rng):
    """With and without memory; the table and both biases are random."""
    for group, (batch, length, memory, d_model, heads), about in (
        ("memory", SIZES[rng.integers(len(SIZES))], "with memory"),
        ("empty", (1, 4, 0, 6, 3), "the first segment: no memory yet"),
    ):
        build = {"d_model": d_model, "heads": heads}
        weights = draw_weights(rng, shapes_of(RelativeAttentionReference(**build)))
        for name in ("content_bias", "position_bias"):
            weights[name] = rng.normal(size=(heads, d_model // heads))
        inputs = {
            "x": rng.normal(size=(batch, length, d_model)),
            "memory": rng.normal(size=(batch, memory, d_model)),
            "positions": rng.normal(size=(memory + length, d_model)),
        }
        upstream = rng.normal(size=(batch, length, d_model))
        case = {"build": build, "weights": weights, "inputs": inputs, "upstream": upstream}
        yield Case(group, case, about)


class RelativeAttention(RelativeAttentionReference):
    """Right, in small parts, which the wrong versions exchange one by one."""

    def split(self, tensor):
        """(…, length, d_model) → (…, heads, length, width)."""
        return tensor.unflatten(-1, (self.heads, -1)).transpose(-3, -2)

    def past(self, memory):
        """What of the memory is used."""
        return memory.detach()

    def table(self, positions):
        """Projected positions, (heads, keys, width)."""
        return self.split(self.to_positions(positions))

    def biases(self):
        """(content, position)."""
        return self.content_bias, self.position_bias

    def shift(self, scores):
        """Columns of distances to columns of keys."""
        length, count = scores.shape[-2:]
        column = torch.arange(count) + length - 1 - torch.arange(length)[:, None]
        return scores.gather(-1, column.clamp(max=count - 1).expand(scores.shape))

    def scale(self, width):
        """What scores are divided by."""
        return width**0.5

    def mask(self, length, count):
        """True = may be seen."""
        return torch.ones(length, count, dtype=torch.bool).tril(count - length)

    def forward(self, x, memory, positions):
        seen = torch.cat([self.past(memory), x], dim=1)
        queries = self.split(self.to_queries(x))
        keys, values = self.split(self.to_keys(seen)), self.split(self.to_values(seen))
        content_bias, position_bias = (bias[:, None] for bias in self.biases())
        scores = (queries + content_bias) @ keys.mT
        scores = scores + self.shift((queries + position_bias) @ self.table(positions).mT)
        scores = scores / self.scale(keys.shape[-1])
        mask = self.mask(x.shape[1], seen.shape[1])
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        return self.to_output((weights @ values).transpose(1, 2).flatten(-2))


class GradientIntoMemory(RelativeAttention):
    """Does not detach."""

    def past(self, memory):
        return memory


class NotShifted(RelativeAttention):
    """Adds the scores of the distances as they are."""

    def shift(self, scores):
        return scores


class TableFromZero(RelativeAttention):
    """Reads the table as if row 0 were distance 0."""

    def table(self, positions):
        return super().table(positions.flip(0))


class RawPositions(RelativeAttention):
    """Forgets to project the positions."""

    def table(self, positions):
        return self.split(positions)


class KeysForPositions(RelativeAttention):
    """Projects positions with the keys' matrix."""

    def table(self, positions):
        return self.split(self.to_keys(positions))


class BiasesExchanged(RelativeAttention):
    """The two biases change places."""

    def biases(self):
        return self.position_bias, self.content_bias


class NoContentBias(RelativeAttention):
    """Forgets the first bias."""

    def biases(self):
        return 0 * self.content_bias, self.position_bias


class NoPositionBias(RelativeAttention):
    """Forgets the second bias."""

    def biases(self):
        return self.content_bias, 0 * self.position_bias


class OneBiasForBoth(RelativeAttention):
    """Uses the content's bias twice."""

    def biases(self):
        return self.content_bias, self.content_bias


class NoBiases(RelativeAttention):
    """Plain queries in both terms."""

    def biases(self):
        return 0 * self.content_bias, 0 * self.position_bias


class FutureSeen(RelativeAttention):
    """No causal mask."""

    def mask(self, length, count):
        return torch.ones(length, count, dtype=torch.bool)


class MaskWithoutMemory(RelativeAttention):
    """The triangle starts at the memory's left edge."""

    def mask(self, length, count):
        return torch.ones(length, count, dtype=torch.bool).tril()


class MemoryHidden(RelativeAttention):
    """The memory is masked."""

    def mask(self, length, count):
        mask = super().mask(length, count)
        mask[:, : count - length] = False
        return mask


class ScaledByModel(RelativeAttention):
    """√d_model for the root of a head's width."""

    def scale(self, width):
        return (width * self.heads) ** 0.5


class NotScaled(RelativeAttention):
    """No scale."""

    def scale(self, width):
        return 1.0


class ContentScaledAlone(RelativeAttention):
    """Divides the content's term only."""

    def shift(self, scores):
        return super().shift(scores) * self.content_bias.shape[1] ** 0.5


class HeadsByReshape(RelativeAttention):
    """Cuts heads by reshape alone."""

    def split(self, tensor):
        *front, length, d_model = tensor.shape
        return tensor.reshape(*front, self.heads, length, d_model // self.heads)


class OutputForgotten(RelativeAttention):
    """Leaves out the last projection (it still gets a gradient of 0)."""

    def forward(self, x, memory, positions):
        self.to_output = nn.Identity()
        return super().forward(x, memory, positions)


class RelativeByEinsum(RelativeAttentionReference):
    """Right: a vector for every pair, and einsum."""

    def forward(self, x, memory, positions):
        before, length = memory.shape[1], x.shape[1]
        seen = torch.cat([memory.detach(), x], dim=1)
        shape = (self.heads, -1)
        q = self.to_queries(x).unflatten(-1, shape)
        k, v = (part(seen).unflatten(-1, shape) for part in (self.to_keys, self.to_values))
        r = self.to_positions(positions).unflatten(-1, shape)
        back = before + torch.arange(length)[:, None] - torch.arange(before + length)
        pairs = r[(before + length - 1 - back).clamp(0, before + length - 1)]
        scores = torch.einsum("bihd,bjhd->bhij", q + self.content_bias, k)
        scores = scores + torch.einsum("bihd,ijhd->bhij", q + self.position_bias, pairs)
        scores = scores / q.shape[-1] ** 0.5 + torch.where(back < 0, -1e9, 0.0)
        out = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v)
        return self.to_output(out.flatten(2))


class RelativeBySdpa(RelativeAttention):
    """Right: the distance's scores as an additive mask of PyTorch's attention."""

    def forward(self, x, memory, positions):
        seen = torch.cat([memory.detach(), x], dim=1)
        q, k, v = (
            self.split(part)
            for part in (self.to_queries(x), self.to_keys(seen), self.to_values(seen))
        )
        added = (q + self.position_bias[:, None]) @ self.table(positions).mT
        added = self.shift(added) / q.shape[-1] ** 0.5
        added = added.masked_fill(~self.mask(x.shape[1], seen.shape[1]), -torch.inf)
        out = functional.scaled_dot_product_attention(
            q + self.content_bias[:, None], k, v, attn_mask=added
        )
        return self.to_output(out.transpose(1, 2).reshape(x.shape))


RELATIVE_ATTENTION = Exercise(
    id="relative_attention",
    title="Attention with memory and distances",
    asks="Attend to memory and segment; scores know contents and distances.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=(
        "result",
        "gradient of x",
        "gradient of memory",
        "gradient of content_bias",
        "gradient of position_bias",
    ),
    driver="module",
    seconds=10.0,
    groups={
        "memory": Group(4, "a segment with a memory before it"),
        "empty": Group(1, "the first segment, without memory"),
    },
    cases=relative_attention_cases,
    reference=RelativeAttentionReference,
    misconceptions=(
        Misconception(
            GradientIntoMemory,
            "A gradient flows into the memory.",
            "The memory counts as given. Which method cuts a tensor off the graph?",
        ),
        Misconception(
            NotShifted,
            "The scores of the distances are added without the relative shift.",
            "Column c of these scores is a distance, column j of the others is a key.",
        ),
        Misconception(
            TableFromZero,
            "Row 0 of `positions` is read as distance 0; it is the largest distance.",
            "Point 3 of the contract: in which order do the rows stand?",
        ),
        Misconception(
            RawPositions,
            "The positions are not projected.",
            "Which of the five linear layers have you not used?",
        ),
        Misconception(
            KeysForPositions,
            "The positions are projected by `to_keys`; they have a matrix of their own.",
            "Which of the five linear layers have you not used?",
        ),
        Misconception(
            BiasesExchanged,
            "The two biases are exchanged.",
            "Which bias asks about contents, and which about distances?",
        ),
        Misconception(
            NoContentBias,
            "`content_bias` is not used.",
            "Which of the two terms of a score has q + u in it?",
        ),
        Misconception(
            NoPositionBias,
            "`position_bias` is not used.",
            "Which of the two terms of a score has q + v in it?",
        ),
        Misconception(
            OneBiasForBoth,
            "`content_bias` stands in both terms.",
            "There are two biases, one for each term.",
        ),
        Misconception(
            NoBiases,
            "Neither bias is used.",
            "Compare your two terms with the formula, letter by letter.",
        ),
        Misconception(
            FutureSeen,
            "Queries see the future.",
            "Which places of the segment may query i see?",
        ),
        Misconception(
            MaskWithoutMemory,
            "The causal mask forgets that the memory stands in front.",
            "At which place of the joined sequence does query 0 stand?",
        ),
        Misconception(
            MemoryHidden,
            "The memory is masked, so nothing is remembered.",
            "Which columns does every query see?",
        ),
        Misconception(
            ScaledByModel,
            "Scores are divided by √d_model.",
            "How long are the vectors whose products you take?",
        ),
        Misconception(
            NotScaled,
            "Scores are not divided by anything.",
            "Point 4 of the contract has a root.",
        ),
        Misconception(
            ContentScaledAlone,
            "Only the content's term is divided by the root.",
            "Are the terms added before or after the division?",
        ),
        Misconception(
            HeadsByReshape,
            "Heads are cut by a reshape straight to (heads, length, width): places are mixed up.",
            "Cut the last axis first, then move the new axis.",
        ),
        Misconception(
            OutputForgotten,
            "The output projection is missing.",
            "Which of the five linear layers have you not used?",
        ),
    ),
    accepted=(RelativeAttention, RelativeByEinsum, RelativeBySdpa),
    equivalent_mutants={
        "`self.to_positions(positions).unflatten(-1, shape)` → "
        "`self.to_positions(positions).unflatten(1, shape)`": "positions have two axes",
        "`F.pad(where, (1, 0)).flatten(-2)` → `F.pad(where, (1, 0)).flatten(2)`": (
            "there are four axes"
        ),
    },
)
