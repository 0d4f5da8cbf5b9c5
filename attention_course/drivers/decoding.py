"""Exercises that write a sentence word by word: searches with a model, and a cached decoder step.

The model is a table, so that nothing has to be trained: the scores of the next word depend on the
last word, on its place, and on the source sentence. It counts its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attention_course.drivers.caching import CountedProjection
from attention_course.drivers.functions import must_be_function
from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms, Unusable

COUNTS = ("encoder calls", "decoder calls")  # outputs that the driver gives, not the candidate
PROJECTIONS = tuple(
    f"{part}_{role}" for part in ("self", "cross") for role in ("queries", "keys", "values")
)


class TableModel:
    """A translator made of three tables; `encoder_calls` and `decoder_calls` count its use.

    `sources` (source words, vocabulary): what each word of the source adds to the scores; `follow`
    (vocabulary, vocabulary): scores of the words after a word; `places` (length, vocabulary): what
    each place in the output adds.
    """

    def __init__(self, sources: Any, follow: Any, places: Any):
        self._sources, self._follow, self._places = sources, follow, places
        self.encoder_calls = self.decoder_calls = 0

    def encode(self, source: Any) -> Any:
        """Read source sentences, int (batch, source length); gives memory (batch, source, d)."""
        if source.dim() != 2:
            raise ValueError(f"source must have axes (batch, length); got {tuple(source.shape)}.")
        self.encoder_calls += 1
        return self._sources[source]

    def decode(self, target: Any, memory: Any) -> Any:
        """Score the next word after every prefix; target is int (batch, length).

        Gives logits (batch, length, vocabulary). Row i of the length has seen target words 0 to i.
        """
        if target.dim() != 2:
            raise ValueError(f"target must have axes (batch, length); got {tuple(target.shape)}.")
        if memory.dim() != 3 or len(memory) not in (1, len(target)):
            raise ValueError(
                f"memory must have axes (batch, source, d) and a row for each of the {len(target)} "
                f"targets, or one for all; got {tuple(memory.shape)}."
            )
        if target.shape[1] > len(self._places):
            raise ValueError(f"target is {target.shape[1]} long; at most {len(self._places)} fit.")
        self.decoder_calls += 1
        return (
            self._follow[target] + self._places[: target.shape[1]] + memory.sum(dim=1, keepdim=True)
        )


def with_model(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Turn stored inputs into what the candidate gets: a model and tensors."""
    given = as_tensors(dict(inputs))
    given.pop("counted", None)
    return {**given, "model": TableModel(**given["model"])}


def call_search(
    candidate: Callable[..., Any], terms: Terms, counted: bool = False, **inputs: Any
) -> Any:
    """Let the candidate search with a `TableModel`.

    Outputs named in `COUNTS` are its calls; they are 0 unless the case says `counted`.
    """
    must_be_function(candidate)
    with torch_as_it_was():
        given = with_model(inputs)
        result = candidate(**given)
        own = [name for name in terms.outputs if name not in COUNTS]
        parts = tuple(result) if len(own) > 1 and isinstance(result, tuple | list) else (result,)
        model = given["model"]
        calls = (model.encoder_calls, model.decoder_calls) if counted else (0, 0)
        return (*parts, *calls[: len(terms.outputs) - len(own)])


class CachedLayer:
    """What a cached decoder step works with: six projections, found by name, that count."""

    def __init__(self, weights: Mapping[str, Any], batch: int):
        for name in PROJECTIONS:
            setattr(self, name, CountedProjection(weights[name], batch))

    def start_step(self) -> None:
        """Begin a new count in each projection."""
        for name in PROJECTIONS:
            getattr(self, name).counts.append(0)

    def counts(self) -> list[list[int]]:
        """Positions projected in each step: one row for a step, one column for a projection."""
        columns = [getattr(self, name).counts for name in PROJECTIONS]
        return [list(row) for row in zip(*columns, strict=True)]


def for_one_step(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Turn stored inputs into what the candidate gets in the first step, for `example`."""
    given = as_tensors(dict(inputs))
    layer = CachedLayer(given.pop("weights"), len(given["x"]))
    layer.start_step()
    return {**given, "x": given["x"][:, :1], "cache": {}, "layer": layer}


def call_cached_decoder(
    candidate: Callable[..., Any],
    terms: Terms,
    weights: Mapping[str, np.ndarray],
    x: np.ndarray,
    memory: np.ndarray,
    memory_mask: np.ndarray,
) -> Any:
    """Feed x (batch, length, d_model) one position at a time, always with the same cache.

    Gives the outputs side by side, and the positions projected by each projection in each step.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        tokens, given = as_tensors(x), as_tensors({"memory": memory, "memory_mask": memory_mask})
        layer, cache, outputs = CachedLayer(as_tensors(weights), len(x)), {}, []
        for place in range(x.shape[1]):
            layer.start_step()
            output = candidate(x=tokens[:, place : place + 1], **given, cache=cache, layer=layer)
            if not isinstance(output, torch.Tensor):
                raise Unusable(f"it returned a {type(output).__name__}; a tensor is expected.")
            if output.shape != tokens[:, :1].shape:
                shapes = f"{tuple(output.shape)}; {tuple(tokens[:, :1].shape)} is expected"
                raise Unusable(f"its output has the shape {shapes}.")
            outputs.append(output)
        return torch.cat(outputs, dim=1), torch.tensor(layer.counts())
