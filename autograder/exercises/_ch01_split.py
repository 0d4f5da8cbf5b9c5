"""Chapter 01: splitting heads."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.case_making import draw_sizes
from autograder.exercise import Exercise, Group, Misconception


def draw_head_sizes(rng):
    """Draw distinct sizes for batch, length, heads and d_head, small enough to print."""
    return draw_sizes(rng, "batch", "length", "heads", "d_head", among=(2, 3, 5, 6))


def split_heads_cases(rng):
    """Two draws of distinct sizes, one row, one token, one head; then widths that don't divide."""
    for about in ("distinct sizes", "other sizes"):
        s = draw_head_sizes(rng)
        x = rng.normal(size=(s.batch, s.length, s.heads * s.d_head))
        yield Case("split", {"x": x, "heads": s.heads}, about)
    yield Case("split", {"x": x[:1], "heads": s.heads}, "a batch of one")
    yield Case("split", {"x": x[:, :1], "heads": s.heads}, "a single token")
    yield Case("split", {"x": x[:1], "heads": 1}, "one head")
    heads = int(rng.choice((3, 5)))
    uneven = rng.normal(size=(2, 2 * heads, 2 * heads + 1))
    yield Case("uneven", {"x": uneven, "heads": heads}, "heads does not divide d_model")
    narrow = rng.normal(size=(2, 6, heads - 1))
    yield Case("uneven", {"x": narrow, "heads": heads}, "more heads than features")


def split_heads_reference(x, heads):
    """Copies one feature after the other."""
    batch, length, d_model = x.shape
    d_head, rest = divmod(d_model, heads)
    if rest:
        raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
    result = np.empty((batch, heads, length, d_head))
    for feature in range(d_model):
        head, place = divmod(feature, d_head)
        result[:, head, :, place] = x[:, :, feature]
    return result


