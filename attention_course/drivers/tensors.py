"""Exercises that ask for a function of PyTorch tensors, and what all PyTorch exercises share.

PyTorch is imported when the first such exercise runs: NumPy chapters do without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attention_course.drivers.functions import must_be_function
from attention_course.outcomes import Terms, Unusable

GRADIENT = "gradient of "  # an output of this name is asked of autograd, not of the candidate
SEED = 0


def as_tensors(value: Any) -> Any:
    """Turn every NumPy array in nested dicts, lists and tuples into a tensor.

    The memory stays the same, so a candidate that writes into a tensor changes the case's array.
    """
    import torch

    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if isinstance(value, Mapping):
        return {name: as_tensors(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(as_tensors(item) for item in value)
    return value


@contextlib.contextmanager
def torch_as_it_was() -> Iterator[None]:
    """Run on one thread from a fixed seed; put PyTorch's global state back afterwards."""
    import torch

    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    gradients, random_state = torch.is_grad_enabled(), torch.get_rng_state()
    try:
        if threads != 1:
            torch.set_num_threads(1)
        torch.set_grad_enabled(True)
        # Not torch.manual_seed: it also prepares the seeds of GPUs, a hundred times slower.
        torch.default_generator.manual_seed(SEED)
        yield
    finally:
        torch.set_rng_state(random_state)
        torch.set_grad_enabled(gradients)
        torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


def split_outputs(outputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split names of outputs into the candidate's own and those whose gradient is asked for."""
    own = [name for name in outputs if not name.startswith(GRADIENT)]
    wanted = [name.removeprefix(GRADIENT) for name in outputs if name.startswith(GRADIENT)]
    return own, wanted


def with_gradients(result: Any, own: Sequence[str], leaves: Mapping[str, Any], upstream: Any):
    """Give the candidate's outputs followed by the gradients of the first one for all `leaves`.

    Without `upstream` the first output's sum is differentiated. What does not depend on a leaf has
    gradient zero for it.
    """
    import torch

    if not leaves:
        return result
    parts = tuple(result) if len(own) > 1 and isinstance(result, tuple | list) else (result,)
    if len(parts) != len(own):
        raise Unusable(f"it returned {len(parts)} values; {len(own)} are expected.")
    first = parts[0]
    if not isinstance(first, torch.Tensor):
        return (*parts, *(torch.zeros_like(leaf) for leaf in leaves.values()))
    if upstream is not None and upstream.shape != first.shape:
        upstream = None  # the wrong shape is found by the comparison
    found = [None] * len(leaves)
    if first.requires_grad:
        # A weighted sum: given `grad_outputs`, PyTorch would first import SymPy, for seconds.
        total = (first if upstream is None else first * upstream.to(first.dtype)).sum()
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    gradients = (
        torch.zeros_like(leaf) if gradient is None else gradient
        for leaf, gradient in zip(leaves.values(), found, strict=True)
    )
    return (*parts, *gradients)


def call_tensor_function(candidate: Any, terms: Terms, upstream: Any = None, **inputs: Any) -> Any:
    """Call the candidate with every array as a tensor.

    An output named "gradient of X" is the gradient for the input X; `upstream` is the gradient of
    the loss for the first output.
    """
    must_be_function(candidate)
    with torch_as_it_was():
        own, wanted = split_outputs(terms.outputs)
        given = as_tensors(inputs)
        for name in wanted:
            given[name].requires_grad_()
        result = candidate(**given)
        leaves = {name: given[name] for name in wanted}
        return with_gradients(result, own, leaves, as_tensors(upstream))
