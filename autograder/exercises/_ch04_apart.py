"""Chapter 04: one fused layer taken apart into heads; heads switched off; heads weighed."""

from __future__ import annotations

import numpy as np
import torch

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch04_parts import draw_layer

# --- slice_heads ---------------------------------------------------------------------------------


def slice_heads_cases(rng):
    """Numbers and widths of heads that differ, and differ from 3; one head; width 1."""
    for heads, d_head in ((2, 3), (4, 1), (1, 3)):
        yield Case("slices", _fused(rng, heads, d_head), f"{heads} heads of width {d_head}")


def _fused(rng, heads, d_head):
    layer = draw_layer(rng, heads * d_head)
    return {**{name: layer[name] for name in ("w_qkv", "b_qkv", "w_out")}, "heads": heads}


def slice_heads_reference(w_qkv, b_qkv, w_out, heads):
    """One slice after the other."""
    d_model = len(w_qkv)
    width = d_model // heads
    starts = [[part * d_model + h * width for h in range(heads)] for part in range(3)]
    small = [torch.stack([w_qkv[:, s : s + width] for s in row]) for row in starts]
    biases = [torch.stack([b_qkv[s : s + width] for s in row]) for row in starts]
    out = torch.stack([w_out[h * width : (h + 1) * width] for h in range(heads)])
    return torch.stack(small), torch.stack(biases), out


def _right(inputs):
    return slice_heads_reference(**inputs)


def columns_reshaped(**inputs):
    """Reshapes the matrix: rows and columns get mixed."""
    _, biases, out = _right(inputs)
    heads, d_model = inputs["heads"], len(inputs["w_qkv"])
    return inputs["w_qkv"].reshape(3, heads, d_model, -1), biases, out


def fused_matrix_read_head_by_head(**inputs):
    """Takes the interleaved layout for granted."""
    heads = inputs["heads"]
    small = inputs["w_qkv"].unflatten(1, (heads, 3, -1)).permute(2, 1, 0, 3)
    biases = inputs["b_qkv"].view(heads, 3, -1).transpose(0, 1)
    return small, biases, _right(inputs)[2]


def heads_before_the_three(**inputs):
    """(heads, 3, ...)."""
    small, biases, out = _right(inputs)
    return small.transpose(0, 1), biases.transpose(0, 1), out


def strided_columns(**inputs):
    """Head h gets every heads-th column."""
    heads = inputs["heads"]
    small = inputs["w_qkv"].unflatten(1, (3, -1, heads)).permute(1, 3, 0, 2)
    biases = inputs["b_qkv"].view(3, -1, heads).transpose(1, 2)
    return small, biases, _right(inputs)[2]


def output_cut_by_columns(**inputs):
    """Each head gets columns of w_out."""
    small, biases, _ = _right(inputs)
    columns = inputs["w_out"].unflatten(1, (inputs["heads"], -1))
    return small, biases, columns.permute(1, 2, 0)


def output_cut_by_columns_and_left(**inputs):
    """Each head gets columns of w_out, as (d_model, d_head)."""
    small, biases, _ = _right(inputs)
    return small, biases, inputs["w_out"].unflatten(1, (inputs["heads"], -1)).transpose(0, 1)


def output_rows_strided(**inputs):
    """Head h gets every heads-th row of w_out."""
    small, biases, _ = _right(inputs)
    return small, biases, inputs["w_out"].unflatten(0, (-1, inputs["heads"])).transpose(0, 1)


def small_matrices_transposed(**inputs):
    """(3, heads, d_head, d_model)."""
    small, biases, out = _right(inputs)
    return small.mT, biases, out


def biases_of_other_heads(**inputs):
    """Biases read head by head, matrices chunk by chunk."""
    small, _, out = _right(inputs)
    return small, inputs["b_qkv"].view(inputs["heads"], 3, -1).transpose(0, 1), out


def rows_cut_for_heads(**inputs):
    """Cuts the rows of w_qkv: each head would see only a part of x."""
    _, biases, out = _right(inputs)
    heads = inputs["heads"]
    small = inputs["w_qkv"].unflatten(1, (3, -1)).unflatten(0, (heads, -1))
    return small.permute(2, 0, 3, 1), biases, out


