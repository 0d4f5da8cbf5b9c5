"""Chapter 04 as a module: `MultiHeadAttention`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_course.judging import Case
from autograder.case_making import draw_mask
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises import _ch04_parts as parts


def _case(group, about, rng, layer, heads, x, mask=None):
    weights = {
        "qkv.weight": layer["w_qkv"].T.copy(),
        "qkv.bias": layer["b_qkv"],
        "out.weight": layer["w_out"].T.copy(),
        "out.bias": layer["b_out"],
    }
    return Case(
        group,
        {
            "build": {"d_model": x.shape[-1], "heads": heads},
            "weights": weights,
            "inputs": {"x": x, "mask": mask},
            "upstream": rng.normal(size=x.shape),
        },
        about,
    )


def module_cases(rng):
    """A batch, a single sentence, masks of two shapes, and widths that don't divide."""
    batch, heads, length, d_head = parts.draw_head_sizes(rng)
    layer = parts.draw_layer(rng, heads * d_head)
    x = rng.normal(size=(batch, length, heads * d_head))
    yield _case("layer", f"{heads} heads, no mask", rng, layer, heads, x)
    layer = parts.draw_layer(rng, 4)
    yield _case("layer", "one sentence, no mask", rng, layer, 2, rng.normal(size=(1, 2, 4)))
    layer = parts.draw_layer(rng, 3)  # heads of width 1: masks are what these cases are about
    x = rng.normal(size=(2, 4, 3))
    mask = draw_mask(rng, 2, 1, 4, 4)
    yield _case("mask", "3 heads, a mask for each sentence", rng, layer, 3, x, mask)
    layer = parts.draw_layer(rng, 2)
    x = rng.normal(size=(1, 3, 2))
    yield _case("mask", "a mask for each head", rng, layer, 2, x, draw_mask(rng, 2, 3, 3))
    for d_model, heads in ((3, 2), (6, 4), (2, 3)):
        x = rng.normal(size=(1, 2, d_model))
        about = f"d_model = {d_model} with {heads} heads"
        yield _case("uneven", about, rng, parts.draw_layer(rng, d_model), heads, x)


class ByPyTorch(nn.Module):
    """PyTorch's own function, which has positions first and True = hidden."""

    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        """x: (batch, length, d_model). Returns (output, weights)."""
        batch, length, d_model = x.shape
        if mask is not None:
            mask = ~mask.expand(batch, self.heads, length, length).flatten(0, 1)
        output, weights = F.multi_head_attention_forward(
            *(3 * [x.transpose(0, 1)]),
            *(d_model, self.heads, self.qkv.weight, self.qkv.bias),
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout_p=0.0,
            out_proj_weight=self.out.weight,
            out_proj_bias=self.out.bias,
            attn_mask=mask,
            average_attn_weights=False,
        )
        return output.transpose(0, 1), weights


class _Layer(nn.Module):
    """The layer with a step replaced by a wrong one, or none."""

    steps: dict = {}  # noqa: RUF012 (read only)

    def __init__(self, d_model, heads):
        super().__init__()
        self.refuse(d_model, heads)
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def refuse(self, d_model, heads):
        if d_model % heads:
            raise ValueError(f"{heads} heads do not divide d_model = {d_model}")

    def matrices(self):
        return (self.qkv.weight.T, self.qkv.bias, self.out.weight.T, self.out.bias)

    def forward(self, x, mask=None):
        return parts.layer(x, *self.matrices(), self.heads, mask, **self.steps)


def _one_wrong_step(name):
    wrong = type(name, (_Layer,), {"steps": parts.WRONG_STEPS[name]})
    return Misconception(wrong, *parts.HELP[name])


# The checks file is small without these three, which the exercise in NumPy names.
STEPS = [
    name
    for name in parts.WRONG_STEPS
    if name not in ("values_before_queries", "divided_by_d_head", "merged_feature_by_feature")
]


class OutputProjectionForgotten(_Layer):
    """Has `out` and never calls it."""

    def matrices(self):
        d_model = self.out.weight.shape[0]
        eye, zeros = torch.eye(d_model).double(), torch.zeros(d_model).double()
        return (self.qkv.weight.T, self.qkv.bias, eye, zeros)


class WeightsUsedByHand(_Layer):
    """Multiplies by the matrices and forgets the biases."""

    def matrices(self):
        return (self.qkv.weight.T, 0.0, self.out.weight.T, 0.0)


class WeightsAveragedOverHeads(_Layer):
    """What nn.MultiheadAttention returns unless told otherwise."""

    def forward(self, x, mask=None):
        output, weights = super().forward(x, mask)
        return output, weights.mean(dim=1)


class WeightsDetached(_Layer):
    """Uses `.data`: right numbers, no gradient for the parameters."""

    def matrices(self):
        return tuple(matrix.detach() for matrix in super().matrices())


