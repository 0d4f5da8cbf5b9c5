"""A device that is played: tensors that say they are elsewhere, on any machine, in no time.

PyTorch's own device "meta" would do, but its operations import PyTorch's compiler first, which
takes seconds. Here every operation runs on the CPU, and only where results lie is played: tensors
of two devices in one operation are an error, as they are on a GPU.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

DEVICE = "meta"  # the name that tensors elsewhere give; a name that every build of PyTorch knows
_MOVES = ("aten::_to_copy", "aten::copy_")  # operations that may see two devices


@functools.cache
def _elsewhere_class() -> type:
    """Make the class of tensors that are elsewhere; each holds a tensor on the CPU."""
    import torch

    class Elsewhere(torch.Tensor):
        @staticmethod
        def __new__(cls, held):
            return torch.Tensor._make_wrapper_subclass(
                cls, held.shape, strides=held.stride(), dtype=held.dtype, device=DEVICE
            )

        def __init__(self, held):
            self.held = held

        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
            return _run(function, arguments, keywords or {})

    return Elsewhere


def _held(value: Any) -> Any:
    """Give what an operation on the CPU can take in the place of `value`."""
    import torch

    if isinstance(value, _elsewhere_class()):
        return value.held
    if isinstance(value, torch.Tensor) and value.is_meta:  # made from a list: its numbers are lost
        return torch.zeros(value.shape, dtype=value.dtype)
    return value


def _run(function: Any, arguments: tuple, keywords: Mapping[str, Any]) -> Any:
    """Run one operation on the CPU and let its results lie where they would have to.

    Raises RuntimeError if tensors of two devices meet; single numbers may come from the CPU.
    """
    import torch
    from torch.utils._pytree import tree_iter, tree_map

    elsewhere = _elsewhere_class()
    tensors = [t for t in tree_iter((arguments, keywords)) if isinstance(t, torch.Tensor)]
    there = [tensor for tensor in tensors if tensor.is_meta]
    here = [tensor for tensor in tensors if not tensor.is_meta and tensor.dim()]
    if there and here and function.name().partition(".")[0] not in _MOVES:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{DEVICE} and cpu!"
        )
    device = keywords.get("device")
    goes_there = bool(there) if device is None else device.type == DEVICE
    keywords = {**keywords, "device": torch.device("cpu")} if device is not None else keywords
    written = {id(t.held): t for t in there if isinstance(t, elsewhere)}
    result = function(*tree_map(_held, arguments), **tree_map(_held, keywords))

    def placed(part: Any) -> Any:
        if id(part) in written:  # an operation in place gives its own tensor back
            return written[id(part)]
        return elsewhere(part) if isinstance(part, torch.Tensor) and goes_there else part

    return tree_map(placed, result)


@contextlib.contextmanager
def played_device(see: Callable[[Any], None]) -> Iterator[None]:
    """Within the block, what goes to the device "meta" is played; `see` gets every result."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_iter

    class Play(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else PyTorch's compiler is imported, which takes seconds

        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            result = _run(function, arguments, keywords or {})
            for part in tree_iter(result):
                if isinstance(part, torch.Tensor):
                    see(part)
            return result

    with Play():
        yield
