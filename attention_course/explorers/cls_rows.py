"""Chapter 10: what [CLS] looks at, layer by layer and head by head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 24  # tokens, layers and heads
SPECIAL = ("[CLS]", "[SEP]")

# Invented; the notebook shows a trained encoder's.
_TOKENS = ["[CLS]", "a", "small", "dog", "[SEP]"]
_WEIGHTS = [
    [[0.6, 0.1, 0.1, 0.1, 0.1], [0.3, 0.2, 0.2, 0.2, 0.1]],
    [[0.5, 0.05, 0.05, 0.1, 0.3], [0.2, 0.1, 0.3, 0.3, 0.1]],
    [[0.1, 0.05, 0.15, 0.5, 0.2], [0.1, 0.1, 0.4, 0.2, 0.2]],
]


class ClsRows(Explorer):
    """The explorer behind `cls_rows`; its traits follow the controls."""

    files = "cls_rows"
    title = "What [CLS] looks at, by layer and head"

    tokens = t.List(t.Unicode()).tag(sync=True)
    weights = t.List().tag(sync=True)  # (layers, heads, tokens)
    special = t.List(t.Bool()).tag(sync=True)  # of each token: not a word of the text
    layer = t.Int(0).tag(sync=True)
    head = t.Int(-1).tag(sync=True)  # -1: the mean over heads
    words_only = t.Bool(False).tag(sync=True)

    def shares(self) -> np.ndarray:
        """What is drawn: [CLS]'s weights for the chosen head in each layer, (layers, tokens)."""
        weights = np.array(self.weights)
        rows = weights.mean(axis=1) if self.head < 0 else weights[:, self.head]
        if self.words_only:
            rows = np.where(self.special, 0.0, rows)
            rows = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)
        return rows

    def text(self) -> str:
        """The token that gets most in each layer, and what [CLS] and [SEP] get together."""
        heads = len(self.weights[0])
        who = f"mean over {heads} heads" if self.head < 0 else f"head {self.head + 1} of {heads}"
        lines = [f"[CLS] looks at ({who}{', words only' if self.words_only else ''}):"]
        for number, row in enumerate(self.shares(), start=1):
            best = int(row.argmax())
            line = f"  layer {number}: most at {self.tokens[best]} ({row[best]:.2f})"
            if not self.words_only:
                line += f"; [CLS] and [SEP] together {row[np.array(self.special)].sum():.2f}"
            lines.append(line)
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, a row for each layer and each head, two headings, the status."""
        longest = max(len(token) for token in self.tokens)
        rows = len(self.weights) + len(self.weights[0])
        return 240 + 28 * rows + 2 * (8 * longest + 30)


def cls_rows(
    weights: object = None,
    tokens: Sequence[str] | None = None,
    *,
    layer: int = 0,
    words_only: bool = False,
) -> ClsRows:
    """Shows which tokens [CLS] attends to in every layer, and in every head of a chosen layer.

    Args:
        weights: rows of [CLS] after the softmax, shape (layers, heads, tokens), each summing to 1;
            at most 24 layers, heads and tokens; default: a small example.
        tokens: one string for each token, [CLS] first.
        layer: whose heads are shown first, from 0.
        words_only: whether [CLS] and [SEP] are left out and the rest made to sum to 1.

    Returns:
        The widget; `layer`, `head` (-1: the mean) and `words_only` follow the reader.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if counts do not fit, rows do not sum to 1, or a number lies outside its range.
    """
    if weights is None:
        weights, tokens = _WEIGHTS, tokens or _TOKENS
    array = validate.array("weights", weights, "(layers, heads, tokens)", 3)
    for count, axis in zip(array.shape, ("layers", "heads", "tokens"), strict=True):
        validate.at_most("weights", count, LIMIT, axis)
    sums = array.sum(axis=-1)
    if array.min() < 0 or np.abs(sums - 1).max() > 1e-3:
        raise ValueError(
            f"weights must be at least 0 and sum to 1 over tokens; got sums from {sums.min():.3f} "
            f"to {sums.max():.3f}. Pass what the softmax gives, for the query [CLS] only."
        )
    names = validate.token_list("tokens", tokens, array.shape[2], "tokens")
    validate.index("layer", layer, array.shape[0], "layers")
    special = [name in SPECIAL for name in names]
    if len(names) < 2 or all(special):
        raise ValueError(
            f"tokens must be at least 2, with a word besides [CLS] and [SEP]; got {names}. "
            f"Pass a longer text."
        )
    return ClsRows(
        tokens=names,
        weights=validate.lists(array),
        special=special,
        layer=layer,
        words_only=bool(words_only),
    )
