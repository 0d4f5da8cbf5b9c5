"""Chapter 12: which layer of a student learns from which layer of its teacher."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 12  # layers
TOKENS = 16


class LayerMap(Explorer):
    """The explorer behind `layer_map`; `chosen` is the map, `student`, `teacher` the shown pair."""

    files = "layer_map"
    title = "Layer map: which layers are matched, and where they look"

    student_attention = t.List().tag(sync=True)  # (layers, queries, keys)
    teacher_attention = t.List().tag(sync=True)
    tokens = t.List(t.Unicode()).tag(sync=True)
    chosen = t.List(t.Int()).tag(sync=True)  # the teacher's layer of each student layer, or -1
    student = t.Int(0).tag(sync=True)
    teacher = t.Int(0).tag(sync=True)

    def pairs(self) -> list[tuple[int, int]]:
        """The chosen map as a list of (student's layer, teacher's layer), both from 0."""
        return [(ours, theirs) for ours, theirs in enumerate(self.chosen) if theirs >= 0]

    def divergences(self) -> np.ndarray:
        """Mean KL(teacher ‖ student) of attention rows, (student layers, teacher layers)."""
        ours = np.array(self.student_attention)[:, None] + 1e-6
        theirs = np.array(self.teacher_attention)[None] + 1e-6
        return (theirs * (np.log(theirs) - np.log(ours))).sum(-1).mean(-1)

    def text(self) -> str:
        """The map in words, and how far the attention of each pair is apart."""
        table = self.divergences()
        lines = ["Student layer ← teacher layer (divergence of their attention, nats):"]
        for ours, theirs in enumerate(self.chosen):
            about = "nothing" if theirs < 0 else f"{theirs + 1} ({table[ours, theirs]:.2f})"
            lines.append(f"  {ours + 1} ← {about}")
        ours, theirs = np.unravel_index(int(table.argmin()), table.shape)
        lines.append(f"  closest pair of all: {ours + 1} and {theirs + 1}")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """The matrix, two attention maps, the status."""
        return 330 + 28 * len(self.student_attention) + 20 * len(self.tokens)


def layer_map(
    student_attention: object = None,
    teacher_attention: object = None,
    tokens: Sequence[str] | None = None,
    *,
    chosen: Sequence[int | None] | None = None,
) -> LayerMap:
    """Lets the reader match layers, and shows the attention of a pair side by side.

    Without arguments it shows an invented example of two and four layers.

    Args:
        student_attention: weights after the softmax, shape (layers, queries, keys), at most 12
            layers and 16 tokens; a mean over heads, or one head.
        teacher_attention: the same of the teacher, for the same tokens.
        tokens: one string for each query.
        chosen: for each student layer the teacher's layer at the start, from 0, or None; default:
            spread evenly, the last ones matched.

    Returns:
        The widget; `pairs()` gives the map that the reader chose.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if shapes or counts do not fit, or weights lie outside 0 to 1.
    """
    if student_attention is None:
        student_attention, teacher_attention, tokens = _example()
    ours, theirs = (
        _weights(name, value)
        for name, value in (
            ("student_attention", student_attention),
            ("teacher_attention", teacher_attention),
        )
    )
    if ours.shape[1:] != theirs.shape[1:]:
        raise ValueError(
            f"teacher_attention must be of the same tokens as student_attention, "
            f"{ours.shape[1:]}; got {theirs.shape[1:]}. Run both models on one sentence."
        )
    even = [(i + 1) * len(theirs) // len(ours) - 1 for i in range(len(ours))]
    start = even if chosen is None else [-1 if i is None else i for i in chosen]
    if len(start) != len(ours) or not all(-1 <= i < len(theirs) for i in start):
        raise ValueError(
            f"chosen must hold for each of the {len(ours)} student layers a number from 0 to "
            f"{len(theirs) - 1}, or None; got {list(chosen)}. Counting starts at 0."
        )
    return LayerMap(
        student_attention=np.round(ours, 4).tolist(),
        teacher_attention=np.round(theirs, 4).tolist(),
        tokens=validate.token_list("tokens", tokens, ours.shape[1], "queries"),
        chosen=start,
        teacher=max(0, start[0]),
    )


def _weights(name: str, value: object) -> np.ndarray:
    array = validate.array(name, value, "(layers, queries, keys)", 3)
    validate.at_most(name, len(array), LIMIT, "layers")
    validate.at_most(name, array.shape[1], TOKENS, "tokens")
    if array.shape[1] != array.shape[2]:
        raise ValueError(
            f"{name} must have as many keys as queries; got {array.shape}. Pass self-attention."
        )
    if array.min() < -1e-6 or array.max() > 1 + 1e-3:
        raise ValueError(
            f"{name} must lie from 0 to 1; got {array.min():.3g} to {array.max():.3g}. "
            f"Pass what comes after the softmax."
        )
    return array


def _example() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Layers that look at themselves, to the left, at the first token, and at everything."""
    tokens = ["elle", "aime", "son", "cheval", "noir", "."]
    n = len(tokens)
    itself, left = np.eye(n), np.eye(n, k=-1)
    first = np.zeros((n, n))
    first[:, 0] = 1.0
    scores = [3 * itself, 3 * left + itself, 2.5 * first, 0.8 * first + 0.5 * itself]
    teacher = np.exp(scores)
    teacher /= teacher.sum(-1, keepdims=True)
    student = np.stack([0.6 * teacher[1] + 0.4 * teacher[0], 0.7 * teacher[2] + 0.3 * teacher[3]])
    return student, teacher, tokens
