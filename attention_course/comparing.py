"""Compare what a candidate did with what was expected, strictest question first.

Order: did it return, did it leave its inputs alone, shapes, kinds of numbers, NaN, values. Shapes
come first because `numpy.allclose` broadcasts and would call a wrong shape right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attention_course.outcomes import TEXT, Outcome

KIND_NAMES = {"b": "True/False", "i": "integers", "u": "integers", "f": "floating-point numbers"}

KIND_PHRASES = {
    "array": "a NumPy array",
    "tensor": "a PyTorch tensor",
    "number": "a number",
    "sequence": "a Python list or tuple",
}
# (what came, what is expected) that are as good as each other; shapes are compared anyway.
GOOD_ENOUGH = {
    ("array", "number"),
    ("number", "array"),
    ("tensor", "number"),
    ("array", "sequence"),
    ("tensor", "sequence"),
    ("number", "sequence"),
    ("sequence", "number"),
}


@dataclass(frozen=True)
class Tolerance:
    """A number is right when |got − expected| ≤ absolute + relative·|expected|."""

    relative: float = 1e-7
    absolute: float = 1e-9

    def for_dtype(self, dtype: np.dtype) -> Tolerance:
        """Widen for float32 answers, which carry seven digits."""
        if dtype == np.float32:
            return Tolerance(max(self.relative, 1e-4), max(self.absolute, 1e-5))
        return self


@dataclass(frozen=True)
class Difference:
    """The first thing that differs. `kind` is a short word, `sentence` shows no expected value.

    `got` and `expected` are texts; a grader that must not reveal a hidden value drops `expected`
    with `hidden()`.
    """

    kind: str
    sentence: str
    output: str = ""
    index: tuple[int, ...] | None = None
    got: str = ""
    expected: str = ""

    def hidden(self) -> Difference:
        """Give the same difference without what was expected."""
        return replace(self, expected="")


def _format(value: np.generic) -> str:
    return f"{float(value):.6g}" if value.dtype.kind == "f" else str(value)


def _kind(dtype: np.dtype) -> str:
    return "i" if dtype.kind == "u" else dtype.kind


def _compare_arrays(
    name: str, got: np.ndarray, expected: np.ndarray, tolerance: Tolerance
) -> Difference | None:
    if got.shape != expected.shape:
        sentence = f"`{name}` has the wrong shape."
        return Difference("shape", sentence, name, None, str(got.shape), str(expected.shape))
    if _kind(got.dtype) != _kind(expected.dtype):
        sentence = f"`{name}` holds the wrong kind of numbers."
        return Difference(
            "dtype",
            sentence,
            name,
            None,
            f"{KIND_NAMES[got.dtype.kind]} ({got.dtype})",
            KIND_NAMES[expected.dtype.kind],
        )
    if got.dtype.kind != "f":
        wrong = got != expected
    else:
        limit = tolerance.for_dtype(got.dtype)
        a, b = got.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(a - b) <= limit.absolute + limit.relative * np.abs(b)
        wrong = ~((a == b) | (np.isfinite(b) & near) | (np.isnan(a) & np.isnan(b)))
        nans = np.isnan(a) & ~np.isnan(b)
        if nans.any():
            index = tuple(int(i) for i in np.argwhere(nans)[0])
            sentence = f"`{name}` contains NaN ({int(nans.sum())} of {nans.size} entries)."
            return Difference("nan", sentence, name, index, "nan", _format(b[index]))
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    sentence = f"`{name}` differs at {int(wrong.sum())} of {wrong.size} entries."
    return Difference(
        "values", sentence, name, index, _format(got[index]), _format(expected[index])
    )


def _agreeing(got: np.ndarray, expected: np.ndarray) -> int:
    """Count the entries along the first axis that agree before the first difference."""
    both = min(len(got), len(expected))
    return next((i for i in range(both) if np.any(got[i] != expected[i])), both)


def _excerpt(numbers: np.ndarray, place: int) -> str:
    """Quote the text of these character numbers around a place."""
    first, last = max(place - 20, 0), place + 20
    some = "".join(chr(n) if 0 <= n < 0x110000 else "\ufffd" for n in numbers[first:last].tolist())
    return "… " * (first > 0) + repr(some) + " …" * (last < len(numbers))


def _compare_texts(name: str, got: np.ndarray, expected: np.ndarray) -> Difference | None:
    """Compare texts, given as the numbers of their characters."""
    if np.array_equal(got, expected):
        return None
    place = _agreeing(got, expected)
    sentence = f"`{name}` is not the text asked for: it differs from index {place} on."
    return Difference(
        "values", sentence, name, None, _excerpt(got, place), _excerpt(expected, place)
    )


def _compare_lengths(name: str, got: np.ndarray, expected: np.ndarray) -> Difference | None:
    """Compare the lengths of lists; what is in them comes later."""
    alike = got.ndim > 0 and (got.shape[1:] == expected.shape[1:] or got.size == 0)
    if not alike or len(got) == len(expected):
        return None
    place = _agreeing(got, expected)
    right = f"; before index {place} all is right" if place else ""
    sentence = f"`{name}` has the wrong length{right}."
    return Difference("length", sentence, name, None, str(len(got)), str(len(expected)))


def _compare_output(
    name: str, got: np.ndarray, expected: np.ndarray, kind: str, tolerance: Tolerance
) -> Difference | None:
    """Compare one output in the words that fit it: a text, a list, or an array."""
    if name == TEXT and got.ndim == 1 and got.dtype.kind in "iu":
        return _compare_texts(name, got, expected)
    uneven = _compare_lengths(name, got, expected) if kind == "sequence" else None
    return uneven or _compare_arrays(name, got, expected, tolerance)


def compare(got: Outcome, expected: Outcome, tolerance: Tolerance) -> Difference | None:
    """Return the first difference between two outcomes of the same case, or None if there is none.

    An expected "raised" outcome is met by an exception of the same class, whatever its message.
    """
    if expected.status == "raised":
        if got.status == "raised" and got.error == expected.error:
            return None
        seen = f"it raised {got.error}" if got.status == "raised" else f"it {got.status}"
        sentence = "This input must be refused, and it was not refused in the way asked for."
        return Difference("not refused", sentence, "", None, seen, f"it raises {expected.error}")
    if got.status == "raised":
        if got.error == "NotImplementedError":
            return Difference("not attempted", "There is no answer yet: the stub is still there.")
        text = f"{got.error}: {got.message}"[:300] if got.message else got.error
        if got.error == "TypeError" and "unexpected keyword argument" in got.message:
            sentence = "The parameters must keep the names that the exercise gives them."
            return Difference("signature", sentence, "", None, text)
        return Difference("raised", "Your code raised an exception.", "", None, text)
    if got.status == "timed out":
        return Difference("timed out", f"Your code was stopped: {got.message}.")
    if got.status != "returned":
        return Difference("unusable", f"The answer cannot be compared: {got.message}")
    if got.forbidden_calls:
        names = ", ".join(f"`{name}`" for name in got.forbidden_calls)
        sentence = f"Your code called {names}, which this exercise asks you to do without."
        return Difference("forbidden call", sentence)
    if got.changed_inputs:
        names = ", ".join(f"`{name}`" for name in got.changed_inputs)
        return Difference("changed input", f"Your code changed its input {names} in place.")
    for name, array in expected.outputs.items():
        if name not in got.outputs:
            return Difference("unusable", f"The answer has no `{name}`.")
        wanted, kind = expected.kinds[name], got.kinds[name]
        if kind != wanted and (kind, wanted) not in GOOD_ENOUGH:
            sentence = f"`{name}` is {KIND_PHRASES[kind]}; {KIND_PHRASES[wanted]} is expected."
            return Difference("type", sentence, name)
        found = _compare_output(name, got.outputs[name], array, wanted, tolerance)
        if found:
            return found
    return None


def same_outcome(a: Outcome, b: Outcome) -> bool:
    """Tell whether two candidates did the same on a case: equal to six digits, NaN like NaN."""
    if a.status != b.status or set(a.changed_inputs) != set(b.changed_inputs):
        return False
    if a.forbidden_calls != b.forbidden_calls:
        return False
    if a.status == "raised":
        return a.error == b.error and a.message == b.message
    if a.status == "unusable":
        return a.message == b.message
    loose = Tolerance(1e-6, 1e-8)
    plain_a, plain_b = (replace(x, changed_inputs=(), forbidden_calls=()) for x in (a, b))
    return compare(plain_a, plain_b, loose) is None and a.outputs.keys() == b.outputs.keys()
