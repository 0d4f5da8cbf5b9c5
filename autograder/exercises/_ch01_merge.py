"""Chapter 01: merging heads."""

from __future__ import annotations

import numpy as np

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch01_split import draw_head_sizes


def merge_heads_cases(rng):
    """Two draws of distinct sizes, one row, one token, one head."""
    for about in ("distinct sizes", "other sizes"):
        s = draw_head_sizes(rng)
        x = rng.normal(size=(s.batch, s.heads, s.length, s.d_head))
        yield Case("merge", {"x": x}, about)
    yield Case("merge", {"x": x[:1]}, "a batch of one")
    yield Case("merge", {"x": x[:, :, :1]}, "a single token")
    yield Case("merge", {"x": x[:1, :1]}, "one head")


def merge_heads_reference(x):
    """Copies one feature after the other."""
    batch, heads, length, d_head = x.shape
    result = np.empty((batch, length, heads * d_head))
    for feature in range(heads * d_head):
        head, place = divmod(feature, d_head)
        result[:, :, feature] = x[:, head, :, place]
    return result


def merged_by_reshape_only(x):
    """Right shape, scrambled tokens."""
    batch, heads, length, d_head = x.shape
    return x.reshape(batch, length, heads * d_head)


def merged_without_reshape(x):
    """Moves the heads back and leaves them."""
    return x.swapaxes(1, 2)


def merged_interleaved(x):
    """Puts the first features of all heads side by side."""
    batch, heads, length, d_head = x.shape
    return x.transpose(0, 2, 3, 1).reshape(batch, length, heads * d_head)


def merged_along_the_length(x):
    """Puts the heads one after the other along the positions."""
    batch, heads, length, d_head = x.shape
    return x.reshape(batch, heads * length, d_head)


def heads_averaged(x):
    """The mean over heads."""
    return x.mean(axis=1)


def heads_summed(x):
    """The sum over heads."""
    return x.sum(axis=1)


def positions_and_features_swapped(x):
    """Exchanges the wrong two axes before the reshape."""
    batch, heads, length, d_head = x.shape
    return x.swapaxes(1, 3).reshape(batch, length, heads * d_head)


def heads_swapped_with_features(x):
    """Swaps the last axis with the positions."""
    batch, heads, length, d_head = x.shape
    return x.swapaxes(2, 3).reshape(batch, length, heads * d_head)


def first_head_only(x):
    """Drops all other heads."""
    return x[:, 0]


def heads_merged_in_reverse(x):
    """The last head first."""
    batch, heads, length, d_head = x.shape
    return x[:, ::-1].swapaxes(1, 2).reshape(batch, length, heads * d_head)


def merged_batch_last(x):
    """Right features with batch and length exchanged."""
    batch, heads, length, d_head = x.shape
    return x.transpose(2, 0, 1, 3).reshape(length, batch, heads * d_head)


def merged_by_concatenation(x):
    """Right: heads side by side."""
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=-1)


def merged_by_transpose(x):
    """Right: positions forward, then the last two axes as one."""
    batch, _, length, _ = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, -1)


def merged_token_by_token(x):
    """Right: each token's heads, flattened."""
    tokens = [[x[b, :, p].ravel() for p in range(x.shape[2])] for b in range(x.shape[0])]
    return np.array(tokens)


def merged_by_einsum(x):
    """Right: einsum renames the axes first."""
    moved = np.einsum("bhld->blhd", x)
    return moved.reshape(*moved.shape[:2], moved.shape[2] * moved.shape[3])


_MERGE_SHAPES = "Before the reshape, heads and d_head must be neighbours, in this order."

MERGE_HEADS = Exercise(
    id="merge_heads",
    title="Heads back into one vector",
    asks="Undo split_heads: put the pieces of every token side by side again.",
    parameters=("x",),
    groups={"merge": Group(1, "one vector for every token")},
    cases=merge_heads_cases,
    reference=merge_heads_reference,
    misconceptions=(
        Misconception(
            merged_by_reshape_only,
            "The heads were not moved back before the reshape, so each row mixes tokens.",
            _MERGE_SHAPES,
        ),
        Misconception(
            merged_without_reshape,
            "The heads are back behind the positions, but heads and d_head are still two axes.",
            "One more step makes one axis of two.",
        ),
        Misconception(
            merged_interleaved,
            "The first features of all heads stand side by side, then the second ones; each "
            "head's features should stay together.",
            _MERGE_SHAPES,
        ),
        Misconception(
            merged_along_the_length,
            "The heads follow each other along the positions and not along the features.",
            "The length must not change.",
        ),
        Misconception(
            heads_averaged,
            "The heads are averaged; they should stand side by side.",
            "No number may be lost: the result has as many entries as the input.",
        ),
        Misconception(
            heads_summed,
            "The heads are summed; they should stand side by side.",
            "No number may be lost: the result has as many entries as the input.",
        ),
        Misconception(
            positions_and_features_swapped,
            "The heads were exchanged with the features and not with the positions.",
            _MERGE_SHAPES,
        ),
        Misconception(
            heads_swapped_with_features,
            "Positions were exchanged with the features and not with the heads.",
            _MERGE_SHAPES,
        ),
        Misconception(
            first_head_only,
            "Only the first head is left.",
            "No number may be lost: the result has as many entries as the input.",
        ),
        Misconception(
            heads_merged_in_reverse,
            "The heads are in reverse order.",
            "Head 0 gives the first d_head features.",
        ),
        Misconception(
            merged_batch_last,
            "Batch and length are exchanged.",
            "The batch stays in front.",
        ),
    ),
    accepted=(
        merged_by_concatenation,
        merged_by_transpose,
        merged_token_by_token,
        merged_by_einsum,
    ),
)
