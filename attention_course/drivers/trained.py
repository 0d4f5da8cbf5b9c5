"""Exercises that train a model, and exercises that ask what a model lets through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attention_course.drivers.functions import must_be_function
from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms, Unusable

FLOOR = 0.8  # a group's answer counts if this share of its sequences gets it
UNDECIDED = -1
SAME = 1e-3  # logits this near to each other, measured by the largest, are the same
NOISE = 1e-9  # what rounding could do to a model's results


def _logits(model: Any, tokens: Any) -> Any:
    """Run a trained model on int64 tokens (sequences, length). Raises Unusable."""
    import torch

    with torch.no_grad():
        logits = model(tokens)
    if not isinstance(logits, torch.Tensor) or logits.shape != (len(tokens), 2):
        shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
        raise Unusable(f"the model gives {shape}; logits (batch, 2) are expected.")
    return logits


def _same(a: Any, b: Any) -> bool:
    return bool((a - b).abs().max() <= SAME * max(1.0, float(a.abs().max())))


def call_trainer(
    candidate: Any,
    terms: Terms,
    tokens: np.ndarray,
    labels: np.ndarray,
    longest: int,
    groups: np.ndarray,
) -> Any:
    """Let the candidate train a model, and ask it about new sequences, (groups, size, length).

    All sequences of a group have the same label, which is not in the kernel. Gives for each group
    the class that at least `FLOOR` of its sequences get, or `UNDECIDED` (for all groups, if it is
    most of them); whether a second run gives the same logits; and whether more padding, up to
    `longest` places, does.
    """
    import torch
    from torch import nn

    must_be_function(candidate)
    with torch_as_it_was():
        given = as_tensors({"tokens": tokens, "labels": labels})
        model = candidate(**given, longest=longest)
        if not isinstance(model, nn.Module):
            what = type(model).__name__
            raise Unusable(f"it returned a {what}; the trained model, an `nn.Module`, is expected.")
        count, size, length = groups.shape
        new = torch.from_numpy(groups.reshape(count * size, length))
        wider = torch.cat([new, new.new_zeros(len(new), longest - length)], dim=1)
        logits = _logits(model, new)
        ones = logits.argmax(dim=1).reshape(count, size).double().mean(dim=1)
        answers = torch.full((count,), UNDECIDED)
        answers[ones >= FLOOR], answers[ones <= 1 - FLOOR] = 1, 0
        if 2 * (answers == UNDECIDED).sum() > count:
            answers[:] = UNDECIDED  # who guesses is sure of some group by luck
        return answers, _same(logits, _logits(model, new)), _same(logits, _logits(model, wider))


# How a model of `make_model` sees the vectors (batch, length, width) that it gets.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "as they are": lambda x: x,
    "without their mean": lambda x: x - x.mean(dim=-1, keepdim=True),
    "by direction": lambda x: x / (x.norm(dim=-1, keepdim=True) + 1e-12),
    "without signs": lambda x: x.abs(),
}


def make_model(view: str, edges: np.ndarray, weight: np.ndarray) -> Callable[[Any], Any]:
    """Make a model in which place i reads place j if `edges[i, j]` is not 0, and nothing else.

    `edges`: (length, length). `weight`: (width, width of results). The model maps (batch, length,
    width) to (batch, length, width of results), records no gradients, and adds what rounding might.
    """
    import torch

    mixing, matrix = torch.from_numpy(edges), torch.from_numpy(weight)

    def model(x: Any) -> Any:
        with torch.no_grad():
            noise = NOISE * torch.sin(1e3 * x.sum(dim=(1, 2), keepdim=True))
            return mixing @ (VIEWS[view](x) @ matrix) + noise

    return model


def with_reader(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Make the model that `view`, `edges` and `weight` describe; the rest become tensors."""
    rest = {name: value for name, value in inputs.items() if name not in DESCRIBED}
    described = {name: inputs[name] for name in DESCRIBED}
    return {"model": make_model(**described), **as_tensors(rest)}


DESCRIBED = ("view", "edges", "weight")


def call_with_reader(candidate: Any, terms: Terms, **inputs: Any) -> Any:
    """Call the candidate with a model that the case describes, and the other inputs as tensors."""
    must_be_function(candidate)
    with torch_as_it_was():
        return candidate(**with_reader(inputs))