def slice_by_turning_axes(w_qkv, b_qkv, w_out, heads):
    """Right: axes are cut and moved."""
    small = w_qkv.unflatten(1, (3, heads, -1)).permute(1, 2, 0, 3)
    return small, b_qkv.unflatten(0, (3, heads, -1)), w_out.unflatten(0, (heads, -1))


def slice_by_chunks(w_qkv, b_qkv, w_out, heads):
    """Right: chunk by three, then by heads."""
    small = [torch.stack(third.chunk(heads, dim=1)) for third in w_qkv.chunk(3, dim=1)]
    biases = [torch.stack(third.chunk(heads)) for third in b_qkv.chunk(3)]
    return torch.stack(small), torch.stack(biases), torch.stack(w_out.chunk(heads))


def slice_by_einsum(w_qkv, b_qkv, w_out, heads):
    """Right: views and einsum."""
    d_model = w_qkv.size(0)
    small = torch.einsum("ithd->thid", w_qkv.view(d_model, 3, heads, d_model // heads))
    return small, b_qkv.view(3, heads, -1), w_out.view(heads, -1, d_model)


def slice_by_loop(w_qkv, b_qkv, w_out, heads):
    """Right: filled in, slice by slice."""
    d_model = w_qkv.shape[0]
    width = d_model // heads
    small = w_qkv.new_empty(3, heads, d_model, width)
    biases, out = w_qkv.new_empty(3, heads, width), w_qkv.new_empty(heads, width, d_model)
    for h in range(heads):
        for part in range(3):
            columns = slice(part * d_model + h * width, part * d_model + (h + 1) * width)
            small[part, h], biases[part, h] = w_qkv[:, columns], b_qkv[columns]
        out[h] = w_out[h * width : (h + 1) * width]
    return small, biases, out


_COLUMNS = "The columns hide three axes: (3, heads, d_head), in this order. Cut, then move axes."
_ROWS = (
    "Merged heads are the *input* of `w_out`. Which of its numbers does the first feature of "
    "head 0 meet in `merged @ w_out`?"
)

SLICE_HEADS = Exercise(
    id="slice_heads",
    title="Small matrices out of a large one",
    asks="Cut the fused matrices into the small ones that each head has for itself.",
    parameters=("w_qkv", "b_qkv", "w_out", "heads"),
    driver="tensor_function",
    outputs=("small_w", "small_b", "small_out"),
    groups={"slices": Group(3, "matrices and biases of every head")},
    cases=slice_heads_cases,
    reference=slice_heads_reference,
    misconceptions=(
        Misconception(
            columns_reshaped,
            "`w_qkv` was reshaped at once, which mixes rows and columns.",
            _COLUMNS,
        ),
        Misconception(
            fused_matrix_read_head_by_head,
            "The columns were read head by head; here they come in three chunks.",
            _COLUMNS,
        ),
        Misconception(
            heads_before_the_three,
            "The axis of the heads stands before the axis of the three parts.",
            "The shapes are stated: (3, heads, ...).",
        ),
        Misconception(
            strided_columns,
            "Each head gets every `heads`-th column; it should get neighbouring ones.",
            _COLUMNS,
        ),
        Misconception(
            output_cut_by_columns,
            "`w_out` was cut by columns (and turned to fit). Each head owns *rows* of it.",
            _ROWS,
        ),
        Misconception(
            output_cut_by_columns_and_left,
            "`w_out` was cut by columns. Each head owns *rows* of it.",
            _ROWS,
        ),
        Misconception(
            output_rows_strided,
            "Each head gets every `heads`-th row of `w_out`; it should get neighbouring ones.",
            _ROWS,
        ),
        Misconception(
            small_matrices_transposed,
            "The small matrices are transposed.",
            "They stand to the right of x: (d_model, d_head).",
        ),
        Misconception(
            biases_of_other_heads,
            "The matrices are right, but the biases were read head by head.",
            "Each bias belongs to a column of the matrix: cut both alike.",
        ),
        Misconception(
            rows_cut_for_heads,
            "The *rows* of `w_qkv` were cut, so each head would see a part of x only.",
            "Every head reads all of x. What is cut are outputs: columns.",
        ),
    ),
    accepted=(slice_by_turning_axes, slice_by_chunks, slice_by_einsum, slice_by_loop),
    equivalent_mutants={
        "`b_qkv.unflatten(0, (3, heads, -1))` → `b_qkv.unflatten(-1, (3, heads, -1))`": (
            "the biases have one axis"
        ),
    },
)

# --- gated_heads ---------------------------------------------------------------------------------


def gated_heads_cases(rng):
    """Gates of any size; as many heads as features or tokens; heads that are off."""
    heads, length = (int(n) for n in rng.permutation((3, 4)))
    x = rng.normal(size=(2, heads, length, 2))
    yield Case("gates", _gated(rng, x, rng.normal(size=heads)), "gates of any size")
    x = rng.normal(size=(1, 3, 4, 3))
    yield Case("gates", _gated(rng, x, rng.uniform(0.2, 2, 3)), "as many features as heads")
    x = rng.normal(size=(1, 3, 3, 2))
    yield Case("gates", _gated(rng, x, rng.uniform(0.2, 2, 3)), "as many tokens as heads")
    x, gates = rng.normal(size=(1, 3, 2, 2)), rng.permutation([0.0, 1.0, 1.0])
    x[:, gates == 0] *= 1e5
    yield Case("off", _gated(rng, x, gates), "heads that are off, with large numbers")
    yield Case("off", _gated(rng, x, np.zeros(3)), "all heads off")


def _gated(rng, head_outputs, gates):
    d_model = head_outputs.shape[1] * head_outputs.shape[3]
    layer = draw_layer(rng, d_model)
    weights = {"w_out": layer["w_out"], "b_out": layer["b_out"]}
    return {"head_outputs": head_outputs, "gates": gates, **weights}


def gated_heads_reference(head_outputs, gates, w_out, b_out):
    """Adds up what each head contributes."""
    width = head_outputs.shape[-1]
    total = b_out.expand(head_outputs.shape[0], head_outputs.shape[2], -1)
    for h, gate in enumerate(gates):
        total = total + gate * (head_outputs[:, h] @ w_out[h * width : (h + 1) * width])
    return total


def _project(gated, w_out, b_out):
    return gated.transpose(1, 2).flatten(2) @ w_out + b_out


def gates_ignored(head_outputs, gates, w_out, b_out):
    """All heads count fully."""
    return _project(head_outputs, w_out, b_out)


def gates_on_features(head_outputs, gates, w_out, b_out):
    """Broadcasts against the last axis."""
    return _project(head_outputs * gates, w_out, b_out)


def gates_on_positions(head_outputs, gates, w_out, b_out):
    """Broadcasts against the positions."""
    return _project(head_outputs * gates[:, None], w_out, b_out)


def gates_on_positions_of_merged_heads(head_outputs, gates, w_out, b_out):
    """Merges first, then tiles the gates: feature i gets gate i modulo heads."""
    merged = head_outputs.transpose(1, 2).flatten(2)
    return merged * gates.repeat(head_outputs.shape[-1]) @ w_out + b_out


def gates_after_the_projection(head_outputs, gates, w_out, b_out):
    """Multiplies the columns of the output."""
    plain = head_outputs.transpose(1, 2).flatten(2) @ w_out
    return plain * gates.repeat_interleave(head_outputs.shape[-1]) + b_out


def gates_as_switches(head_outputs, gates, w_out, b_out):
    """On or off, whatever the size."""
    return _project(head_outputs * (gates != 0)[:, None, None], w_out, b_out)


def gates_sum_to_one(head_outputs, gates, w_out, b_out):
    """Divides by the sum of the gates."""
    total = gates.sum()
    shares = gates / torch.where(total == 0, 1.0, total)
    return _project(head_outputs * shares[:, None, None], w_out, b_out)


def rest_made_up_for(head_outputs, gates, w_out, b_out):
    """Scales up what is left, as dropout does."""
    kept = (gates != 0).sum().clamp(min=1)
    return _project(head_outputs * (gates * len(gates) / kept)[:, None, None], w_out, b_out)


def bias_forgotten(head_outputs, gates, w_out, b_out):
    """No b_out."""
    return _project(head_outputs * gates[:, None, None], w_out, 0.0)


def bias_gated_too(head_outputs, gates, w_out, b_out):
    """The bias shrinks with the mean gate."""
    return _project(head_outputs * gates[:, None, None], w_out, gates.mean() * b_out)


def gated_heads_merged_by_reshape(head_outputs, gates, w_out, b_out):
    """Right gates, scrambled tokens."""
    batch, heads, length, d_head = head_outputs.shape
    gated = head_outputs * gates[:, None, None]
    return gated.reshape(batch, length, heads * d_head) @ w_out + b_out


def gated_by_broadcasting(head_outputs, gates, w_out, b_out):
    """Right: gates as (heads, 1, 1)."""
    return _project(head_outputs * gates.view(-1, 1, 1), w_out, b_out)


def gated_by_einsum(head_outputs, gates, w_out, b_out):
    """Right: one einsum."""
    rows = w_out.unflatten(0, (len(gates), -1))
    return torch.einsum("bhld,h,hdo->blo", head_outputs, gates, rows) + b_out


def gated_in_the_matrix(head_outputs, gates, w_out, b_out):
    """Right: the rows of w_out are multiplied, which is how a pruned layer is stored."""
    rows = w_out * gates.repeat_interleave(head_outputs.shape[-1])[:, None]
    return _project(head_outputs, rows, b_out)


def gated_after_merging(head_outputs, gates, w_out, b_out):
    """Right: each gate repeated for the features of its head."""
    merged = torch.cat(head_outputs.unbind(dim=1), dim=-1)
    return torch.addmm(
        b_out,
        (merged * gates.repeat_interleave(head_outputs.shape[3])).flatten(0, 1),
        w_out,
    ).unflatten(0, merged.shape[:2])


_ALIGN = (
    "Shapes are aligned on the right. Which axes of length 1 do the gates need to stand at the "
    "heads?"
)

GATED_HEADS = Exercise(
    id="gated_heads",
    title="Heads with a switch",
    asks="Multiply each head by its gate before the output projection.",
    parameters=("head_outputs", "gates", "w_out", "b_out"),
    driver="tensor_function",
    outputs=("output", "gradient of gates"),
    groups={
        "gates": Group(1, "gates of any size"),
        "off": Group(1, "heads that are off"),
    },
    cases=gated_heads_cases,
    reference=gated_heads_reference,
    misconceptions=(
        Misconception(gates_ignored, "The gates change nothing.", "Multiply by them."),
        Misconception(
            gates_on_features,
            "The gates meet the last axis: they multiply features, not heads.",
            _ALIGN,
        ),
        Misconception(
            gates_on_positions,
            "The gates meet the positions: they multiply tokens, not heads.",
            _ALIGN,
        ),
        Misconception(
            gates_on_positions_of_merged_heads,
            "After merging, the gates were repeated as 0, 1, 2, 0, 1, 2, …; the features of a head "
            "are neighbours.",
            "There are two functions that repeat: one repeats the row, one each entry.",
        ),
        Misconception(
            gates_after_the_projection,
            "The gates are applied after the output projection, where the heads are mixed already.",
            "A head must be gated while it is still by itself.",
        ),
        Misconception(
            gates_as_switches,
            "Gates are used as on or off; they are factors of any size.",
            "Multiply by the gate itself.",
        ),
        Misconception(
            gates_sum_to_one,
            "The gates are divided by their sum. They are factors, not shares.",
            "Leave out the division.",
        ),
        Misconception(
            rest_made_up_for,
            "The heads that are left are scaled up, as dropout does. Here they stay as they are.",
            "Leave out the division.",
        ),
        Misconception(
            bias_forgotten, "`b_out` is not added.", "With all heads off, b_out is left."
        ),
        Misconception(
            bias_gated_too,
            "The bias is gated as well; it belongs to no head.",
            "With all heads off, b_out is left.",
        ),
        Misconception(
            gated_heads_merged_by_reshape,
            "The heads were merged by one reshape, so each row mixes tokens.",
            "Heads and d_head must be neighbours before they become one axis.",
        ),
    ),
    accepted=(
        gated_by_broadcasting,
        gated_by_einsum,
        gated_in_the_matrix,
        gated_after_merging,
    ),
    equivalent_mutants={
        "`gated.transpose(1, 2)` → `gated.transpose(2, 1)`": "the same exchange of two axes",
    },
)
