"""Chapter 04 on tensors: vectors into heads and heads back into vectors, any leading axes."""

from __future__ import annotations

import torch

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception

# --- to_heads ------------------------------------------------------------------------------------


def _sizes(rng):
    return draw_sizes(rng, "batch", "length", "heads", "d_head", among=(2, 3, 4, 5))


def to_heads_cases(rng):
    """No leading axis, one, two; one token; one head; widths that don't divide."""
    s = _sizes(rng)
    x = rng.normal(size=(s.batch, s.length, s.heads * s.d_head))
    yield Case("heads", {"x": x, "heads": s.heads}, "a batch")
    s = draw_sizes(rng, "length", "heads", "d_head", among=(2, 3, 4))
    x = rng.normal(size=(s.length, s.heads * s.d_head))
    yield Case("heads", {"x": x, "heads": s.heads}, "a single sentence, no batch")
    x = rng.normal(size=(2, 3, 2, s.heads))
    yield Case("heads", {"x": x, "heads": s.heads}, "two leading axes")
    yield Case("heads", {"x": x[0, :, :1], "heads": s.heads}, "a single token")
    yield Case("heads", {"x": x[:1, 0], "heads": 1}, "one head")
    heads = int(rng.choice((3, 5)))
    uneven = rng.normal(size=(2, heads, heads + 1))
    yield Case("uneven", {"x": uneven, "heads": heads}, "heads does not divide d_model")
    narrow = rng.normal(size=(2, 4, heads - 1))
    yield Case("uneven", {"x": narrow, "heads": heads}, "more heads than features")


def to_heads_reference(x, heads):
    """Copies one feature after the other."""
    d_model = x.shape[-1]
    d_head, rest = divmod(d_model, heads)
    if rest:
        raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
    columns = [[x[..., h * d_head + i] for i in range(d_head)] for h in range(heads)]
    return torch.stack([torch.stack(column, dim=-1) for column in columns], dim=-3)


def _need_even(x, heads):
    if x.shape[-1] % heads:
        raise ValueError(f"{heads} heads do not divide d_model = {x.shape[-1]}")
    return (*x.shape[:-1], x.shape[-1] // heads)


def cut_by_reshape_only(x, heads):
    """Right shape, scrambled tokens."""
    *leading, length, d_head = _need_even(x, heads)
    return x.reshape(*leading, heads, length, d_head)


def heads_left_behind_positions(x, heads):
    """No exchange of axes."""
    _need_even(x, heads)
    return x.unflatten(-1, (heads, -1))


def cut_every_other_feature(x, heads):
    """Head h gets every heads-th feature."""
    _need_even(x, heads)
    return x.unflatten(-1, (-1, heads)).movedim(-1, -3)


def heads_taken_for_the_width(x, heads):
    """There are d_model / heads heads of width `heads`."""
    _need_even(x, heads)
    return x.unflatten(-1, (-1, heads)).transpose(-3, -2)


def positions_moved_to_the_end(x, heads):
    """(..., heads, d_head, length)."""
    _need_even(x, heads)
    return x.unflatten(-1, (heads, -1)).movedim(-3, -1)


def heads_before_the_batch(x, heads):
    """(heads, ..., length, d_head): silent for a single sentence."""
    _need_even(x, heads)
    return torch.stack(x.chunk(heads, dim=-1))


def only_for_a_batch(x, heads):
    """Counts the axes from the front."""
    _need_even(x, heads)
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def cut_in_numpy(x, heads):
    """Right numbers, but autograd cannot see through NumPy."""
    d_head = _need_even(x, heads)[-1]
    array = x.detach().numpy().reshape(*x.shape[:-1], heads, d_head)
    return torch.from_numpy(array.swapaxes(-3, -2).copy())


def rest_of_the_features_dropped(x, heads):
    """// cuts the width silently."""
    d_head = x.shape[-1] // heads
    return x[..., : heads * d_head].unflatten(-1, (heads, d_head)).transpose(-3, -2)


def refused_by_reshape(x, heads):
    """Leaves the refusal to reshape, which raises RuntimeError."""
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).transpose(-3, -2)


def refused_by_assert(x, heads):
    """Raises AssertionError."""
    assert x.shape[-1] % heads == 0, "heads must divide d_model"
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def to_heads_by_view(x, heads):
    """Right: view, then transpose; axes counted from the end."""
    shape = (*x.shape[:-1], heads, _need_even(x, heads)[-1])
    return x.contiguous().view(shape).transpose(-2, -3)


def to_heads_by_chunk(x, heads):
    """Right: pieces of the last axis, stacked in front of the positions."""
    if x.shape[-1] % heads != 0:
        raise ValueError("heads must divide d_model")
    return torch.stack(x.chunk(heads, dim=-1), dim=-3)


