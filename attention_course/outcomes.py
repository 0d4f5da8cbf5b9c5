"""What is asked of a candidate, and what it did on one case: plain data that can travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

STATUSES = ("returned", "raised", "timed out", "unusable")
KINDS = ("array", "tensor", "number", "sequence")
TEXT = "text"  # an output of this name is a string, held as the numbers of its characters
DETAILS = ("traceback", "printed", "warning")
LONGEST_TEXT = 2_000  # characters of a candidate's own text (prints, messages) that are kept


class Unusable(Exception):
    """The candidate, or what it returned, cannot be compared. The message says why."""


@dataclass(frozen=True)
class Terms:
    """What an exercise asks of a candidate, apart from being right.

    `outputs` names what it returns, in order; with more than one name a tuple. `seconds` is the
    time limit of one case. `forbidden` lists functions that it must do without, by dotted names or
    patterns (see `recording`).
    """

    outputs: tuple[str, ...] = ("result",)
    seconds: float = 2.0
    forbidden: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Give the terms as `codec` can store them."""
        return {
            "outputs": list(self.outputs),
            "seconds": self.seconds,
            "forbidden": list(self.forbidden),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Terms:
        """Read `to_plain`'s dict."""
        return cls(tuple(plain["outputs"]), plain["seconds"], tuple(plain["forbidden"]))


@dataclass(frozen=True)
class Outcome:
    """What one candidate did on one case.

    `status` is one of "returned", "raised", "timed out" or "unusable" (it returned something that
    cannot be compared; `message` says what). `outputs` maps output names to arrays. `kinds` holds
    for every output whether it came as "array", "tensor", "number" or "sequence".
    """

    status: str
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    message: str = ""
    changed_inputs: tuple[str, ...] = ()
    forbidden_calls: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)  # traceback, printed, warning

    def to_plain(self) -> dict[str, Any]:
        """Give the parts that grading compares and shows, as `codec` can store them."""
        return {
            "status": self.status,
            "outputs": dict(self.outputs),
            "kinds": dict(self.kinds),
            "error": self.error,
            "message": self.message,
            "changed_inputs": list(self.changed_inputs),
            "forbidden_calls": list(self.forbidden_calls),
            "details": dict(self.details),
        }

    def without_details(self) -> dict[str, Any]:
        """Give `to_plain`'s dict with no details: what a built file holds."""
        return {**self.to_plain(), "details": {}}

    @classmethod
    def from_plain(cls, plain: Any) -> Outcome:
        """Read `to_plain`'s dict, believing nothing about it.

        Raises ValueError if a part is missing or is none that `to_plain` can give. Texts and lists
        are cut to a size.
        """
        try:
            status, outputs, kinds = plain["status"], plain["outputs"], plain["kinds"]
            if status not in STATUSES or any(kinds[name] not in KINDS for name in outputs):
                raise ValueError("unknown status or kind")
            if not all(isinstance(array, np.ndarray) for array in outputs.values()):
                raise ValueError("an output is no array")
            return cls(
                status=str(status),
                outputs=dict(outputs),
                kinds={name: kinds[name] for name in outputs},
                error=_short(plain["error"]),
                message=_short(plain["message"]),
                changed_inputs=_short_list(plain["changed_inputs"]),
                forbidden_calls=_short_list(plain["forbidden_calls"]),
                details={n: _short(plain["details"][n]) for n in DETAILS if n in plain["details"]},
            )
        except (TypeError, KeyError, AttributeError, IndexError) as error:
            raise ValueError(f"not an outcome: {error}") from None


def _short(text: Any) -> str:
    """Make sure that a text is one, is short, and can be written as UTF-8."""
    return str(text)[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")


def _short_list(names: Any) -> tuple[str, ...]:
    return tuple(_short(name)[:100] for name in list(names)[:20])
