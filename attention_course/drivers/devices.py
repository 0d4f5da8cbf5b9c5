"""Exercises about devices. The device "meta" stands for a GPU.

A tensor that is made on the CPU by mistake shows there as it would on a GPU, on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attention_course.drivers.elsewhere import DEVICE as ELSEWHERE
from attention_course.drivers.elsewhere import played_device
from attention_course.drivers.functions import must_be_function
from attention_course.drivers.modules import build_module, load_weights
from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms, Unusable


def _children(value: Any) -> list[Any] | None:
    """List what a container holds; None for anything else."""
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else None


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    for child in _children(value) or ():
        yield from _tensors(child)


def _same_but_for_tensors(a: Any, b: Any) -> bool:
    """Tell whether two nested things are equal, where a tensor equals any tensor."""
    import torch

    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    if type(a) is not type(b):
        return False
    ours, theirs = _children(a), _children(b)
    if ours is None:
        return a == b
    keys_fit = not isinstance(a, Mapping) or list(a) == list(b)
    return keys_fit and len(ours) == len(theirs) and all(map(_same_but_for_tensors, ours, theirs))


def call_moving(candidate: Any, terms: Terms, batch: Any) -> Any:
    """Move a nested batch to the device "meta", and to the CPU, where numbers can be seen.

    Gives: for each tensor whether it arrived; for each tensor its number of elements and the bytes
    of one; whether all the rest is kept; whether the batch that came in is as it was; all numbers
    in one row.
    """
    import torch

    must_be_function(candidate)
    with torch_as_it_was():
        given = as_tensors(batch)
        before = list(_tensors(given))
        moved = candidate(batch=given, device=torch.device(ELSEWHERE))
        arrived = [int(tensor.device.type == ELSEWHERE) for tensor in _tensors(moved)]
        sizes = [[tensor.numel(), tensor.element_size()] for tensor in _tensors(moved)]
        after = list(_tensors(given))
        left_alone = _same_but_for_tensors(given, as_tensors(batch)) and all(
            a is b for a, b in zip(before, after, strict=True)
        )
        stayed = candidate(batch=as_tensors(batch), device=torch.device("cpu"))
        numbers = [t.detach().double().flatten() for t in _tensors(stayed)]
        if any(t.is_meta for t in numbers):
            raise Unusable('asked to move to the device "cpu", it moved a tensor elsewhere.')
        return (
            torch.tensor(arrived, dtype=torch.int64),
            torch.tensor(sizes, dtype=torch.int64).reshape(-1, 2),
            _same_but_for_tensors(moved, as_tensors(batch)),
            left_alone,
            torch.cat(numbers) if numbers else torch.zeros(0),
        )


def _run_elsewhere(module: Any, given: Mapping[str, Any]) -> tuple[int, int]:
    """Count the tensors that forward leaves on the CPU, and the bits of the numbers it returns.

    The module and its inputs lie elsewhere, in bfloat16. Single numbers don't count: operations
    take them from the CPU.
    """
    import torch

    left: list[Any] = []
    with played_device(lambda tensor: left.append(tensor)):
        half = module.to(ELSEWHERE, torch.bfloat16)
        inputs = {
            name: tensor.to(ELSEWHERE, torch.bfloat16 if tensor.is_floating_point() else None)
            for name, tensor in given.items()
        }
        left.clear()
        result = half(**inputs)
    if not isinstance(result, torch.Tensor):
        raise Unusable(f"it returned a {type(result).__name__}; a tensor is expected.")
    return sum(t.dim() > 0 and not t.is_meta for t in left), 8 * result.element_size()


def call_portable_module(
    candidate: Any,
    terms: Terms,
    build: Mapping[str, Any],
    inputs: Mapping[str, Any],
    weights: Mapping[str, Any] | None = None,
) -> Any:
    """Build and run a module on the CPU, then move it to another device and type and run it there.

    Gives its result on the CPU, its number of parameters, how many tensors it made on the CPU when
    it was elsewhere, and the bits of the numbers that it then returned (16 for bfloat16).
    """
    with torch_as_it_was():
        module = build_module(candidate, build)
        if weights is not None:
            load_weights(module, weights)
        given = as_tensors(inputs)
        result = module(**given)
        count = sum(parameter.numel() for parameter in module.parameters())
        return (result, count, *_run_elsewhere(module, given))