def _need_even(x, heads):
    if x.shape[-1] % heads:
        raise ValueError(f"{heads} heads do not divide d_model = {x.shape[-1]}")
    return (*x.shape[:2], x.shape[-1] // heads)


def split_by_reshape_only(x, heads):
    """Right shape, scrambled tokens."""
    batch, length, d_head = _need_even(x, heads)
    return x.reshape(batch, heads, length, d_head)


def split_without_transpose(x, heads):
    """Leaves the heads behind the positions."""
    batch, length, d_head = _need_even(x, heads)
    return x.reshape(batch, length, heads, d_head)


def split_interleaved(x, heads):
    """Gives head h every heads-th feature."""
    batch, length, d_head = _need_even(x, heads)
    return x.reshape(batch, length, d_head, heads).transpose(0, 3, 1, 2)


def split_with_positions_last(x, heads):
    """(batch, heads, d_head, length)."""
    batch, length, d_head = _need_even(x, heads)
    return x.reshape(batch, length, heads, d_head).transpose(0, 2, 3, 1)


def heads_and_width_exchanged(x, heads):
    """(batch, d_head, length, heads): the wrong axis is moved forward."""
    batch, length, d_head = _need_even(x, heads)
    return x.reshape(batch, length, heads, d_head).transpose(0, 3, 1, 2)


def heads_as_width(x, heads):
    """Takes `heads` for the width of a head."""
    batch, length, d_head = _need_even(x, heads)
    return x.reshape(batch, length, d_head, heads).transpose(0, 2, 1, 3)


def heads_in_front(x, heads):
    """(heads, batch, length, d_head)."""
    _need_even(x, heads)
    return np.stack(np.split(x, heads, axis=-1))


def heads_folded_into_batch(x, heads):
    """(batch·heads, length, d_head)."""
    batch, length, d_head = _need_even(x, heads)
    return x.reshape(batch, length, heads, d_head).swapaxes(1, 2).reshape(-1, length, d_head)


def heads_last_to_first(x, heads):
    """Numbers the heads from the end."""
    batch, length, d_head = _need_even(x, heads)
    return x.reshape(batch, length, heads, d_head).swapaxes(1, 2)[:, ::-1]


def leftover_features_dropped(x, heads):
    """// cuts the width silently."""
    batch, length, d_model = x.shape
    d_head = d_model // heads
    return x[..., : heads * d_head].reshape(batch, length, heads, d_head).swapaxes(1, 2)


def uneven_is_an_assertion(x, heads):
    """Uses assert, which raises AssertionError."""
    batch, length, d_model = x.shape
    assert d_model % heads == 0, "heads must divide d_model"
    return x.reshape(batch, length, heads, d_model // heads).swapaxes(1, 2)


def uneven_returns_none(x, heads):
    """Gives None where an exception is asked for."""
    batch, length, d_model = x.shape
    if d_model % heads:
        return None
    return x.reshape(batch, length, heads, d_model // heads).swapaxes(1, 2)


def uneven_returns_the_input(x, heads):
    """Gives the input back where an exception is asked for."""
    batch, length, d_model = x.shape
    if d_model % heads:
        return x
    return x.reshape(batch, length, heads, d_model // heads).swapaxes(1, 2)


def length_takes_up_the_rest(x, heads):
    """A free length (−1) in the wrong place hides that the width does not divide."""
    batch, _, d_model = x.shape
    return x.reshape(batch, -1, heads, d_model // heads).swapaxes(1, 2)


def split_by_reshape_and_swap(x, heads):
    """Right: reshape refuses widths that don't divide, with a ValueError."""
    batch, length, d_model = x.shape
    return x.reshape(batch, length, heads, d_model // heads).swapaxes(1, 2)


def split_by_stack(x, heads):
    """Right: cut the features, stack the pieces; np.split raises ValueError."""
    return np.stack(np.split(x, heads, axis=-1), axis=1)


def split_by_slices(x, heads):
    """Right: one slice for each head."""
    batch, length, d_head = _need_even(x, heads)
    result = np.empty((batch, heads, length, d_head), dtype=x.dtype)
    for h in range(heads):
        result[:, h] = x[:, :, h * d_head : (h + 1) * d_head]
    return result


def split_by_einsum(x, heads):
    """Right: einsum only renames axes."""
    batch, length, d_head = _need_even(x, heads)
    return np.einsum("blhd->bhld", x.reshape(batch, length, heads, d_head))


_SPLIT_SHAPES = (
    "Write the shape after every step, and name each axis: batch, length, heads, d_head."
)

SPLIT_HEADS = Exercise(
    id="split_heads",
    title="One vector into heads",
    asks="Cut each token's vector into `heads` pieces; put the heads in front of the positions.",
    parameters=("x", "heads"),
    groups={
        "split": Group(2, "heads of every token"),
        "uneven": Group(1, "widths that don't divide raise ValueError"),
    },
    cases=split_heads_cases,
    reference=split_heads_reference,
    misconceptions=(
        Misconception(
            split_by_reshape_only,
            "A single reshape gives the right shape, but it mixes tokens: the first head gets "
            "whole tokens and not the first features of each.",
            "First cut only the last axis in two, then move an axis.",
        ),
        Misconception(
            split_without_transpose,
            "The last axis is cut, but the heads still stand behind the positions.",
            "One more step: exchange two axes.",
        ),
        Misconception(
            split_interleaved,
            "Each head gets every `heads`-th feature; it should get neighbouring ones.",
            "Cut the last axis into (heads, d_head), in this order.",
        ),
        Misconception(
            split_with_positions_last,
            "The positions have moved to the end.",
            _SPLIT_SHAPES,
        ),
        Misconception(
            heads_and_width_exchanged,
            "The axis of features was moved in front of the positions, not the axis of heads.",
            _SPLIT_SHAPES,
        ),
        Misconception(
            heads_as_width,
            "`heads` is taken for the width of a head: there are d_model / heads heads now.",
            _SPLIT_SHAPES,
        ),
        Misconception(
            heads_in_front,
            "The axis of heads is in front of the batch; it belongs behind it.",
            _SPLIT_SHAPES,
        ),
        Misconception(
            heads_folded_into_batch,
            "Batch and heads are folded into one axis; they should stay two.",
            _SPLIT_SHAPES,
        ),
        Misconception(
            heads_last_to_first,
            "The heads are in reverse order.",
            "Head 0 gets the first d_head features.",
        ),
        Misconception(
            leftover_features_dropped,
            "If the heads don't divide d_model, `//` drops features without a word; the text "
            "asks for ValueError.",
            "Check the remainder before you cut.",
        ),
        Misconception(
            uneven_is_an_assertion,
            "`assert` raises AssertionError; the text asks for ValueError.",
            "Use `raise`: unlike `assert`, it also works when Python runs with -O.",
        ),
        Misconception(
            uneven_returns_none,
            "If the heads don't divide d_model, None is returned; the text asks for ValueError.",
            "`raise ValueError(...)` in that branch.",
        ),
        Misconception(
            uneven_returns_the_input,
            "If the heads don't divide d_model, the input is returned; the text asks for "
            "ValueError.",
            "`raise ValueError(...)` in that branch.",
        ),
        Misconception(
            length_takes_up_the_rest,
            "A −1 for the length lets reshape invent a length when the heads don't divide d_model.",
            "Say the length, or check the remainder before you cut.",
        ),
    ),
    accepted=(split_by_reshape_and_swap, split_by_stack, split_by_slices, split_by_einsum),
    equivalent_mutants={
        "drop `raise ValueError(f'{heads} heads do not divide d_model = {d_model}')`": (
            "reshape then raises ValueError itself"
        ),
    },
)
