"""Chapter 05: the MLP treats every position alike, so padding need not go through it."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch05_parts import draw_linear


def packed_mlp_cases(rng):
    """Padding at the end, gaps anywhere, and large numbers in the padding."""

    def inputs(real, poison):
        d_model, d_hidden = 2, int(rng.choice([6, 7, 8]))
        w_in, b_in = draw_linear(rng, d_model, d_hidden)
        w_out, b_out = draw_linear(rng, d_hidden, d_model)
        x = rng.normal(size=(*real.shape, d_model))
        x = np.where(real[..., None], x, poison * x)
        weights = {"w_in": w_in, "b_in": b_in, "w_out": w_out, "b_out": b_out}
        return {"x": x, "real": real, **weights}

    for poison, group in ((1.0, "values"), (1e6, "poison")):
        batch, length = (int(n) for n in rng.choice([3, 4, 5], size=2, replace=False))
        lengths = np.append(rng.permutation(np.arange(1, length))[: batch - 1], length)
        lengths = np.resize(rng.permutation(lengths), batch)
        ends = np.arange(length) < lengths[:, None]
        yield Case(group, inputs(ends, poison), "sequences of unequal length")
        gaps = np.arange(batch * length).reshape(batch, length) % 3 != rng.integers(3)
        gaps = rng.permuted(gaps, axis=1)
        gaps[0] = np.roll(np.arange(length) < 2, rng.integers(1, length - 1))  # none in front
        yield Case(group, inputs(gaps, poison), "gaps anywhere in a sequence")


def packed_mlp_reference(x, real, w_in, b_in, w_out, b_out):
    """Token by token, in the order of reading."""
    output, packed = torch.zeros_like(x), []
    for sequence in range(x.shape[0]):
        for place in range(x.shape[1]):
            if real[sequence, place]:
                token = x[sequence, place]
                packed.append(token)
                hidden = functional.gelu(functional.linear(token, w_in, b_in))
                output[sequence, place] = functional.linear(hidden, w_out, b_out)
    return output, torch.stack(packed)


def _mlp(x, w_in, b_in, w_out, b_out):
    return functional.linear(functional.gelu(functional.linear(x, w_in, b_in)), w_out, b_out)


def _scattered(x, real, packed, *weights):
    output = torch.zeros_like(x)
    output[real] = _mlp(packed, *weights)
    return output, packed


def mask_inverted(x, real, w_in, b_in, w_out, b_out):
    """Packs the padding."""
    return _scattered(x, ~real, x[~real], w_in, b_in, w_out, b_out)


def padding_kept(x, real, w_in, b_in, w_out, b_out):
    """Leaves in the padding what was there."""
    output, packed = x.clone(), x[real]
    output[real] = _mlp(packed, w_in, b_in, w_out, b_out)
    return output, packed


def everything_packed(x, real, w_in, b_in, w_out, b_out):
    """Sends all places through the MLP and sets the padding to 0 afterwards."""
    packed = x.flatten(0, 1)
    output = _mlp(packed, w_in, b_in, w_out, b_out).reshape(x.shape)
    return output * real[..., None], packed


def padding_answered(x, real, w_in, b_in, w_out, b_out):
    """Sends all places through the MLP and leaves the padding's results where they are."""
    return _mlp(x, w_in, b_in, w_out, b_out), x[real]


def zeros_packed(x, real, w_in, b_in, w_out, b_out):
    """Sets the padding to 0 and sends everything through: the MLP makes something of zeros."""
    packed = (x * real[..., None]).flatten(0, 1)
    return _mlp(packed, w_in, b_in, w_out, b_out).reshape(x.shape), packed


def place_by_place(x, real, w_in, b_in, w_out, b_out):
    """Packs the first token of every sequence, then the second of every sequence, ..."""
    output, packed = torch.zeros_like(x), x.transpose(0, 1)[real.T]
    output.transpose(0, 1)[real.T] = _mlp(packed, w_in, b_in, w_out, b_out)
    return output, packed


def written_to_the_front(x, real, w_in, b_in, w_out, b_out):
    """Writes the results one after the other from the front."""
    packed = x[real]
    output = torch.zeros_like(x).flatten(0, 1)
    output[: len(packed)] = _mlp(packed, w_in, b_in, w_out, b_out)
    return output.reshape(x.shape), packed


def padding_at_the_end_taken_for_granted(x, real, w_in, b_in, w_out, b_out):
    """Counts the tokens of each sequence and takes that many from its front."""
    ends = torch.arange(x.shape[1]) < real.sum(dim=1, keepdim=True)
    return _scattered(x, ends, x[ends], w_in, b_in, w_out, b_out)


def result_stays_packed(x, real, w_in, b_in, w_out, b_out):
    """Never puts the results back."""
    packed = x[real]
    return _mlp(packed, w_in, b_in, w_out, b_out), packed


