"""Exercises that carry keys and values from one call to the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attention_course.drivers.functions import must_be_function
from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms, Unusable


class CountedProjection:
    """A linear map that counts the positions it is given, call by call of the layer."""

    def __init__(self, weight: Any, batch: int):
        self._weight, self._batch, self.counts = weight, batch, []

    def __call__(self, x: Any) -> Any:
        """Map x (..., d_model) to (..., d)."""
        self.counts[-1] += math.prod(x.shape[:-1]) // self._batch
        return x @ self._weight


def _read(result: Any) -> tuple[Any, Any]:
    """Read (output, (keys, values)), or raise Unusable."""
    import torch

    try:
        output, (keys, values) = result
    except (TypeError, ValueError):
        raise Unusable("it must return `(output, (keys, values))`.") from None
    if not all(isinstance(part, torch.Tensor) for part in (output, keys, values)):
        raise Unusable("output, keys and values must be tensors.")
    return output, (keys, values)


def _joined(pieces: Sequence[Any]) -> Any:
    import torch

    try:
        return torch.cat(list(pieces), dim=1)
    except RuntimeError:
        shapes = ", ".join(str(tuple(piece.shape)) for piece in pieces)
        raise Unusable(f"the outputs of its calls don't line up: {shapes}.") from None


def call_cached_layer(
    candidate: Callable[..., Any],
    terms: Terms,
    x: np.ndarray,
    positions: np.ndarray,
    w_q: np.ndarray,
    w_k: np.ndarray,
    w_v: np.ndarray,
    pieces: Sequence[int],
) -> Any:
    """Feed x (batch, length, d_model) to the candidate in pieces, each with the cache so far.

    Gives all outputs side by side, the keys and values of the last cache, how many positions were
    projected to (queries, keys, values) in each call, and in how many calls the cache that came in
    was written to.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        tokens, table = as_tensors(x), as_tensors(positions)
        projections = [CountedProjection(as_tensors(w), len(x)) for w in (w_q, w_k, w_v)]
        outputs, cache, start, written = [], None, 0, 0
        for length in pieces:
            for projection in projections:
                projection.counts.append(0)
            before = cache and [part.clone() for part in cache]
            output, new = _read(
                candidate(
                    x=tokens[:, start : start + length],
                    positions=table,
                    to_queries=projections[0],
                    to_keys=projections[1],
                    to_values=projections[2],
                    cache=cache,
                )
            )
            if cache:
                written += not all(map(torch.equal, before, cache))
            outputs.append(output)
            cache, start = new, start + length
        counts = torch.tensor([projection.counts for projection in projections])
        return _joined(outputs), *cache, counts, written
