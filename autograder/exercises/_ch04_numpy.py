"""Chapter 04 in NumPy: one matrix for queries, keys and values; multi-head attention."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.drivers.tensors import torch_as_it_was
from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises import _ch04_parts as parts

# --- project_qkv ---------------------------------------------------------------------------------


def project_qkv_cases(rng):
    """A sentence, a batch, two leading axes; lengths and batches that three divides."""
    s = draw_sizes(rng, "batch", "length", "d_model", among=(2, 3, 4))
    for group, shape, about in (
        ("values", (s.length, s.d_model), "one sentence"),
        ("leading", (s.batch, s.length, s.d_model), "a batch"),
        ("leading", (1, 3, 2, 2), "two leading axes"),
    ):
        layer = parts.draw_layer(rng, shape[-1])
        inputs = {"x": rng.normal(size=shape), "w_qkv": layer["w_qkv"], "b_qkv": layer["b_qkv"]}
        yield Case(group, inputs, about)


def project_qkv_reference(x, w_qkv, b_qkv):
    """One column after the other."""
    d_model = x.shape[-1]
    columns = [(x * w_qkv[:, j]).sum(axis=-1) + b_qkv[j] for j in range(3 * d_model)]
    return tuple(np.stack(columns[i * d_model : (i + 1) * d_model], axis=-1) for i in range(3))


def _thirds(projected):
    return np.split(projected, 3, axis=-1)


def keys_before_queries(x, w_qkv, b_qkv):
    """Takes the first chunk for the keys."""
    keys, queries, values = _thirds(x @ w_qkv + b_qkv)
    return queries, keys, values


def values_before_keys(x, w_qkv, b_qkv):
    """Exchanges keys and values."""
    queries, values, keys = _thirds(x @ w_qkv + b_qkv)
    return queries, keys, values


def every_third_column(x, w_qkv, b_qkv):
    """Deals the columns out one by one."""
    projected = x @ w_qkv + b_qkv
    return tuple(projected[..., i::3] for i in range(3))


def no_biases(x, w_qkv, b_qkv):
    """Forgets b_qkv."""
    return tuple(_thirds(x @ w_qkv))


def biases_for_the_queries_only(x, w_qkv, b_qkv):
    """Adds the first third of the biases and leaves the others."""
    queries, keys, values = _thirds(x @ w_qkv)
    return queries + b_qkv[: x.shape[-1]], keys, values


def same_biases_for_all_three(x, w_qkv, b_qkv):
    """Adds the queries' biases three times."""
    return tuple(part + b_qkv[: x.shape[-1]] for part in _thirds(x @ w_qkv))


def matrix_reshaped_in_three(x, w_qkv, b_qkv):
    """Reshapes the matrix to (3, d_model, d_model): rows get mixed."""
    d_model = x.shape[-1]
    matrices, biases = w_qkv.reshape(3, d_model, d_model), b_qkv.reshape(3, d_model)
    return tuple(x @ w + b for w, b in zip(matrices, biases, strict=True))


def positions_chunked(x, w_qkv, b_qkv):
    """Cuts the positions in three."""
    return tuple(np.array_split(x @ w_qkv + b_qkv, 3, axis=-2))


def columns_on_axis_one(x, w_qkv, b_qkv):
    """Cuts axis 1, which are the columns only if there is no batch."""
    d_model, projected = x.shape[-1], x @ w_qkv + b_qkv
    return tuple(projected[:, i * d_model : (i + 1) * d_model] for i in range(3))


def matrix_turned_round(x, w_qkv, b_qkv):
    """Transposes the matrix, as PyTorch's Linear does with its own."""
    return tuple(_thirds(x @ w_qkv.T + b_qkv))


def queries_scaled_already(x, w_qkv, b_qkv):
    """Divides the queries by √d_model."""
    queries, keys, values = _thirds(x @ w_qkv + b_qkv)
    return queries / np.sqrt(x.shape[-1]), keys, values


