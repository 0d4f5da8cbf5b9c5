"""Exercises that ask for a function of NumPy arrays and plain values."""

from __future__ import annotations

from typing import Any

from attention_course.outcomes import Terms, Unusable


def must_be_function(candidate: Any) -> None:
    """Raise Unusable, saying what came instead, if the candidate cannot be called."""
    if not callable(candidate):
        raise Unusable(f"a function is expected, this is of type {type(candidate).__name__}.")


def call_function(candidate: Any, terms: Terms, **inputs: Any) -> Any:
    """Call the candidate with the case's inputs as keyword arguments."""
    must_be_function(candidate)
    return candidate(**inputs)
