"""What a computation needs, bytes and seconds, and what uneven times allow one to say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attention_course.drivers.watching import watch_new_memory

BUSY = 1.5  # on a quiet machine, times of the same work differ by less than this factor


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


def unevenness(*tables: Any) -> float:
    """Say how much times of the same work differ: the largest over the smallest, at worst.

    Args:
        tables: positive seconds, shape (runs, sizes); a column holds times of the same work.

    Returns:
        A factor: 1 if all runs took equally long.
    """
    return float(max((np.max(table, axis=0) / np.min(table, axis=0)).max() for table in tables))


def settled(holds: Sequence[bool], uneven: float) -> str:
    """Say what several runs say of a claim about times.

    Only if all runs agree is the claim settled; and on a busy machine runs that all fail to show
    it have shown nothing.

    Args:
        holds: for each run, whether the claim holds in it.
        uneven: what `unevenness` gave for the times.

    Returns:
        The end of a sentence.
    """
    count, runs = sum(map(bool, holds)), len(holds)
    if count == runs:
        return f"supported by all {runs} runs"
    if uneven > BUSY:
        return f"left open: {count} of {runs} runs support it, and the machine was busy"
    if count:
        return f"left open: {count} of {runs} runs support it"
    return f"NOT supported by any of the {runs} runs"


def quiet_or_busy(uneven: float) -> str:
    """Say in a sentence how far times can be trusted, given their `unevenness`."""
    said = f"Times of the same work differ by a factor of up to {uneven:.2f}"
    if uneven > BUSY:
        return f"{said}: this machine was busy. Run the cell again before you believe it."
    return f"{said}: no sign of a busy machine."
