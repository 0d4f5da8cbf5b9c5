"""Exercises about one step of training: mixed precision, and gradients over micro-batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attention_course.drivers.functions import must_be_function
from attention_course.drivers.modules import load_weights
from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms, Unusable


def call_mixed_loss(
    candidate: Any, terms: Terms, weight: np.ndarray, x: np.ndarray, targets: np.ndarray
) -> Any:
    """Give the candidate a linear model in float32, `weight` (vocabulary, d_model), and a batch.

    Gives the loss, its bits (32 at most), the bits of the model's output, the bits of its weight
    afterwards, and whether the loss sends a gradient, finite and not zero, to the weight.
    """
    import torch
    from torch import nn

    must_be_function(candidate)
    with torch_as_it_was():
        model = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        load_weights(model, {"weight": weight.astype(np.float32)})
        seen = [0]
        model.register_forward_hook(lambda _, __, out: seen.append(8 * out.element_size()))
        given = as_tensors({"x": x.astype(np.float32), "targets": targets})
        loss = candidate(model=model, **given)
        if not isinstance(loss, torch.Tensor) or loss.dim():
            raise Unusable("the loss must be a tensor without axes, to call backward on.")
        if loss.requires_grad:
            loss.backward()
        gradient = model.weight.grad
        reached = gradient is not None and bool(gradient.isfinite().all() and gradient.any())
        bits = min(32, 8 * loss.element_size())
        return loss.double(), bits, seen[-1], 8 * model.weight.element_size(), reached


class CountedSGD:
    """Plain gradient descent that counts its steps.

    One of our own, since `torch.optim` imports PyTorch's compiler first, which takes seconds.
    """

    def __init__(self, parameters: Iterable[Any], learning_rate: float):
        self._parameters, self._rate = list(parameters), learning_rate
        self.steps = 0

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear all gradients."""
        for parameter in self._parameters:
            parameter.grad = None if set_to_none or parameter.grad is None else parameter.grad * 0

    def step(self) -> None:
        """Move every parameter that has a gradient against it."""
        self.steps += 1
        for parameter in self._parameters:
            if parameter.grad is not None:
                parameter.data -= self._rate * parameter.grad


def call_accumulated_step(
    candidate: Any,
    terms: Terms,
    weights: Mapping[str, np.ndarray],
    stale: Mapping[str, np.ndarray],
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
    learning_rate: float,
) -> Any:
    """Let the candidate make one step of SGD on a linear model, over several micro-batches.

    `stale` are gradients that lie there from before. Gives what it returns, the model's weight and
    bias afterwards, the number of steps, the number of backward passes (at most as many as there
    are micro-batches with a target), and the most positions that the model got at once (at least
    those of the largest micro-batch).
    """
    import torch
    from torch import nn

    must_be_function(candidate)
    with torch_as_it_was():
        classes, d_model = weights["weight"].shape
        model = nn.Linear(d_model, classes).double()
        load_weights(model, weights)
        for name, gradient in stale.items():
            model.get_parameter(name).grad = torch.from_numpy(gradient.copy())
        optimizer = CountedSGD(model.parameters(), learning_rate)
        backward_passes = []
        positions = [max(targets.size for _, targets in batches)]
        model.weight.register_hook(lambda _: backward_passes.append(1))
        model.register_forward_pre_hook(
            lambda _, given: positions.append(given[0].numel() // d_model)
        )
        loss = candidate(model=model, optimizer=optimizer, batches=as_tensors(list(batches)))
        needed = sum(bool((targets >= 0).any()) for _, targets in batches)
        passes = min(len(backward_passes), needed)
        return loss, model.weight, model.bias, optimizer.steps, passes, max(positions)
