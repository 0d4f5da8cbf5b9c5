"""Chapter 04: weights that come from elsewhere, in another layout."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from attention_course.comparing import Tolerance
from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch04_parts import draw_layer

# --- from_pytorch --------------------------------------------------------------------------------


def from_pytorch_cases(rng):
    """Two layers with biases, two without."""
    for group, width, about in (
        ("biases", 3, "d_model = 3"),
        ("biases", 2, "d_model = 2"),
        ("none", 3, "a layer made with bias=False, d_model = 3"),
        ("none", 2, "a layer made with bias=False, d_model = 2"),
    ):
        layer = draw_layer(rng, width)
        state = {
            "in_proj_weight": layer["w_qkv"].T.copy(),
            "in_proj_bias": layer["b_qkv"],
            "out_proj.weight": layer["w_out"].T.copy(),
            "out_proj.bias": layer["b_out"],
        }
        if group == "none":
            state = {name: value for name, value in state.items() if "weight" in name}
        yield Case(group, {"state": state}, about)


def from_pytorch_reference(state):
    """What PyTorch's linear makes of unit vectors are the rows of the wanted matrices."""
    found = []
    for name in ("in_proj_", "out_proj."):
        weight, bias = state[name + "weight"], state.get(name + "bias")
        units = torch.eye(weight.shape[1], dtype=weight.dtype)
        at_zero = F.linear(0 * units[0], weight, bias)
        found += [F.linear(units, weight), at_zero]
    return tuple(found)


def _parts(state):
    found = []
    for name in ("in_proj_", "out_proj."):
        weight = state[name + "weight"]
        found += [weight, state.get(name + "bias", weight.new_zeros(len(weight)))]
    return found


def nothing_transposed(state):
    """Renames only."""
    return tuple(_parts(state))


def only_the_input_transposed(state):
    """The output matrix is square: nobody complains."""
    w_in, b_in, w_out, b_out = _parts(state)
    return w_in.T, b_in, w_out, b_out


def only_the_output_transposed(state):
    """Leaves (3·d_model, d_model)."""
    w_in, b_in, w_out, b_out = _parts(state)
    return w_in, b_in, w_out.T, b_out


def input_reshaped(state):
    """Reshape for transpose: right shape, scrambled numbers."""
    w_in, b_in, w_out, b_out = _parts(state)
    return w_in.reshape(w_in.T.shape), b_in, w_out.T, b_out


def thirds_stacked(state):
    """Transposes each third and stacks them below each other."""
    w_in, b_in, w_out, b_out = _parts(state)
    return torch.cat([third.T for third in w_in.chunk(3)], dim=0), b_in, w_out.T, b_out


def thirds_not_transposed(state):
    """Puts the three square matrices side by side as they are."""
    w_in, b_in, w_out, b_out = _parts(state)
    return torch.cat(w_in.chunk(3), dim=1), b_in, w_out.T, b_out


def keys_first_in_both(state):
    """Exchanges queries and keys."""
    w_in, b_in, w_out, b_out = _parts(state)
    w, b = w_in.chunk(3), b_in.chunk(3)
    return torch.cat([w[1], w[0], w[2]]).T, torch.cat([b[1], b[0], b[2]]), w_out.T, b_out


def biases_taken_for_granted(state):
    """KeyError for a layer without biases."""
    return (
        *(state["in_proj_weight"].T, state["in_proj_bias"]),
        *(state["out_proj.weight"].T, state["out_proj.bias"]),
    )


def one_zero_for_no_bias(state):
    """A single 0, which would broadcast."""
    zero = torch.zeros(1, dtype=torch.float64)
    w_in, w_out = state["in_proj_weight"].T, state["out_proj.weight"].T
    return w_in, state.get("in_proj_bias", zero), w_out, state.get("out_proj.bias", zero)


def biases_ignored(state):
    """Always zeros."""
    w_in, b_in, w_out, b_out = _parts(state)
    return w_in.T, 0 * b_in, w_out.T, 0 * b_out