def project_by_slices_of_the_matrix(x, w_qkv, b_qkv):
    """Right: three matrices, three products."""
    d = x.shape[-1]
    return tuple(x @ w_qkv[:, i : i + d] + b_qkv[i : i + d] for i in range(0, 3 * d, d))


def project_by_reshape(x, w_qkv, b_qkv):
    """Right: the last axis becomes (3, d_model); the three move to the front."""
    projected = (x @ w_qkv + b_qkv).reshape(*x.shape[:-1], 3, x.shape[-1])
    queries, keys, values = np.moveaxis(projected, -2, 0)
    return queries, keys, values


def project_by_einsum(x, w_qkv, b_qkv):
    """Right: the matrix as (d_model, 3, d_model)."""
    d = x.shape[-1]
    projected = np.einsum("...i,ito->t...o", x, w_qkv.reshape(d, 3, d))
    return [projected[i] + b_qkv.reshape(3, d)[i] for i in range(3)]


def project_by_np_split(x, w_qkv, b_qkv):
    """Right: np.split with an axis counted from the end."""
    return np.split(np.matmul(x, w_qkv) + b_qkv, 3, axis=-1)


_ORDER = "The order is stated: queries, keys, values. Both in the columns and in what you return."
_THREE_CHUNKS = "Each chunk is a run of d_model neighbouring columns. Which axis holds columns?"

PROJECT_QKV = Exercise(
    id="project_qkv",
    title="One matrix for queries, keys and values",
    asks="Multiply by one fused matrix and cut the result into queries, keys and values.",
    parameters=("x", "w_qkv", "b_qkv"),
    outputs=("queries", "keys", "values"),
    groups={
        "values": Group(1, "one sentence"),
        "leading": Group(1, "leading axes"),
    },
    cases=project_qkv_cases,
    reference=project_qkv_reference,
    misconceptions=(
        Misconception(keys_before_queries, "Queries and keys are exchanged.", _ORDER),
        Misconception(values_before_keys, "Keys and values are exchanged.", _ORDER),
        Misconception(
            every_third_column,
            "The columns are dealt out one by one (every third one is a query's).",
            _THREE_CHUNKS,
        ),
        Misconception(no_biases, "The biases `b_qkv` are not added.", "One addition is missing."),
        Misconception(
            biases_for_the_queries_only,
            "Only the queries get their biases.",
            "`b_qkv` has 3 · d_model entries, one for each column of the matrix.",
        ),
        Misconception(
            same_biases_for_all_three,
            "Queries, keys and values all get the first third of the biases.",
            "`b_qkv` is chunked as the columns are. When is the simplest moment to add it?",
        ),
        Misconception(
            matrix_reshaped_in_three,
            "The matrix was reshaped to (3, d_model, d_model), which keeps the order of numbers "
            "in memory and so mixes its rows.",
            "The three lie side by side in the *last* axis of the matrix.",
        ),
        Misconception(
            positions_chunked,
            "The positions were cut in three and not the columns.",
            _THREE_CHUNKS,
        ),
        Misconception(
            columns_on_axis_one,
            "The cut is on axis 1. With a batch, axis 1 holds positions.",
            "Count the axis from the end, or use `...`.",
        ),
        Misconception(
            matrix_turned_round,
            "The matrix was transposed, so the inner lengths of the product don't fit.",
            "Write the two shapes side by side: the inner lengths must agree.",
        ),
        Misconception(
            queries_scaled_already,
            "The queries are scaled here. Scaling belongs to the scores, in the next exercise.",
            "Leave out the division.",
        ),
    ),
    accepted=(
        project_by_slices_of_the_matrix,
        project_by_reshape,
        project_by_einsum,
        project_by_np_split,
    ),
)

# --- multi_head ----------------------------------------------------------------------------------