class InputDetached(_Layer):
    """No gradient for the layers below."""

    def forward(self, x, mask=None):
        return super().forward(x.detach(), mask)


class MaskIgnored(_Layer):
    """Accepts a mask and does nothing with it."""

    def forward(self, x, mask=None):
        return super().forward(x)


class MaskInverted(_Layer):
    """Hides what may be seen, as for nn.MultiheadAttention."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else ~mask)


def _with_mask(weigh):
    def weigh_or_plain(scores, mask):
        return scores.softmax(dim=-1) if mask is None else weigh(scores, mask)

    return {"weigh": weigh_or_plain}


class MaskAfterTheSoftmax(_Layer):
    """Rows do not sum to 1 any more."""

    steps = _with_mask(lambda scores, mask: scores.softmax(dim=-1) * mask)


class MaskTimesScores(_Layer):
    """Hidden scores become 0, and e to the 0 is 1."""

    steps = _with_mask(lambda scores, mask: (scores * mask).softmax(dim=-1))


class MaskAddedToScores(_Layer):
    """True counts as 1: hardly anything is hidden."""

    steps = _with_mask(lambda scores, mask: (scores + mask).softmax(dim=-1))


class TriangleWhateverTheMask(_Layer):
    """Replaces the mask by a causal one."""

    steps = _with_mask(
        lambda scores, mask: scores.masked_fill(
            torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf
        ).softmax(dim=-1)
    )


class UnevenWidthsAccepted(_Layer):
    """// rounds down: the layers are silently narrower."""

    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        inner = heads * (d_model // heads)
        self.qkv, self.out = nn.Linear(d_model, 3 * inner), nn.Linear(inner, d_model)

    def refuse(self, d_model, heads):
        pass


class UnevenWidthsByAssert(_Layer):
    """AssertionError."""

    def refuse(self, d_model, heads):
        assert d_model % heads == 0, "heads must divide d_model"


class UnevenWidthsFoundInForward(_Layer):
    """RuntimeError of a reshape, much later than it should be."""

    def refuse(self, d_model, heads):
        pass

    def forward(self, x, mask=None):
        x.reshape(*x.shape[:-1], self.heads, x.shape[-1] // self.heads)
        return super().forward(x, mask)


class UnevenWidthsOnlyIfNarrow(_Layer):
    """Tests for too many heads and not for a remainder."""

    def refuse(self, d_model, heads):
        if heads > d_model:
            raise ValueError("too many heads")

    def forward(self, x, mask=None):
        x.reshape(*x.shape[:-1], self.heads, x.shape[-1] // self.heads)
        return super().forward(x, mask)


class OneMatrixForEach(nn.Module):
    """Three layers for queries, keys and values: other parameter names."""

    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))
        self.out = nn.Linear(d_model, d_model)


class LayersInAList(nn.Module):
    """A Python list hides the layers from `parameters()`."""

    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.layers = [nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)]


