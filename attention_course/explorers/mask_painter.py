"""Chapter 02: paint a mask and watch weights and outputs change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

PRESETS = ("causal", "padding", "none")
LIMIT = 10

_TOKENS = ["the", "cat", "sat", "down", "[pad]"]
_SCORES = [
    [0.6, 0.2, -0.4, 0.1, 0.3],
    [1.1, 0.8, 0.5, -0.3, 0.2],
    [-0.2, 1.7, 0.4, 0.9, 0.1],
    [0.3, 0.4, 1.4, 0.5, -0.6],
    [0.0, 0.2, 0.1, 0.3, 0.4],
]
_VALUES = [[1.0, 0.0, 0.5], [0.0, 2.0, -1.0], [-1.0, 1.0, 0.0], [0.5, -2.0, 1.0], [4.0, 4.0, 4.0]]


class MaskPainter(Explorer):
    """The explorer behind `mask_painter`; `mask` holds what the reader has painted."""

    files = "mask_painter"
    title = "Mask painter: scores, weights and outputs of attention under a mask"

    scores = t.List(t.List(t.Float())).tag(sync=True)
    values = t.List(t.List(t.Float())).tag(sync=True)
    mask = t.List(t.List(t.Bool())).tag(sync=True)
    query_tokens = t.List(t.Unicode()).tag(sync=True)
    key_tokens = t.List(t.Unicode()).tag(sync=True)
    padding = t.Int(1).tag(sync=True)

    def weights(self) -> np.ndarray:
        """Weights under the present mask, (queries, keys); a row with no open key is zero."""
        open_keys = np.array(self.mask)
        scores = np.where(open_keys, np.array(self.scores), -np.inf)
        largest = scores.max(axis=1, keepdims=True)
        powers = np.exp(scores - np.where(np.isfinite(largest), largest, 0.0))
        total = powers.sum(axis=1, keepdims=True)
        return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)

    def text(self) -> str:
        """One line for each query: its weights and its output."""
        closed = sum(not allowed for row in self.mask for allowed in row)
        lines = [
            f"{len(self.query_tokens)} queries, {len(self.key_tokens)} keys, "
            f"{closed} entries of the mask closed. Weights, then output:"
        ]
        weights = self.weights()
        for query, row, output in zip(
            self.query_tokens, weights, weights @ np.array(self.values), strict=True
        ):
            parts = ", ".join(
                f"{key} {weight:.2f}" for key, weight in zip(self.key_tokens, row, strict=True)
            )
            result = ", ".join(f"{entry:.2f}" for entry in output)
            note = "  (no open key: zeros by convention)" if not row.any() else ""
            lines.append(f"  {query}: {parts} -> ({result}){note}")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Room for a line for each query or value, if they stand side by side."""
        return 200 + 32 * max(len(self.query_tokens), len(self.key_tokens))


def mask_painter(
    scores: object = None,
    values: object = None,
    tokens: Sequence[str] | None = None,
    *,
    key_tokens: Sequence[str] | None = None,
    mask: object = "causal",
    padding: int = 1,
) -> MaskPainter:
    """Shows attention under a mask that the reader paints by mouse or keyboard.

    Without arguments it shows five tokens, the last of them padding.

    Args:
        scores: real numbers, shape (queries, keys), before the mask; at most 10 of each.
        values: real numbers, shape (keys, d_v), d_v at most 10; default: a small example, or the
            unit vectors if `scores` is given, so that outputs equal weights.
        tokens: one string for each query; also names the keys if there are as many.
        key_tokens: one string for each key.
        mask: "causal", "padding", "none", or booleans of shape (queries, keys), True = may attend.
        padding: how many keys at the end the padding preset closes; 0 to keys.

    Returns:
        The widget; `painter.mask` gives the painted mask as nested lists of bool.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if shapes, counts or names do not fit.
    """
    example = scores is None
    score_array = validate.array("scores", _SCORES if example else scores, "(queries, keys)", 2)
    queries, keys = score_array.shape
    validate.at_most("scores", max(queries, keys), LIMIT, "rows or columns")
    if values is None:
        values = _VALUES if example else np.eye(keys)
    value_array = validate.array("values", values, "(keys, d_v)", 2)
    if value_array.shape[0] != keys:
        raise ValueError(
            f"values must have one row for each of the {keys} keys; "
            f"got {value_array.shape[0]} rows. "
            f"The first axis of values has to equal the last axis of scores."
        )
    validate.at_most("values", value_array.shape[1], LIMIT, "columns")
    if example and tokens is None:
        tokens = _TOKENS
    query_names = validate.token_list("tokens", tokens, queries, "queries")
    if key_tokens is None and queries == keys:
        key_names = query_names
    else:
        key_names = validate.token_list("key_tokens", key_tokens, keys, "keys")
    if isinstance(padding, bool) or not isinstance(padding, int) or not 0 <= padding <= keys:
        raise ValueError(
            f"padding must be a whole number from 0 to {keys}, the number of keys; got {padding!r}."
            f" Count the padded keys at the end."
        )
    return MaskPainter(
        scores=validate.lists(score_array),
        values=validate.lists(value_array),
        mask=_mask(mask, queries, keys, padding),
        query_tokens=query_names,
        key_tokens=key_names,
        padding=padding,
    )


def _mask(mask: object, queries: int, keys: int, padding: int) -> list[list[bool]]:
    """A preset's name or an array as nested lists of bool, True = may attend."""
    if isinstance(mask, str):
        if mask not in PRESETS:
            raise ValueError(
                f"mask must be one of {', '.join(PRESETS)} or an array of booleans; got {mask!r}. "
                f"Check the spelling."
            )
        row, column = np.indices((queries, keys))
        return {
            "causal": column <= row,
            "padding": column < keys - padding,
            "none": np.full((queries, keys), True),
        }[mask].tolist()
    if hasattr(mask, "detach"):
        mask = mask.detach().cpu()
    allowed = np.asarray(mask)
    if allowed.dtype != np.bool_:
        raise TypeError(
            f"mask must hold booleans, True where a query may attend to a key; got dtype "
            f"{allowed.dtype}. Write mask == 1, or mask > -1 for a mask of 0 and -inf."
        )
    if allowed.shape != (queries, keys):
        raise ValueError(
            f"mask must have the shape of scores, {(queries, keys)}; got {allowed.shape}. "
            f"Broadcast it first: np.broadcast_to(mask, scores.shape)."
        )
    return allowed.tolist()
