"""Exercises whose results are texts or lists of token numbers, of whatever length.

Comparing knows arrays only: a text becomes the numbers of its characters, a list of whole numbers
an array of them, also when it is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attention_course.drivers.functions import call_function
from attention_course.outcomes import TEXT, Terms, Unusable


def as_numbers(name: str, value: Any) -> Any:
    """Turn an output into an integer array; what is neither text nor a list stays as it is.

    Raises Unusable if a text comes where a list is expected, or the other way round.
    """
    is_text = isinstance(value, str)
    if is_text != (name == TEXT) and value is not None:
        wanted = "a string" if name == TEXT else "a list of token numbers"
        raise Unusable(f"`{name}` is of type {type(value).__name__}; {wanted} is expected.")
    if is_text:
        return np.array([ord(character) for character in value], dtype=np.int64)
    if isinstance(value, list | tuple) and not value:
        return np.zeros(0, dtype=np.int64)
    return list(value) if isinstance(value, tuple) else value


def call_sequence_function(candidate: Any, terms: Terms, **inputs: Any) -> Any:
    """Call the candidate with the case's inputs as keyword arguments.

    An output named "text" has to be a string, every other one a list of whole numbers.
    """
    result = call_function(candidate, terms, **inputs)
    names = terms.outputs
    if len(names) == 1:
        return as_numbers(names[0], result)
    if not isinstance(result, tuple | list) or len(result) != len(names):
        return result  # the number of outputs is complained about later
    return tuple(as_numbers(name, part) for name, part in zip(names, result, strict=True))
