"""Chapter 02: why scores are divided by the square root of d_k."""

from __future__ import annotations

import math

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 12
LARGEST = 512


class ScaleExplorer(Explorer):
    """The explorer behind `scale_explorer`; its traits follow the sliders."""

    files = "scale_explorer"
    title = "Scale explorer: scores, attention weights and their entropy"

    dimensions = t.List(t.Int()).tag(sync=True)
    products = t.List(t.List(t.Float())).tag(sync=True)
    choice = t.Int(0).tag(sync=True)
    temperature = t.Float(1.0).tag(sync=True)
    scaled = t.Bool(False).tag(sync=True)

    @property
    def key_dimension(self) -> int:
        """The d_k that the slider stands on."""
        return self.dimensions[self.choice]

    def scores(self) -> np.ndarray:
        """What goes into the softmax now, shape (keys,)."""
        divisor = math.sqrt(self.key_dimension) if self.scaled else 1.0
        return np.array(self.products[self.choice]) / divisor / self.temperature

    def text(self) -> str:
        """Scores and weights of each key, then the entropy."""
        scores = self.scores()
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        nats = -sum(w * math.log(w) for w in weights if w > 0) + 0.0
        lines = [
            f"d_k = {self.key_dimension}, temperature {self.temperature:.2f}, "
            f"{'scaled by 1/sqrt(d_k)' if self.scaled else 'not scaled'}:"
        ]
        lines += [
            f"  key {i + 1}: score {score:.2f}, weight {weight:.3f}"
            for i, (score, weight) in enumerate(zip(scores, weights, strict=True))
        ]
        lines.append(
            f"  entropy {nats:.2f} nats = {nats / math.log(2):.2f} bits; "
            f"effective number of keys exp(H) = {math.exp(nats):.2f} of {len(weights)}"
        )
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, one line for each key, and the status."""
        return 195 + 26 * len(self.products[0])


def scale_explorer(
    query: object = None,
    keys: object = None,
    *,
    key_dimension: int = 64,
    temperature: float = 1.0,
    scaled: bool = False,
    seed: int = 17,
) -> ScaleExplorer:
    """Shows how d_k, temperature and the factor 1/sqrt(d_k) shape the attention weights.

    Scores are dot products of the first d_k components, so one query and one set of keys serve
    every position of the d_k slider (powers of two, and the full length).

    Args:
        query: real numbers, shape (d_max,); default: 512 standard normal entries.
        keys: real numbers, shape (keys, d_max), 2 to 12 keys; default: 8 standard normal keys.
        key_dimension: d_k at the start, a power of two up to d_max, or d_max itself.
        temperature: at the start, from 0.1 to 10; the scores are divided by it.
        scaled: whether 1/sqrt(d_k) is on at the start.
        seed: of the default query and keys. Of the seeds 0 to 199, 17 comes nearest to the
            median of the effective number of keys over all d_k: what it shows is typical.

    Returns:
        The widget; `temperature`, `scaled` and `key_dimension` follow the controls.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if shapes do not fit or a number lies outside its range.
    """
    if (query is None) != (keys is None):
        missing, given = ("query", "keys") if query is None else ("keys", "query")
        raise ValueError(
            f"{missing} must be given together with {given}; got only {given}. "
            f"Pass both, or neither for random ones."
        )
    if query is None:
        generator = np.random.default_rng(seed)
        query, keys = generator.normal(size=LARGEST), generator.normal(size=(8, LARGEST))
    query_array = validate.array("query", query, "(d_max,)", 1)
    key_array = validate.array("keys", keys, "(keys, d_max)", 2)
    d_max = len(query_array)
    if key_array.shape[1] != d_max:
        raise ValueError(
            f"keys must have as many columns as query has entries, {d_max}; "
            f"got {key_array.shape[1]}. A query and its keys share their last axis."
        )
    if len(key_array) < 2:
        raise ValueError("keys must hold at least 2 keys; got 1. Softmax of one score is always 1.")
    validate.at_most("keys", len(key_array), LIMIT, "keys")
    dimensions = sorted({2**n for n in range(d_max.bit_length()) if 2**n <= d_max} | {d_max})
    if key_dimension not in dimensions:
        if d_max < 64 and key_dimension == 64:
            key_dimension = d_max  # the default does not fit shorter vectors
        else:
            raise ValueError(
                f"key_dimension must be one of {dimensions}; got {key_dimension!r}. Choose one."
            )
    running = np.cumsum(query_array * key_array, axis=1)  # (keys, d_max): products up to each d_k
    return ScaleExplorer(
        dimensions=dimensions,
        products=[validate.lists(running[:, d - 1]) for d in dimensions],
        choice=dimensions.index(key_dimension),
        temperature=validate.number("temperature", temperature, 0.1, 10.0),
        scaled=bool(scaled),
    )