def multi_head_cases(rng):
    """A batch whose sizes all differ, a sentence; one head, one token, large scores."""
    batch, several, length, d_head = parts.draw_head_sizes(rng)
    for group, shape, heads, about in (
        ("heads", (batch, length, several * d_head), several, f"{batch} sentences"),
        ("heads", (1, 3, 4), 2, "one sentence, 2 heads of width 2"),
        ("edges", (1, 3, 2), 1, "one head"),
        ("edges", (1, 1, 6), 3, "a single token"),
        ("edges", (1, 3, 4), 2, "large scores"),
    ):
        x = rng.normal(size=shape) * (60 if about == "large scores" else 1)
        yield Case(group, {"x": x, **parts.draw_layer(rng, shape[-1]), "heads": heads}, about)


def multi_head_reference(x, w_qkv, b_qkv, w_out, b_out, heads):
    """PyTorch's own function, which has positions first and matrices on the left."""
    given = torch.from_numpy(x).transpose(0, 1)
    output, weights = F.multi_head_attention_forward(
        *(given, given, given),
        *(x.shape[-1], heads),
        *(torch.from_numpy(w_qkv.T.copy()), torch.from_numpy(b_qkv)),
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=torch.from_numpy(w_out.T.copy()),
        out_proj_bias=torch.from_numpy(b_out),
        average_attn_weights=False,
    )
    return output.transpose(0, 1).numpy(), weights.numpy()


def _layer(inputs, **steps):
    given = {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in inputs.items()
    }
    with torch_as_it_was():
        return tuple(part.numpy() for part in parts.layer(**given, **steps))


def _one_wrong_step(name):
    def wrong(**inputs):
        return _layer(inputs, **parts.WRONG_STEPS[name])

    wrong.__name__ = name
    return Misconception(wrong, *parts.HELP[name])


def no_output_projection(**inputs):
    """Returns the merged heads."""
    d_model = inputs["x"].shape[-1]
    return _layer({**inputs, "w_out": np.eye(d_model), "b_out": np.zeros(d_model)})


def output_matrix_transposed(**inputs):
    """Square, so nobody complains."""
    return _layer({**inputs, "w_out": inputs["w_out"].T})


def no_biases_at_all(**inputs):
    """Both biases forgotten."""
    zeros = {name: np.zeros_like(inputs[name]) for name in ("b_qkv", "b_out")}
    return _layer({**inputs, **zeros})


def no_bias_at_the_output(**inputs):
    """b_out forgotten."""
    return _layer({**inputs, "b_out": np.zeros_like(inputs["b_out"])})


def no_bias_at_the_input(**inputs):
    """b_qkv forgotten."""
    return _layer({**inputs, "b_qkv": np.zeros_like(inputs["b_qkv"])})


def softmax_overflows(**inputs):
    """exp of large scores."""

    def weigh(scores, mask):
        powers = scores.exp()
        return powers / powers.sum(dim=-1, keepdim=True)

    return _layer(inputs, weigh=weigh)


def one_wide_head(**inputs):
    """Never cuts into heads."""
    return _layer({**inputs, "heads": 1})