def results_packed_instead_of_tokens(x, real, w_in, b_in, w_out, b_out):
    """Returns the MLP's outputs as `packed`."""
    output = torch.zeros_like(x)
    output[real] = _mlp(x[real], w_in, b_in, w_out, b_out)
    return output, output[real]


def copies_without_gradient(x, real, w_in, b_in, w_out, b_out):
    """Goes through NumPy or `.data`: the gradient is lost."""
    return _scattered(x, real, x.detach()[real], w_in, b_in, w_out, b_out)


def written_into_x(x, real, w_in, b_in, w_out, b_out):
    """Writes the results into the caller's tensor."""
    packed = x[real]
    x[real] = _mlp(packed, w_in, b_in, w_out, b_out)
    return x * real[..., None], packed


def packed_by_index(x, real, w_in, b_in, w_out, b_out):
    """Right: flat indices, `index_select` and `index_copy`."""
    flat, places = x.reshape(-1, x.shape[-1]), real.reshape(-1).nonzero()[:, 0]
    packed = flat.index_select(0, places)
    result = _mlp(packed, w_in, b_in, w_out, b_out)
    return torch.zeros_like(flat).index_copy(0, places, result).view_as(x), packed


def packed_by_concatenation(x, real, w_in, b_in, w_out, b_out):
    """Right: sequence by sequence, cut and put together."""
    parts = [sequence[keep] for sequence, keep in zip(x, real, strict=True)]
    results = _mlp(torch.cat(parts), w_in, b_in, w_out, b_out).split([len(p) for p in parts])
    rows = []
    for keep, result in zip(real, results, strict=True):
        row = result.new_zeros(len(keep), result.shape[-1])
        row[keep] = result
        rows.append(row)
    return torch.stack(rows), torch.cat(parts)


def packed_by_scatter(x, real, w_in, b_in, w_out, b_out):
    """Right: `masked_select` and `masked_scatter`."""
    spread = real[:, :, None].expand_as(x)
    packed = x.masked_select(spread).view(-1, x.shape[-1])
    result = _mlp(packed, w_in, b_in, w_out, b_out)
    return torch.zeros_like(x).masked_scatter(spread, result), packed


PACKED_MLP = Exercise(
    id="packed_mlp",
    title="The same MLP for every position",
    asks="Send only the real tokens of a padded batch through the MLP, and put the results back.",
    parameters=("x", "real", "w_in", "b_in", "w_out", "b_out"),
    outputs=("output", "packed", "gradient of x"),
    driver="tensor_function",
    seconds=10.0,
    groups={
        "values": Group(2, "unequal lengths, and gaps"),
        "poison": Group(1, "large numbers in the padding"),
    },
    cases=packed_mlp_cases,
    reference=packed_mlp_reference,
    misconceptions=(
        Misconception(
            mask_inverted,
            "The padding is packed, and the real tokens are left out.",
            "`real` is True where there is a token.",
        ),
        Misconception(
            padding_kept,
            "The padding keeps its old content.",
            "What does the contract say about places with no token?",
        ),
        Misconception(
            everything_packed,
            "All places go through the MLP, the padding too; that is the work to be saved.",
            "How many rows should `packed` have?",
        ),
        Misconception(
            zeros_packed,
            "The padding is set to 0 and goes through the MLP, whose biases make something of it.",
            "How many rows should `packed` have?",
        ),
        Misconception(
            place_by_place,
            "The tokens are packed place by place; the contract asks for sequence by sequence.",
            "Boolean indexing with `real` itself gives the order of reading.",
        ),
        Misconception(
            written_to_the_front,
            "The results are written from the front, one after the other, not to their places.",
            "Which expression on the left of `=` means “the places that are real”?",
        ),
        Misconception(
            padding_at_the_end_taken_for_granted,
            "Only the number of tokens is used, as if padding stood at the end; there may be gaps.",
            "Use `real` itself and not its sum.",
        ),
        Misconception(
            result_stays_packed,
            "The results are never put back to their places.",
            "Which shape has `output` in the contract?",
        ),
        Misconception(
            results_packed_instead_of_tokens,
            "`packed` holds what came out of the MLP; it should hold what went in.",
            "Keep the packed tokens under a name of their own.",
        ),
        Misconception(
            copies_without_gradient,
            "The tokens are cut out of the graph (`detach`, `.data`, NumPy): x gets no gradient.",
            "Indexing alone keeps the graph.",
        ),
        Misconception(
            written_into_x,
            "The results are written into the caller's tensor.",
            "Start from `torch.zeros_like(x)`.",
        ),
        Misconception(
            padding_answered,
            "The padding went through the MLP too, and its results stand in the output.",
            "What does the contract say about places with no token?",
        ),
    ),
    accepted=(packed_by_index, packed_by_concatenation, packed_by_scatter),
)