class BySdpa(_Layer):
    """Right: PyTorch's kernel on split heads; weights once more by hand."""

    def forward(self, x, mask=None):
        batch, length, d_model = x.shape
        shape = (batch, length, 3, self.heads, d_model // self.heads)
        queries, keys, values = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(d_model // self.heads)
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        return self.out(found.transpose(1, 2).reshape(x.shape)), scores.softmax(-1)


class ByEinsum(_Layer):
    """Right: einsum for both products, a large negative number for what is hidden."""

    def forward(self, x, mask=None):
        split = [part.unflatten(-1, (self.heads, -1)) for part in self.qkv(x).chunk(3, dim=-1)]
        queries, keys, values = split
        queries = queries / queries.shape[-1] ** 0.5
        scores = torch.einsum("bqhd,bkhd->bhqk", queries, keys)
        if mask is not None:
            scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", weights, values).flatten(2)), weights


class ByLoop(nn.Module):
    """Right: one head after the other; masked weights made to sum to 1 again."""

    def __init__(self, d_model: int, heads: int):
        super().__init__()
        self.d_head, rest = divmod(d_model, heads)
        if rest != 0:
            raise ValueError(f"heads ({heads}) must divide d_model ({d_model})")
        self.qkv, self.out = nn.Linear(d_model, d_model * 3), nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        columns = self.qkv(x).split(self.d_head, dim=-1)
        heads, found, all_weights = len(columns) // 3, [], []
        if mask is not None:
            mask = mask.expand(len(x), heads, x.shape[1], x.shape[1])
        for h in range(heads):
            queries, keys, values = columns[h], columns[heads + h], columns[2 * heads + h]
            weights = torch.softmax(queries @ keys.mT * self.d_head**-0.5, dim=-1)
            if mask is not None:
                weights = weights * mask[:, h]
                weights = weights / weights.sum(dim=-1, keepdim=True)
            found.append(weights @ values)
            all_weights.append(weights)
        return self.out(torch.cat(found, dim=-1)), torch.stack(all_weights, dim=1)


_HIDE_BEFORE = "A hidden key needs a score whose exp is 0, before the softmax."
_CHECK_EARLY = (
    "Test the remainder in `__init__`, before any layer is made: `raise ValueError(...)`."
)
_NAMES = "The exercise names the two layers `qkv` and `out`, each an `nn.Linear`."

MULTI_HEAD_ATTENTION = Exercise(
    id="MultiHeadAttention",
    title="Multi-head attention as a module",
    asks="Write multi-head self-attention with a mask as an nn.Module with layers qkv and out.",
    parameters=("build", "weights", "inputs", "upstream"),
    driver="module",
    seconds=5.0,
    outputs=("output", "weights", "gradient of x", "gradient of qkv.bias"),
    forbidden=("torch.nn.functional.multi_head_attention_forward",),
    groups={
        "layer": Group(2, "the layer without a mask, and its gradients"),
        "mask": Group(2, "masks for each sentence or for each head"),
        "uneven": Group(1, "widths that don't divide raise ValueError"),
    },
    cases=module_cases,
    reference=ByPyTorch,
    misconceptions=(
        *map(_one_wrong_step, STEPS),
        Misconception(
            OutputProjectionForgotten,
            "The merged heads are returned as they are: `out` is never called.",
            "What is the last step of the layer?",
        ),
        Misconception(
            WeightsUsedByHand,
            "The matrices are used without their biases.",
            "Call the layers, `self.qkv(x)`, and they do all of it.",
        ),
        Misconception(
            WeightsAveragedOverHeads,
            "The weights are averaged over the heads, as `nn.MultiheadAttention` does unless told "
            "otherwise.",
            "Return them for each head: (batch, heads, queries, keys).",
        ),
        Misconception(
            WeightsDetached,
            "The numbers are right, but no gradient reaches the parameters: they were used through "
            "`.data` or `.detach()`. This layer would never learn.",
            "Call the layers themselves.",
        ),
        Misconception(
            InputDetached,
            "The numbers are right, but no gradient reaches `x`: layers below would never learn.",
            "No `.detach()`, `.numpy()` or `torch.tensor(...)` on the way.",
        ),
        Misconception(MaskIgnored, "The mask changes nothing.", _HIDE_BEFORE),
        Misconception(
            MaskInverted,
            "The mask is read the wrong way round: in this course True = may be seen. "
            "(`nn.MultiheadAttention` wants the opposite.)",
            "What should happen to scores where the mask is False?",
        ),
        Misconception(
            MaskAfterTheSoftmax,
            "The mask is applied after the softmax, so rows no longer sum to 1.",
            _HIDE_BEFORE,
        ),
        Misconception(
            MaskTimesScores,
            "The scores are multiplied by the mask: hidden ones become 0, and e⁰ is 1.",
            _HIDE_BEFORE,
        ),
        Misconception(
            MaskAddedToScores,
            "The mask is added as 0 and 1, which hides nothing.",
            _HIDE_BEFORE,
        ),
        Misconception(
            TriangleWhateverTheMask,
            "Whatever the mask says, a causal one is used.",
            "Use the mask that is given; it may be any.",
        ),
        Misconception(
            UnevenWidthsAccepted,
            "Widths that the heads don't divide are accepted: `//` rounds down without a word.",
            _CHECK_EARLY,
        ),
        Misconception(
            UnevenWidthsByAssert,
            "`assert` raises AssertionError; the text asks for ValueError.",
            _CHECK_EARLY,
        ),
        Misconception(
            UnevenWidthsFoundInForward,
            "Nothing is refused when the layer is made; a reshape fails later, with RuntimeError.",
            _CHECK_EARLY,
        ),
        Misconception(
            UnevenWidthsOnlyIfNarrow,
            "Only more heads than features are refused. The heads must *divide* d_model.",
            _CHECK_EARLY,
        ),
        Misconception(
            OneMatrixForEach,
            "There are separate layers for queries, keys and values; here one matrix is asked for.",
            _NAMES,
        ),
        Misconception(
            LayersInAList,
            "The layers stand in a plain Python list, where `nn.Module` does not find them: an "
            "optimiser would get no parameters.",
            _NAMES,
        ),
    ),
    accepted=(BySdpa, ByEinsum, ByLoop),
    equivalent_mutants={
        "`part.unflatten(-1, (self.heads, -1)).transpose(1, 2)` → "
        "`part.unflatten(-1, (self.heads, -1)).transpose(2, 1)`": "the same exchange of two axes",
        "`(weights @ values).transpose(1, 2)` → `(weights @ values).transpose(2, 1)`": (
            "the same exchange of two axes"
        ),
    },
)