def heads_back_in_the_wrong_order(x, w_qkv, b_qkv, w_out, b_out, heads):
    """Folds heads and batch as (heads·batch) and unfolds them as (batch, heads)."""
    batch, length, d_model = x.shape

    def fold(part):
        return np.concatenate(np.split(part, heads, axis=-1))

    queries, keys, values = map(fold, np.split(x @ w_qkv + b_qkv, 3, axis=-1))
    scores = torch.from_numpy(queries @ keys.swapaxes(1, 2) / np.sqrt(d_model // heads))
    weights = scores.softmax(dim=-1).numpy()
    merged = (weights @ values).reshape(batch, heads, length, -1).swapaxes(1, 2)
    output = merged.reshape(batch, length, d_model) @ w_out + b_out
    return output, weights.reshape(batch, heads, length, length)


def _softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def multi_head_by_loop(x, w_qkv, b_qkv, w_out, b_out, heads):
    """Right: one head after the other, columns by slices, then concatenated."""
    d_model, width = x.shape[-1], x.shape[-1] // heads
    projected, found, all_weights = x @ w_qkv + b_qkv, [], []
    for first in range(0, d_model, width):
        queries, keys, values = (
            projected[..., i * d_model + first : i * d_model + first + width] for i in range(3)
        )
        all_weights.append(_softmax(queries @ keys.swapaxes(-1, -2) / width**0.5))
        found.append(all_weights[-1] @ values)
    return np.concatenate(found, axis=-1) @ w_out + b_out, np.stack(all_weights, axis=1)


def multi_head_by_einsum(x, w_qkv, b_qkv, w_out, b_out, heads):
    """Right: axes are only named, and the output matrix is cut instead of the heads merged."""
    batch, length, d_model = x.shape
    projected = (x @ w_qkv + b_qkv).reshape(batch, length, 3, heads, d_model // heads)
    queries, keys, values = np.moveaxis(projected, 2, 0)
    scores = np.einsum("bqhd,bkhd->bhqk", queries / np.sqrt(d_model // heads), keys)
    weights = _softmax(scores)
    rows = w_out.reshape(heads, d_model // heads, d_model)
    return np.einsum("bhqk,bkhd,hdo->bqo", weights, values, rows) + b_out, weights


def multi_head_by_folding(x, w_qkv, b_qkv, w_out, b_out, heads):
    """Right: batch and heads are one axis while attention runs."""
    batch, length, d_model = x.shape

    def fold(part):
        cut = part.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)
        return cut.reshape(batch * heads, length, -1)

    queries, keys, values = map(fold, np.split(x @ w_qkv + b_qkv, 3, axis=-1))
    weights = _softmax(queries @ keys.transpose(0, 2, 1) / np.sqrt(d_model / heads))
    merged = (weights @ values).reshape(batch, heads, length, -1).transpose(0, 2, 1, 3)
    output = merged.reshape(batch, length, d_model) @ w_out + b_out
    return output, weights.reshape(batch, heads, length, length)


_BIASES = "`b_qkv` is added before the heads are cut, `b_out` at the very end."

MULTI_HEAD = Exercise(
    id="multi_head",
    title="Multi-head attention in NumPy",
    asks="Project, chunk, cut into heads, attend, merge, project: self-attention with heads.",
    parameters=("x", "w_qkv", "b_qkv", "w_out", "b_out", "heads"),
    outputs=("output", "weights"),
    groups={
        "heads": Group(3, "several heads"),
        "edges": Group(1, "one head, one token, large scores"),
    },
    cases=multi_head_cases,
    reference=multi_head_reference,
    misconceptions=(
        *map(_one_wrong_step, parts.WRONG_STEPS),
        Misconception(
            no_output_projection,
            "The merged heads are returned as they are; the output projection is missing.",
            "What are `w_out` and `b_out` for?",
        ),
        Misconception(
            output_matrix_transposed,
            "`w_out` was transposed; it is square, so no shape complains.",
            "All matrices of this exercise stand to the right of the vectors.",
        ),
        Misconception(no_biases_at_all, "Neither of the two biases is added.", _BIASES),
        Misconception(no_bias_at_the_output, "`b_out` is not added.", _BIASES),
        Misconception(no_bias_at_the_input, "`b_qkv` is not added.", _BIASES),
        Misconception(
            softmax_overflows,
            "exp overflows for large scores.",
            "What may be taken from all scores of a row without changing the weights?",
        ),
        Misconception(
            one_wide_head,
            "The vectors were never cut into heads: this is attention with a single head.",
            "`heads` must change the result.",
        ),
        Misconception(
            heads_back_in_the_wrong_order,
            "Batch and heads were folded into one axis with the heads in front, and unfolded with "
            "the batch in front: sentences get numbers of other sentences.",
            "Unfold in the order in which you folded.",
        ),
    ),
    accepted=(multi_head_by_loop, multi_head_by_einsum, multi_head_by_folding),
    equivalent_mutants={
        "`keys.swapaxes(-1, -2)` → `keys.swapaxes(-1, 2)`": "there are always four axes",
    },
)