def scaling_folded_in(state):
    """Divides the queries' part by √d_model."""
    w_in, b_in, w_out, b_out = _parts(state)
    d_model = len(w_out)
    factor = torch.ones(3 * d_model, dtype=w_in.dtype)
    factor[:d_model] = d_model**-0.5
    return w_in.T * factor, b_in * factor, w_out.T, b_out


def converted_by_t(state):
    """Right: transpose, and zeros where there is no bias."""
    w_in, b_in, w_out, b_out = _parts(state)
    return w_in.T, b_in, w_out.T, b_out


def converted_by_thirds(state):
    """Right: each third transposed, side by side; zeros of a stated length."""
    d_model = state["in_proj_weight"].shape[1]
    w_qkv = torch.cat([third.t() for third in state["in_proj_weight"].split(d_model)], dim=1)
    b_qkv, b_out = state.get("in_proj_bias"), state.get("out_proj.bias")
    if b_qkv is None:
        b_qkv, b_out = torch.zeros(3 * d_model).double(), torch.zeros(d_model).double()
    return w_qkv, b_qkv, state["out_proj.weight"].transpose(0, 1).contiguous(), b_out


def converted_by_einsum(state):
    """Right: einsum and clones, in a list."""
    w_in, b_in, w_out, b_out = _parts(state)
    turned = [torch.einsum("oi->io", w).clone() for w in (w_in, w_out)]
    return [turned[0], b_in.clone(), turned[1], b_out.clone()]


_WHICH_SIDE = (
    "PyTorch computes x @ weight.T + bias. Which matrix must stand to the right of x, then? Look "
    "at the shapes, and mind that a square matrix hides a missing transpose."
)
_ZEROS = "Where the state has no bias, give zeros: one for each column of the matrix."

FROM_PYTORCH = Exercise(
    id="from_pytorch",
    title="PyTorch's weights in our layout",
    asks="Turn the state of an nn.MultiheadAttention into matrices that stand right of x.",
    parameters=("state",),
    driver="tensor_function",
    outputs=("w_qkv", "b_qkv", "w_out", "b_out"),
    tolerance=Tolerance(1e-12, 1e-12),
    groups={
        "biases": Group(2, "layers with biases"),
        "none": Group(1, "layers without biases"),
    },
    cases=from_pytorch_cases,
    reference=from_pytorch_reference,
    misconceptions=(
        Misconception(nothing_transposed, "Neither matrix is transposed.", _WHICH_SIDE),
        Misconception(
            only_the_input_transposed,
            "The output matrix is not transposed. It is square, so no shape complains.",
            _WHICH_SIDE,
        ),
        Misconception(
            only_the_output_transposed, "The input matrix is not transposed.", _WHICH_SIDE
        ),
        Misconception(
            input_reshaped,
            "The input matrix was reshaped and not transposed: the shape is right, the numbers "
            "are scrambled.",
            "Reshape keeps the order of numbers in memory; a transpose exchanges axes.",
        ),
        Misconception(
            thirds_stacked,
            "The three parts stand below each other; they belong side by side.",
            "The columns of `w_qkv` are the outputs.",
        ),
        Misconception(
            thirds_not_transposed,
            "The three parts stand side by side, but each of them is still turned the wrong way.",
            _WHICH_SIDE,
        ),
        Misconception(
            keys_first_in_both,
            "Queries and keys are exchanged.",
            "PyTorch's order is queries, keys, values, as ours.",
        ),
        Misconception(
            biases_taken_for_granted,
            "A layer made with bias=False has no biases in its state.",
            _ZEROS,
        ),
        Misconception(
            one_zero_for_no_bias,
            "A single zero would broadcast, but the text asks for a full bias vector.",
            _ZEROS,
        ),
        Misconception(
            biases_ignored,
            "The biases in the state are not used.",
            "Use them where they are there.",
        ),
        Misconception(
            scaling_folded_in,
            "The queries are divided by a root here; scaling belongs to the scores.",
            "Only the layout changes, no number does.",
        ),
    ),
    accepted=(converted_by_t, converted_by_thirds, converted_by_einsum),
)

