"""Exercises on a generator and a discriminator: which parameters they share, and what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attention_course.drivers.functions import must_be_function
from attention_course.drivers.modules import load_weights
from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms, Unusable


def make_encoder(weights: Mapping[str, np.ndarray]) -> Any:
    """Make the bones of an encoder from its weights, in float64.

    It has `width`, `embeddings.words` and `embeddings.places` (tables), `project` (from the
    embeddings' width to its own), `layers` (a list of linear maps) and `head`.
    """
    from torch import nn

    width, embedding_width = weights["project.weight"].shape
    encoder = nn.Module()
    encoder.width = width
    encoder.embeddings = nn.Module()
    for name in ("words", "places"):
        rows = len(weights[f"embeddings.{name}.weight"])
        encoder.embeddings.add_module(name, nn.Embedding(rows, embedding_width))
    encoder.project = nn.Linear(embedding_width, width, bias=False)
    count = sum(name.startswith("layers.") for name in weights)
    encoder.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(count))
    encoder.head = nn.Linear(width, len(weights["head.weight"]), bias=False)
    encoder.double()
    load_weights(encoder, weights)
    return encoder


def as_encoders(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Turn stored weights into the two encoders that the candidate gets."""
    with torch_as_it_was():  # a new module draws weights that are overwritten
        return {name: make_encoder(weights) for name, weights in inputs.items()}


def _values(module: Any) -> Any:
    import torch

    state = module.state_dict()
    return torch.cat([state[name].flatten() for name in sorted(state)])


def call_pair(
    candidate: Any,
    terms: Terms,
    generator: Mapping[str, np.ndarray],
    discriminator: Mapping[str, np.ndarray],
) -> Any:
    """Let the candidate change two encoders.

    Gives, for each of the generator's parameters by name, whether the discriminator's parameter of
    that name is the same object, and whether it has at least the same memory; which of the
    generator's and the discriminator's parameters an optimiser may train; and all numbers of both.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        given = as_encoders({"generator": generator, "discriminator": discriminator})
        candidate(**given)
        first, second = (
            dict(given[name].named_parameters(remove_duplicate=False)) for name in given
        )
        if sorted(first) != sorted(generator) or sorted(second) != sorted(discriminator):
            raise Unusable("an encoder has lost or gained parameters.")
        names = sorted(first)
        same, memory = (
            torch.tensor([alike(first[name], second.get(name)) for name in names])
            for alike in (lambda a, b: a is b, _same_memory)
        )
        trainable = torch.tensor(
            [part[name].requires_grad for part in (first, second) for name in sorted(part)]
        )
        return same, memory, trainable, _values(given["generator"]), _values(given["discriminator"])


def _same_memory(first: Any, second: Any) -> bool:
    return second is not None and first.data_ptr() == second.data_ptr()


def call_state_dict(candidate: Any, terms: Terms, state: Mapping[str, np.ndarray]) -> Any:
    """Let the candidate choose from a state dict.

    Gives the names that it keeps, sorted, as the numbers of their characters, one name a line; and
    all values in that order.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        kept = candidate(state=as_tensors(dict(state)))
        if not isinstance(kept, Mapping):
            raise Unusable(f"it returned a {type(kept).__name__}; a dict is expected.")
        wrong = [name for name, value in kept.items() if not isinstance(value, torch.Tensor)]
        if wrong or not all(isinstance(name, str) for name in kept):
            raise Unusable("names must be strings and values tensors.")
        names = sorted(kept)
        text = np.array([ord(letter) for letter in "\n".join(names)], dtype=np.int64)
        values = [kept[name].flatten() for name in names]
        return text, torch.cat(values) if values else torch.zeros(0, dtype=torch.float64)
