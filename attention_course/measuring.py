"""What a computation needs: bytes of tensors that are alive at the same time, and seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attention_course.drivers.watching import watch_new_memory


def peak_bytes(run: Callable[[], Any], device: Any = "cpu") -> int:
    """Bytes of all tensors that `run()` has alive at once, beyond those that were there before.

    On a CUDA device PyTorch's allocator says so. On the CPU the results of all operations are
    followed; what a single operation needs inside while it runs is not seen there.

    Args:
        run: takes nothing; what it returns counts until it has returned.
        device: where it computes, a `torch.device` or its name.

    Returns:
        The largest sum of bytes.
    """
    import torch

    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    return _peak_of_results(run)


def _peak_of_results(run: Callable[[], Any]) -> int:
    from torch.multiprocessing.reductions import StorageWeakRef

    alive: list[tuple[Any, int]] = []  # (storage, bytes)
    peak = 0

    def see(tensor: Any) -> None:
        nonlocal peak
        alive[:] = [(storage, size) for storage, size in alive if not storage.expired()]
        storage = tensor.untyped_storage()
        alive.append((StorageWeakRef(storage), storage.nbytes()))
        peak = max(peak, sum(size for _, size in alive))

    with watch_new_memory(see):
        run()
    return peak


def seconds_of(function: Callable[..., Any], *inputs: Any, at_least: float = 0.02) -> float:
    """Median time of `function(*inputs)` without gradients, by PyTorch's own stopwatch.

    The stopwatch warms up, waits for the device, uses one thread, and repeats.

    Args:
        function: what to time.
        inputs: what it gets.
        at_least: for how many seconds it is repeated.

    Returns:
        Seconds for one call.
    """
    import torch
    from torch.utils import benchmark

    names = {"function": function, "inputs": inputs}
    with torch.no_grad():
        timer = benchmark.Timer("function(*inputs)", globals=names)
        return timer.blocked_autorange(min_run_time=at_least).median