def to_heads_by_einsum(x, heads):
    """Right: einsum renames the axes."""
    _need_even(x, heads)
    return torch.einsum("...lhd->...hld", x.unflatten(-1, (heads, x.shape[-1] // heads)))


def to_heads_by_slices(x, heads):
    """Right: one slice for each head."""
    width = _need_even(x, heads)[-1]
    slices = [x[..., h * width : (h + 1) * width] for h in range(heads)]
    return torch.stack(slices, dim=x.dim() - 2)


_NAME_AXES = "Write the shape after every step, and name each axis. Count axes from the end."
_RAISE = "Test the remainder first, and `raise ValueError(...)` with both numbers in the message."
_STAY_IN_TORCH = "Stay in PyTorch from the first line to the last: no `.numpy()`, no `.detach()`."

TO_HEADS = Exercise(
    id="to_heads",
    title="Into heads, on tensors",
    asks="Cut the last axis into heads and put the heads in front of the positions.",
    parameters=("x", "heads"),
    driver="tensor_function",
    outputs=("result", "gradient of x"),
    groups={
        "heads": Group(2, "heads of every token, any leading axes"),
        "uneven": Group(1, "widths that don't divide raise ValueError"),
    },
    cases=to_heads_cases,
    reference=to_heads_reference,
    misconceptions=(
        Misconception(
            cut_by_reshape_only,
            "A single reshape gives the right shape, but the heads get whole tokens.",
            "First cut only the last axis in two, then exchange two axes.",
        ),
        Misconception(
            heads_left_behind_positions,
            "The last axis is cut, but the heads still stand behind the positions.",
            "One more step: exchange two axes.",
        ),
        Misconception(
            cut_every_other_feature,
            "Each head gets every `heads`-th feature; it should get neighbouring ones.",
            "Cut the last axis into (heads, d_head), in this order.",
        ),
        Misconception(
            heads_taken_for_the_width,
            "`heads` is taken for the width of a head.",
            _NAME_AXES,
        ),
        Misconception(
            positions_moved_to_the_end,
            "The positions have moved to the end.",
            _NAME_AXES,
        ),
        Misconception(
            heads_before_the_batch,
            "The heads stand in front of all other axes; they belong right before the positions.",
            _NAME_AXES,
        ),
        Misconception(
            only_for_a_batch,
            "Axes 1 and 2 are exchanged. Those are heads and positions only if there is exactly "
            "one leading axis.",
            "Which numbers do these two axes have if you count from the end?",
        ),
        Misconception(
            cut_in_numpy,
            "The numbers are right, but they went through NumPy (or `.detach()`): autograd lost "
            "the track, and no gradient reaches `x`.",
            _STAY_IN_TORCH,
        ),
        Misconception(
            rest_of_the_features_dropped,
            "If the heads don't divide d_model, `//` drops features without a word.",
            _RAISE,
        ),
        Misconception(
            refused_by_reshape,
            "If the heads don't divide d_model, PyTorch's reshape raises RuntimeError; the text "
            "asks for ValueError.",
            _RAISE,
        ),
        Misconception(
            refused_by_assert,
            "`assert` raises AssertionError (and nothing at all under python -O).",
            _RAISE,
        ),
    ),
    accepted=(to_heads_by_view, to_heads_by_chunk, to_heads_by_einsum, to_heads_by_slices),
    equivalent_mutants={
        "`x.unflatten(-1, (heads, -1)).transpose(-3, -2)` → "
        "`x.unflatten(-1, (heads, -1)).transpose(-2, -3)`": "the same exchange of two axes",
    },
)

# --- from_heads ----------------------------------------------------------------------------------


def from_heads_cases(rng):
    """No leading axis, one, two; one token; one head."""
    s = _sizes(rng)
    yield Case("merge", {"x": rng.normal(size=(s.batch, s.heads, s.length, s.d_head))}, "a batch")
    s = draw_sizes(rng, "length", "heads", "d_head", among=(2, 3, 4))
    x = rng.normal(size=(s.heads, s.length, s.d_head))
    yield Case("merge", {"x": x}, "a single sentence, no batch")
    yield Case("merge", {"x": rng.normal(size=(1, 3, s.heads, 2, 1))}, "two leading axes")
    yield Case("merge", {"x": x[None, :, :1]}, "a single token")
    yield Case("merge", {"x": x[None, :1]}, "one head")


def from_heads_reference(x):
    """Copies one feature after the other."""
    heads, d_head = x.shape[-3], x.shape[-1]
    features = [x[..., h, :, i] for h in range(heads) for i in range(d_head)]
    return torch.stack(features, dim=-1)


def merged_by_one_reshape(x):
    """Right shape, scrambled tokens."""
    *leading, heads, length, d_head = x.shape
    return x.reshape(*leading, length, heads * d_head)


def moved_but_not_merged(x):
    """Heads and d_head stay two axes."""
    return x.transpose(-3, -2)


def features_interleaved(x):
    """The first features of all heads, then the second ones."""
    return x.movedim(-3, -1).flatten(-2)


def merged_along_positions(x):
    """Heads follow each other along the length."""
    return x.flatten(-3, -2)


def averaged_over_heads(x):
    """The mean."""
    return x.mean(dim=-3)


def summed_over_heads(x):
    """The sum."""
    return x.sum(dim=-3)


def merged_with_one_leading_axis(x):
    """Counts the axes from the front."""
    return x.transpose(1, 2).flatten(2)


def view_of_a_transposed_tensor(x):
    """view refuses: the numbers do not lie in that order in memory."""
    moved = x.transpose(-3, -2)
    return moved.view(*moved.shape[:-2], x.shape[-3] * x.shape[-1])


def merged_in_numpy(x):
    """Autograd cannot see through NumPy."""
    array = x.detach().numpy().swapaxes(-3, -2)
    return torch.tensor(array.reshape(*array.shape[:-2], -1))


def merged_last_head_first(x):
    """Heads in reverse order."""
    return x.flip(-3).transpose(-3, -2).flatten(-2)


def from_heads_by_cat(x):
    """Right: heads side by side."""
    return torch.cat(x.unbind(dim=-3), dim=-1)


def from_heads_by_reshape(x):
    """Right: reshape copies where view refuses."""
    moved = x.transpose(-3, -2)
    return moved.reshape(*moved.shape[:-2], -1)


def from_heads_by_view(x):
    """Right: contiguous first."""
    *leading, heads, length, d_head = x.shape
    return x.movedim(-3, -2).contiguous().view(*leading, length, heads * d_head)


def from_heads_by_einsum(x):
    """Right: einsum renames the axes."""
    return torch.einsum("...hld->...lhd", x).flatten(start_dim=-2)


_NEIGHBOURS = "Heads and d_head must be neighbours, in this order, before they become one axis."
_ALL_NUMBERS = "No number may be lost: the result has as many entries as the input."

FROM_HEADS = Exercise(
    id="from_heads",
    title="Back from heads, on tensors",
    asks="Undo to_heads: put the heads of every token side by side again.",
    parameters=("x",),
    driver="tensor_function",
    outputs=("result", "gradient of x"),
    groups={"merge": Group(1, "one vector for every token, any leading axes")},
    cases=from_heads_cases,
    reference=from_heads_reference,
    misconceptions=(
        Misconception(
            merged_by_one_reshape,
            "The heads were not moved back before the reshape, so each row mixes tokens.",
            _NEIGHBOURS,
        ),
        Misconception(
            moved_but_not_merged,
            "The heads are back behind the positions, but heads and d_head are still two axes.",
            "One more step makes one axis of two.",
        ),
        Misconception(
            features_interleaved,
            "The first features of all heads stand side by side, then the second ones.",
            _NEIGHBOURS,
        ),
        Misconception(
            merged_along_positions,
            "The heads follow each other along the positions and not along the features.",
            "The length must not change.",
        ),
        Misconception(averaged_over_heads, "The heads are averaged.", _ALL_NUMBERS),
        Misconception(summed_over_heads, "The heads are summed.", _ALL_NUMBERS),
        Misconception(
            merged_with_one_leading_axis,
            "The axes are counted from the front, which is right for one leading axis only.",
            "Count from the end.",
        ),
        Misconception(
            view_of_a_transposed_tensor,
            "`view` only relabels memory, and after a transpose the numbers do not lie in the "
            "order that the new shape needs. Dropping the transpose would silence the error and "
            "scramble the tokens.",
            "Which relative of `view` makes a copy where it has to?",
        ),
        Misconception(
            merged_in_numpy,
            "The numbers are right, but no gradient reaches `x`: they left autograd's sight.",
            _STAY_IN_TORCH,
        ),
        Misconception(
            merged_last_head_first,
            "The heads are in reverse order.",
            "Head 0 gives the first d_head features.",
        ),
    ),
    accepted=(
        from_heads_by_cat,
        from_heads_by_reshape,
        from_heads_by_view,
        from_heads_by_einsum,
    ),
    equivalent_mutants={
        "`x.transpose(-3, -2)` → `x.transpose(-2, -3)`": "the same exchange of two axes",
    },
)
