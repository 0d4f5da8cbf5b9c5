"""Watch the tensors that operations make while a candidate runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attention_course.drivers.functions import must_be_function
from attention_course.drivers.tensors import as_tensors, torch_as_it_was
from attention_course.outcomes import Terms


@contextlib.contextmanager
def watch_new_memory(see: Callable[[Any], None]) -> Iterator[None]:
    """Within the block, call `see(tensor)` for every result of an operation with memory of its own.

    Views of what an operation was given, and what it writes in place, take no new memory.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    def tensors(parts: Iterable[Any]) -> list[Any]:
        found = []
        for part in parts:
            if isinstance(part, torch.Tensor):
                found.append(part)
            elif isinstance(part, list | tuple):
                found += tensors(part)
        return found

    class Watch(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else PyTorch's compiler is imported, which takes seconds

        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            keywords = keywords or {}
            given = tensors((*arguments, *keywords.values()))
            given = {tensor.untyped_storage().data_ptr() for tensor in given}
            result = function(*arguments, **keywords)
            for tensor in tensors((result,)):
                if tensor.untyped_storage().data_ptr() not in given:
                    see(tensor)
            return result

    with Watch():
        yield


def call_measured_function(candidate: Any, terms: Terms, allowed: int, **inputs: Any) -> Any:
    """Call the candidate with every array as a tensor; the last output is what it needs at once.

    That is the number of elements of the largest tensor that an operation of the candidate makes,
    or `allowed` if none is larger.
    """
    must_be_function(candidate)
    with torch_as_it_was():
        sizes = [allowed]
        with watch_new_memory(
            lambda t: sizes.append(t.untyped_storage().nbytes() // t.element_size())
        ):
            result = candidate(**as_tensors(inputs))
        return result, max(sizes)