# --- chunked_from_interleaved --------------------------------------------------------------------


def chunked_cases(rng):
    """Numbers of heads other than 3: for 3 the way there is the way back."""
    for heads, d_head in ((2, 3), (5, 1), (1, 2)):
        layer = draw_layer(rng, heads * d_head)
        inputs = {"w_qkv": layer["w_qkv"], "b_qkv": layer["b_qkv"], "heads": heads}
        yield Case("layout", inputs, f"{heads} heads of width {d_head}")


def chunked_reference(w_qkv, b_qkv, heads):
    """Asks for each column where it comes from."""
    d_model = w_qkv.shape[0]
    d_head = d_model // heads
    source = []
    for column in range(3 * d_model):
        part, rest = divmod(column, d_model)
        head, feature = divmod(rest, d_head)
        source.append(head * 3 * d_head + part * d_head + feature)
    return w_qkv[:, source], b_qkv[source]


def layout_unchanged(w_qkv, b_qkv, heads):
    """Hands back what came."""
    return w_qkv.clone(), b_qkv.clone()


def _turn(w_qkv, b_qkv, sizes, order):
    """Cut the columns into `sizes` and put these axes into another order."""
    rows = [w_qkv, b_qkv[None]]
    turned = [
        row.unflatten(-1, sizes).permute(0, *(1 + i for i in order)).flatten(1) for row in rows
    ]
    return turned[0], turned[1][0]


def the_way_back(w_qkv, b_qkv, heads):
    """Makes an interleaved layout of a chunked one."""
    return _turn(w_qkv, b_qkv, (3, heads, -1), (1, 0, 2))


def biases_left_behind(w_qkv, b_qkv, heads):
    """Only the matrix changes."""
    return chunked_reference(w_qkv, b_qkv, heads)[0], b_qkv.clone()


def matrix_left_behind(w_qkv, b_qkv, heads):
    """Only the biases change."""
    return w_qkv.clone(), chunked_reference(w_qkv, b_qkv, heads)[1]


def features_in_front(w_qkv, b_qkv, heads):
    """Within each chunk the first features of all heads come first."""
    return _turn(w_qkv, b_qkv, (heads, 3, -1), (1, 2, 0))


def dealt_out_by_feature(w_qkv, b_qkv, heads):
    """Takes the layout for q, k, v alternating feature by feature."""
    return _turn(w_qkv, b_qkv, (-1, 3), (1, 0))


def keys_in_front(w_qkv, b_qkv, heads):
    """Puts out keys, queries, values."""
    w, b = chunked_reference(w_qkv, b_qkv, heads)
    (wq, wk, wv), (bq, bk, bv) = w.chunk(3, dim=1), b.chunk(3)
    return torch.cat([wk, wq, wv], dim=1), torch.cat([bk, bq, bv])


def heads_reversed(w_qkv, b_qkv, heads):
    """The last head first in each chunk."""
    parts = [row.unflatten(-1, (heads, 3, -1)).flip(1) for row in (w_qkv, b_qkv[None])]
    return parts[0].transpose(1, 2).flatten(1), parts[1].transpose(1, 2).flatten()


def rows_in_the_new_order(w_qkv, b_qkv, heads):
    """Returns the matrix transposed, columns as rows."""
    w, b = chunked_reference(w_qkv, b_qkv, heads)
    return w.T, b


def chunked_by_turning_axes(w_qkv, b_qkv, heads):
    """Right: columns as (heads, 3, d_head), two axes exchanged."""
    w = w_qkv.unflatten(1, (heads, 3, -1)).transpose(1, 2).flatten(1)
    return w, b_qkv.view(heads, 3, -1).transpose(0, 1).reshape(-1)


