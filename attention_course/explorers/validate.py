"""Turning arguments into what an explorer can draw, with errors that help.

Every error names the argument, says what was expected and what came, and ends with what to do.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence

import numpy as np


def array(name: str, value: object, axes: str, ndim: int) -> np.ndarray:
    """`value` as a finite float64 array with `ndim` axes, none of them empty.

    Args:
        name: of the argument, for the message.
        value: an array, a tensor or nested lists of numbers.
        axes: the expected shape in words, such as "(queries, keys)".
        ndim: the number of axes in `axes`.

    Raises:
        TypeError: if `value` does not hold numbers in rows of equal length.
        ValueError: if the number of axes is wrong, an axis is empty, or an entry is not finite.
    """
    if hasattr(value, "detach"):  # a torch tensor, perhaps part of a graph or on a GPU
        value = value.detach().cpu()
    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be numbers of shape {axes}, rows of equal length; "
            f"got {type(value).__name__}. Pass a NumPy array or nested lists."
        ) from None
    if result.ndim != ndim:
        raise ValueError(
            f"{name} must have shape {axes}, so {ndim} axes; got {result.ndim} "
            f"(shape {result.shape}). Index or reshape it first."
        )
    if result.size == 0:
        raise ValueError(
            f"{name} must have shape {axes} with no empty axis; got shape {result.shape}. "
            f"Pass at least one entry along each axis."
        )
    if not np.isfinite(result).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise ValueError(
            f"{name} must be finite; {name}{list(place)} is {result[place]}. "
            f"Look for an overflow, or for a mask that was already applied."
        )
    return result


def lists(values: np.ndarray) -> list:
    """Nested lists of Python floats, rounded to six places: what goes to the browser."""
    return np.round(values, 6).tolist()


def token_list(name: str, value: Sequence[str] | None, count: int, axis: str) -> list[str]:
    """`value` as `count` strings; None gives "1", "2", ...

    Raises:
        TypeError: if `value` is one string or holds something other than strings.
        ValueError: if there are not `count` of them.
    """
    if value is None:
        return [str(i + 1) for i in range(count)]
    if isinstance(value, str):
        raise TypeError(
            f"{name} must be a list of strings, one for each of the {count} {axis}; "
            f"got one string. Split it first: {name}.split()."
        )
    tokens = list(value)
    for i, token in enumerate(tokens):
        if not isinstance(token, str):
            raise TypeError(
                f"{name} must be strings; {name}[{i}] is {type(token).__name__}. "
                f"Use str(...) on it."
            )
    if len(tokens) != count:
        raise ValueError(
            f"{name} must name each of the {count} {axis}; got {len(tokens)} tokens. "
            f"Pass as many tokens as there are {axis}."
        )
    return tokens


def at_most(name: str, count: int, limit: int, what: str) -> None:
    """Raises ValueError if more is asked than a figure can show legibly."""
    if count > limit:
        raise ValueError(
            f"{name} has {count} {what}; this figure draws at most {limit}. Pass a slice of it."
        )


def number(name: str, value: object, low: float, high: float) -> float:
    """`value` as a float between `low` and `high`, both included.

    Raises:
        TypeError: if it is no real number.
        ValueError: if it lies outside.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{name} must be a number from {low:g} to {high:g}; got {type(value).__name__}. "
            f"Pass a plain number."
        )
    if not (math.isfinite(value) and low <= value <= high):
        raise ValueError(
            f"{name} must lie from {low:g} to {high:g}; got {value}. Choose a value inside."
        )
    return float(value)


def layers(name: str, value: object, axes: str) -> np.ndarray:
    """One float64 array (layers, *axes) from one layer's array or a list over layers.

    Each layer may have a batch axis of length 1 before its three `axes`.

    Raises:
        TypeError: as `array` does.
        ValueError: if a layer has other axes, or the layers differ in shape, or there are none.
    """
    several = isinstance(value, (list, tuple)) and (not value or _ndim(value[0]) >= 3)
    result = []
    for i, layer in enumerate(value if several else [value]):
        label = f"{name}[{i}]" if several else name
        if _ndim(layer) == 4:
            if len(layer) != 1:
                raise ValueError(
                    f"{label} must have shape {axes}, or a batch of 1 before it; got {len(layer)} "
                    f"as first of 4 axes. Choose one example of a batch; pass layers as a list."
                )
            layer = layer[0]
        found = array(label, layer, axes, 3)
        if result and found.shape != result[0].shape:
            raise ValueError(
                f"{label} must have the shape of the other layers, {result[0].shape}; got "
                f"{found.shape}. Show layers of different shapes in views of their own."
            )
        result.append(found)
    if not result:
        raise ValueError(f"{name} must hold at least one layer; got none. Pass one array.")
    return np.stack(result)


def _ndim(value: object) -> int:
    try:
        return value.dim() if hasattr(value, "dim") else np.ndim(value)
    except ValueError:  # rows of unequal length: `array` says so better
        return 0


def index(name: str, value: object, count: int, what: str) -> None:
    """Raises ValueError unless `value` is a whole number from 0 to `count` - 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise ValueError(
            f"{name} must be a whole number from 0 to {count - 1}, there are {count} {what}; "
            f"got {value!r}. Counting starts at 0."
        )
