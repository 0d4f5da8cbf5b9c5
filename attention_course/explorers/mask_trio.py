"""Chapter 08: three ways to read an input and write an output, as masks side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 12
WAYS = ("encoder-decoder", "causal", "prefix")

_TOKENS = ["the", "cat", "sleeps", "=>", "le", "chat", "dort"]


class MaskTrio(Explorer):
    """The explorer behind `mask_trio`; its traits follow the controls."""

    files = "mask_trio"
    title = "Three masks: encoder-decoder, causal and prefix"

    tokens = t.List(t.Unicode()).tag(sync=True)
    prefix = t.Int(1).tag(sync=True)
    place = t.Int(0).tag(sync=True)

    def masks(self) -> dict[str, np.ndarray]:
        """The mask of each way, (queries, keys), True = may be seen."""
        query, key = np.indices((len(self.tokens), len(self.tokens)))
        causal = key <= query
        prefix = causal | (key < self.prefix)
        return {"encoder-decoder": prefix, "causal": causal, "prefix": prefix}

    def text(self) -> str:
        """What every token sees, for each of the three ways."""
        lines = [f"The input is {' '.join(self.tokens[: self.prefix])!r}. Who sees whom:"]
        for way, mask in self.masks().items():
            lines.append(f"  {way}:")
            for token, row in zip(self.tokens, mask, strict=True):
                seen = " ".join(
                    other for other, open_ in zip(self.tokens, row, strict=True) if open_
                )
                lines.append(f"    {token} sees {seen}")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, one line for each token, and the status."""
        return 250 + 27 * len(self.tokens)


def mask_trio(
    tokens: Sequence[str] | None = None, *, prefix: int | None = None, place: int = 0
) -> MaskTrio:
    """Shows which tokens each token sees, as encoder-decoder, causal and prefix model.

    Args:
        tokens: input and output in a row, 2 to 12 strings; default: a small translation.
        prefix: at the start, how many tokens are the input: from 1 to one less than all.
        place: the token whose view is shown in words at the start.

    Returns:
        The widget; `prefix` and `place` follow the controls.

    Raises:
        TypeError: if the tokens are no strings.
        ValueError: if there are too few or too many, or a number does not fit.
    """
    if tokens is None:
        tokens, prefix = _TOKENS, 4 if prefix is None else prefix
    names = validate.token_list("tokens", tokens, len(list(tokens)), "places")
    if len(names) < 2:
        raise ValueError(
            f"tokens must be at least 2, one of input and one of output; got {len(names)}. "
            f"Add some."
        )
    validate.at_most("tokens", len(names), LIMIT, "tokens")
    prefix = len(names) // 2 if prefix is None else prefix
    for name, value, low, high in (
        ("prefix", prefix, 1, len(names) - 1),
        ("place", place, 0, len(names) - 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(
                f"{name} must be a whole number from {low} to {high}; got {value!r}. Choose one."
            )
    return MaskTrio(tokens=names, prefix=prefix, place=place)
