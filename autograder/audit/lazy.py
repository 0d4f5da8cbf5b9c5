"""Answers that cost no thought. A check that pays for one of them checks nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from attention_course.outcomes import Outcome

CONSTANTS = {"zeros": 0.0, "ones": 1.0, "halves": 0.5, "NaN everywhere": np.nan}


def _nothing(**inputs: Any) -> None:
    """Return nothing."""


def _refusal(**inputs: Any) -> None:
    raise ValueError("no")


def _input(name: str, copies: int) -> Callable[..., Any]:
    def give_back(**inputs: Any) -> Any:
        value = inputs.get(name)
        return value if copies == 1 else (value,) * copies

    return give_back


def lazy_functions(
    parameters: Sequence[str], outputs: Sequence[str]
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield (description, function): nothing, always an exception, each input as it came."""
    yield "nothing (None)", _nothing
    yield "a ValueError, whatever the input", _refusal
    for name in parameters:
        yield f"its input `{name}`", _input(name, len(outputs))


def _filled(shape: tuple[int, ...], dtype: np.dtype, value: float) -> np.ndarray:
    return np.full(shape, value, dtype if np.isfinite(value) else np.float64)


def _uniform(array: np.ndarray) -> np.ndarray:
    return _filled(array.shape, array.dtype, 1 / (array.shape or (1,))[-1] if array.size else 0.0)


def _replaced(expected: Sequence[Outcome], fill: Callable[[np.ndarray], np.ndarray]):
    """Give the expected outcomes with other numbers; where an exception is due it is raised."""
    return [
        Outcome(
            want.status,
            {name: fill(array) for name, array in want.outputs.items()},
            want.kinds,
            want.error,
        )
        for want in expected
    ]


def lazy_outcomes(expected: Sequence[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    """Yield (description, outcomes): right shapes and kinds, constant numbers."""
    for name, value in CONSTANTS.items():
        yield name, _replaced(expected, lambda a, v=value: _filled(a.shape, a.dtype, v))
    yield "uniform weights", _replaced(expected, _uniform)
