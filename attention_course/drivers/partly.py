"""Exercises whose result has places that mean nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from attention_course.drivers.tensors import call_tensor_function
from attention_course.outcomes import Terms


def call_partly_compared(candidate: Any, terms: Terms, compared: np.ndarray, **inputs: Any) -> Any:
    """Call the candidate with every array as a tensor; its one output counts where `compared` is.

    Elsewhere it becomes 0, whatever it was. A result of another shape than `compared` stays as it
    is: the comparison finds that.
    """
    import torch

    result = call_tensor_function(candidate, terms, **inputs)
    if not isinstance(result, torch.Tensor) or result.shape != compared.shape:
        return result
    return result.masked_fill(~torch.from_numpy(compared), 0)
