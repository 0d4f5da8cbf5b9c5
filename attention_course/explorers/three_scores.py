"""Chapter 13: DeBERTa's three score maps, their sum, and the weights that follow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT, MOST = 8, 4  # tokens; the largest limit of distances, so tables have 2 · MOST rows
PARTS = ("content to content", "content to position", "position to content")
_TOKENS = ["the", "dog", "bites", "the", "man"]


class ThreeScores(Explorer):
    """The explorer behind `three_scores`; its traits follow the controls."""

    files = "three_scores"
    title = "Three parts of a score: content and position"

    tokens = t.List(t.Unicode()).tag(sync=True)
    content_queries = t.List().tag(sync=True)
    content_keys = t.List().tag(sync=True)
    position_queries = t.List().tag(sync=True)
    position_keys = t.List().tag(sync=True)
    largest = t.Int(3).tag(sync=True)
    parts = t.List(t.Bool(), default_value=[True, True, True]).tag(sync=True)
    row = t.Int(0).tag(sync=True)

    def weights(self) -> np.ndarray:
        """The weights of the sum of the parts that are switched on, (tokens, tokens)."""
        queries, keys, asking, asked = (
            np.array(getattr(self, name))
            for name in ("content_queries", "content_keys", "position_queries", "position_keys")
        )
        places = np.arange(len(self.tokens))
        apart = places[:, None] - places
        table = np.clip(apart, -self.largest, self.largest - 1) + MOST
        three = (
            queries @ keys.T,
            np.take_along_axis(queries @ asked.T, table, axis=1),
            np.take_along_axis(keys @ asking.T, table, axis=1).T,
        )
        total = sum(part for part, on in zip(three, self.parts, strict=True) if on)
        scores = (total + 0 * apart) / np.sqrt(max(sum(self.parts), 1) * queries.shape[1])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def text(self) -> str:
        """Which parts count, and what each token attends to most."""
        on = [name for name, used in zip(PARTS, self.parts, strict=True) if used]
        lines = [
            f"Parts in the sum: {', '.join(on) or 'none'}. "
            f"Distances from {self.largest} on are alike."
        ]
        for number, (token, row) in enumerate(zip(self.tokens, self.weights(), strict=True)):
            best = int(row.argmax())
            lines.append(
                f"  {number} {token}: most weight on {best} {self.tokens[best]} ({row[best]:.2f})"
            )
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, two rows of maps, and the status."""
        return 310 + 52 * len(self.tokens)


def three_scores(
    tokens: Sequence[str] | None = None, *, largest: int = 3, width: int = 6, seed: int = 4
) -> ThreeScores:
    """Shows the three parts of DeBERTa's scores for random vectors, and the weights of their sum.

    Equal tokens have equal content vectors.

    Args:
        tokens: 2 to 8 strings; default: a sentence with a word that comes twice.
        largest: the limit k of distances at the start, 1 to 4.
        width: of all vectors, 2 to 32.
        seed: for the random vectors.

    Returns:
        The widget; `largest`, `parts` and `row` follow the controls.

    Raises:
        TypeError: if the tokens are no strings or a number is none.
        ValueError: if there are too few or too many tokens, or a number lies outside.
    """
    tokens = _TOKENS if tokens is None else tokens
    names = validate.token_list("tokens", tokens, len(list(tokens)), "places")
    if len(names) < 2:
        raise ValueError(f"tokens must be at least 2; got {len(names)}. Add some.")
    validate.at_most("tokens", len(names), LIMIT, "tokens")
    limits = {"largest": (largest, 1, MOST), "width": (width, 2, 32), "seed": (seed, 0, 2**31)}
    for name, (value, low, high) in limits.items():
        if validate.number(name, value, low, high) % 1:
            raise ValueError(f"{name} must be a whole number; got {value}. Round it.")
    rng = np.random.default_rng(int(seed))
    different = sorted(set(names))
    queries, keys = rng.normal(size=(2, len(different), int(width)))
    rows = [different.index(name) for name in names]
    return ThreeScores(
        tokens=names,
        content_queries=validate.lists(queries[rows]),
        content_keys=validate.lists(keys[rows]),
        position_queries=validate.lists(rng.normal(size=(2 * MOST, int(width)))),
        position_keys=validate.lists(rng.normal(size=(2 * MOST, int(width)))),
        largest=int(largest),
    )
