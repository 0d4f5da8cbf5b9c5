"""Chapter 02: one query walks among keys in the plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 10
FARTHEST = 1e3

_KEYS = [[2.0, 0.6], [0.9, 1.9], [-1.6, 1.3], [-1.5, -1.4], [1.2, -1.7]]
_VALUES = [[3.0, 1.0], [1.2, 3.0], [-2.2, 2.2], [-3.0, -1.2], [1.0, -2.6]]
_QUERY = [1.7, 1.0]
_TOKENS = ["cat", "sat", "mat", "dog", "ran"]


class QueryWalk(Explorer):
    """The explorer behind `query_walk`; `query` follows the reader's hand."""

    files = "query_walk"
    title = "Query walk: a query among keys, and the mixture of values it reads"

    key_points = t.List(t.List(t.Float())).tag(sync=True)
    values = t.List(t.List(t.Float())).tag(sync=True)
    query = t.List(t.Float()).tag(sync=True)
    scale = t.Float().tag(sync=True)
    tokens = t.List(t.Unicode()).tag(sync=True)

    def weights(self) -> np.ndarray:
        """softmax(scale * keys @ query), shape (keys,)."""
        scores = self.scale * (np.array(self.key_points) @ np.array(self.query))
        powers = np.exp(scores - scores.max())
        return powers / powers.sum()

    def text(self) -> str:
        """The query, the weight of each key, and the output."""
        weights = self.weights()
        output = weights @ np.array(self.values)
        parts = ", ".join(
            f"{token} {weight:.2f}" for token, weight in zip(self.tokens, weights, strict=True)
        )
        return (
            f"Query at ({self.query[0]:.2f}, {self.query[1]:.2f}). Weights: {parts}.\n"
            f"Output ({output[0]:.2f}, {output[1]:.2f}): the mean of the values under these "
            f"weights, so it lies inside their convex hull."
        )

    def frame_height(self) -> int:
        """The same for all inputs: the planes have a fixed size."""
        return 520


def query_walk(
    keys: object = None,
    values: object = None,
    query: object = None,
    *,
    tokens: Sequence[str] | None = None,
    scale: float = 1.0,
) -> QueryWalk:
    """Shows keys in the plane, a query to drag among them, and the output among the values.

    Args:
        keys: real numbers, shape (keys, 2), at most 10 keys; default: five keys.
        values: real numbers, shape (keys, 2); default: five values, or `keys` if those are given.
        query: real numbers, shape (2,), where the query starts; default: right of the
            mean of the keys.
        tokens: one string for each key.
        scale: the scores are scale * (query · key); from 0 to 100.

    Returns:
        The widget; `walk.query` follows the reader's hand.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if shapes or counts do not fit.
    """
    example = keys is None
    key_array = _plane("keys", _KEYS if example else keys)
    validate.at_most("keys", len(key_array), LIMIT, "keys")
    if values is None:
        values = _VALUES if example else key_array
    value_array = _plane("values", values)
    if len(value_array) != len(key_array):
        raise ValueError(
            f"values must have one row for each of the {len(key_array)} keys; "
            f"got {len(value_array)} rows. Keys and values come in pairs."
        )
    if query is None:
        query = _QUERY if example else key_array.mean(axis=0) + np.array([1.0, 0.0])
    query_array = validate.array("query", query, "(2,)", 1)
    if query_array.shape != (2,):
        raise ValueError(
            f"query must have shape (2,); got {query_array.shape}. Pass its two coordinates."
        )
    if example and tokens is None:
        tokens = _TOKENS
    return QueryWalk(
        key_points=validate.lists(key_array),
        values=validate.lists(value_array),
        query=validate.lists(query_array),
        scale=validate.number("scale", scale, 0.0, 100.0),
        tokens=validate.token_list("tokens", tokens, len(key_array), "keys"),
    )


def _plane(name: str, value: object) -> np.ndarray:
    """`value` as points of the plane, shape (keys, 2)."""
    points = validate.array(name, value, "(keys, 2)", 2)
    if points.shape[1] != 2:
        raise ValueError(
            f"{name} must have 2 columns, to be drawn in the plane; got {points.shape[1]}. "
            f"Pass two of them: {name}[:, :2]."
        )
    if np.abs(points).max() > FARTHEST:
        raise ValueError(
            f"{name} must lie within {FARTHEST:g} of the origin; got {np.abs(points).max():g}. "
            f"Divide by a constant first."
        )
    return points