def chunked_by_an_index(w_qkv, b_qkv, heads):
    """Right: column numbers go through the same change as the columns."""
    numbers = torch.arange(w_qkv.shape[1]).reshape(heads, 3, -1).movedim(1, 0).flatten()
    return w_qkv.index_select(1, numbers), b_qkv[numbers]


def chunked_by_cat(w_qkv, b_qkv, heads):
    """Right: pieces of d_head columns, gathered in three rounds."""
    width = len(w_qkv) // heads
    pieces, biases = w_qkv.split(width, dim=1), b_qkv.split(width)
    order = [3 * h + part for part in range(3) for h in range(heads)]
    w = torch.cat([pieces[i] for i in order], dim=1)
    return w, torch.cat([biases[i] for i in order])


def chunked_by_numpy(w_qkv, b_qkv, heads):
    """Right: in NumPy; weights of a finished layer need no gradient."""
    both = np.concatenate([w_qkv.numpy(), b_qkv.numpy()[None]])
    both = both.reshape(len(both), heads, 3, -1).swapaxes(1, 2).reshape(len(both), -1)
    return torch.from_numpy(both[:-1].copy()), torch.from_numpy(both[-1].copy())


_NAME_THE_AXES = (
    "Name the three axes that the columns hide, in the old order and in the new one. Then it is a "
    "reshape, an exchange of two axes, and a reshape."
)

CHUNKED_FROM_INTERLEAVED = Exercise(
    id="chunked_from_interleaved",
    title="Head by head, or chunk by chunk",
    asks="Bring the columns of an interleaved fused matrix into the chunked order.",
    parameters=("w_qkv", "b_qkv", "heads"),
    driver="tensor_function",
    outputs=("w_qkv", "b_qkv"),
    tolerance=Tolerance(1e-12, 1e-12),
    groups={"layout": Group(2, "columns and biases in the new order")},
    cases=chunked_cases,
    reference=chunked_reference,
    misconceptions=(
        Misconception(layout_unchanged, "The layout is still the old one.", _NAME_THE_AXES),
        Misconception(
            the_way_back,
            "This is the way back: it makes an interleaved layout of a chunked one. (For 3 heads "
            "the two agree, which hides it.)",
            "In the columns that come in, which axis changes slowest: heads, or the three parts?",
        ),
        Misconception(
            biases_left_behind,
            "The biases are still in the old order.",
            "Each bias belongs to a column and goes where its column goes.",
        ),
        Misconception(
            matrix_left_behind,
            "The matrix is still in the old order.",
            "Each bias belongs to a column and goes where its column goes.",
        ),
        Misconception(
            features_in_front,
            "The three chunks are right, but within each of them the heads are interleaved "
            "feature by feature.",
            "The d_head columns of a head stay together.",
        ),
        Misconception(
            dealt_out_by_feature,
            "The columns were read as query, key, value, query, key, value, one by one.",
            "They come in runs of d_head.",
        ),
        Misconception(
            keys_in_front, "Queries and keys are exchanged.", "Out come queries, keys, values."
        ),
        Misconception(heads_reversed, "The heads are in reverse order.", "Head 0 stays the first."),
        Misconception(
            rows_in_the_new_order,
            "The matrix is transposed.",
            "Its shape stays (d_model, 3 · d_model).",
        ),
    ),
    accepted=(
        chunked_by_turning_axes,
        chunked_by_an_index,
        chunked_by_cat,
        chunked_by_numpy,
    ),
    equivalent_mutants={
        "`w_qkv.unflatten(1, (heads, 3, -1)).transpose(1, 2)` → "
        "`w_qkv.unflatten(1, (heads, 3, -1)).transpose(2, 1)`": "the same exchange of two axes",
        "`b_qkv.unflatten(0, (heads, 3, -1)).transpose(0, 1)` → "
        "`b_qkv.unflatten(0, (heads, 3, -1)).transpose(1, 0)`": "the same exchange of two axes",
        "`b_qkv.unflatten(0, (heads, 3, -1))` → `b_qkv.unflatten(-1, (heads, 3, -1))`": (
            "the biases have one axis"
        ),
    },
)
