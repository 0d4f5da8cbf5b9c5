"""Arrays and plain values as JSON, so that no pickle ever crosses the border of a kernel.

Three kinds of document use it: the public checks file beside a notebook, the hidden inputs that
grading hands to a kernel, and the outcomes that the kernel hands back.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

SIGNIFICANT_DIGITS = 10  # for rounded documents: the same text on every processor's last bit
LARGEST_ARRAY = 1_000_000  # elements; a longer one in a student's answer is refused, not stored

# NaN and infinities have no JSON spelling of their own.
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _number_to_json(value: float, digits: int | None) -> float | str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value if digits is None else float(f"{value:.{digits}g}")


def to_json(value: Any, digits: int | None = None) -> Any:
    """Turn `value` into what `json.dumps` accepts.

    Accepts None, bool, int, float, str, lists, tuples, dicts with string keys, and NumPy arrays of
    bools, integers or floats. Floats keep every bit, or `digits` significant digits.
    Raises TypeError for anything else and ValueError for an array of over a million elements.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return to_json(np.asarray(value), digits)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return {"float": _number_to_json(value, digits)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"an array of dtype {value.dtype} cannot be stored")
        if value.size > LARGEST_ARRAY:
            raise ValueError(f"an array of {value.size:,} elements is too large to store")
        flat = value.ravel().tolist()
        if value.dtype.kind == "f":
            flat = [_number_to_json(float(number), digits) for number in flat]
        return {"array": flat, "shape": list(value.shape), "dtype": value.dtype.name}
    if isinstance(value, tuple):
        return {"tuple": [to_json(item, digits) for item in value]}
    if isinstance(value, list):
        return [to_json(item, digits) for item in value]
    if isinstance(value, dict):
        return {"dict": {str(key): to_json(item, digits) for key, item in value.items()}}
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


def from_json(value: Any) -> Any:
    """Invert `to_json`. Raises ValueError for a document that `to_json` cannot have made."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    try:
        if "array" in value:
            numbers = [_WORDS.get(n, n) if isinstance(n, str) else n for n in value["array"]]
            dtype = np.dtype(str(value["dtype"]))
            if dtype.kind not in "biuf":
                raise ValueError(f"unexpected dtype {dtype}")
            return np.array(numbers, dtype=dtype).reshape([int(n) for n in value["shape"]])
        if "float" in value:
            return float(_WORDS.get(value["float"], value["float"]))
        if "tuple" in value:
            return tuple(from_json(item) for item in value["tuple"])
        if "dict" in value:
            return {key: from_json(item) for key, item in value["dict"].items()}
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"not a stored value: {error}") from None
    raise ValueError("not a stored value: unknown kind")


def rounded(value: Any, digits: int) -> Any:
    """Return a deep copy of `value` whose floats have at most `digits` significant digits.

    The same as writing it with so many digits and reading it again, but in a third of the time.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        flat = [float(f"{number:.{digits}g}") for number in value.ravel().tolist()]
        return np.array(flat, dtype=value.dtype).reshape(value.shape)
    if isinstance(value, dict):
        return {str(key): rounded(item, digits) for key, item in value.items()}
    return from_json(to_json(value, digits))


def dumps(value: Any, digits: int | None = None) -> str:
    """Write `value` as compact, deterministic JSON text."""
    return json.dumps(to_json(value, digits), separators=(",", ":"), allow_nan=False)


def loads(text: str) -> Any:
    """Read what `dumps` wrote. Raises ValueError for anything else."""
    try:
        return from_json(json.loads(text))
    except RecursionError:
        raise ValueError("not a stored value: nested too deeply") from None
