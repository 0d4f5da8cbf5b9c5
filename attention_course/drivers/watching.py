"""Watch the tensors that operations make while a candidate runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms, Unusable


@contextlib.contextmanager
def watch_tensors(see: Callable[[Any], None]) -> Iterator[None]:
    """Call `see(tensor)` for every tensor that an operation of PyTorch gives within the block."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_iter

    class Watch(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else PyTorch's compiler is imported, which takes seconds

        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            result = function(*arguments, **(keywords or {}))
            for part in tree_iter(result):
                if isinstance(part, torch.Tensor):
                    see(part)
            return result

    with Watch():
        yield


def call_measured_function(candidate: Any, terms: Terms, allowed: int, **inputs: Any) -> Any:
    """Call the candidate with every array as a tensor; the last output is what it needs at once.

    That is the number of elements of the largest tensor that an operation of the candidate makes,
    or `allowed` if none is larger. Views take no memory of their own and count as what they show.
    """
    import torch

    if not callable(candidate):
        raise Unusable(f"a function is expected, this is of type {type(candidate).__name__}.")
    with torch_as_it_was():
        given = as_tensors(inputs)
        tensors = [value for value in given.values() if isinstance(value, torch.Tensor)]
        own = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        sizes = [allowed]

        def see(tensor: Any) -> None:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                sizes.append(storage.nbytes() // tensor.element_size())

        with watch_tensors(see):
            result = candidate(**given)
        return result, max(sizes)
