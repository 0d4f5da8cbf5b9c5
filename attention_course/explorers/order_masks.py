"""Chapter 13: an order of places, and the masks of XLNet's two streams that follow from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 8
_TOKENS = ["New", "York", "is", "a", "city"]
_ORDER = [4, 1, 2, 0, 3]


class OrderMasks(Explorer):
    """The explorer behind `order_masks`; its traits follow the controls."""

    files = "order_masks"
    title = "An order of prediction and its two masks"

    tokens = t.List(t.Unicode()).tag(sync=True)
    order = t.List(t.Int()).tag(sync=True)
    place = t.Int(0).tag(sync=True)

    def masks(self) -> tuple[np.ndarray, np.ndarray]:
        """(content, query), each bool (places, places), True = may be seen."""
        query = np.zeros((len(self.tokens),) * 2, dtype=bool)
        for step, place in enumerate(self.order):
            query[place, self.order[:step]] = True
        return query | np.eye(len(self.tokens), dtype=bool), query

    def text(self) -> str:
        """The order, and what each token sees in both streams."""
        lines = ["Predicted in the order: " + ", ".join(self.tokens[p] for p in self.order)]
        for name, mask in zip(("content", "query"), self.masks(), strict=True):
            lines.append(f"  {name} stream:")
            for token, row in zip(self.tokens, mask, strict=True):
                seen = [other for other, open_ in zip(self.tokens, row, strict=True) if open_]
                lines.append(f"    {token} sees {' '.join(seen) or 'nothing'}")
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, one line for each token, and the status."""
        return 290 + 29 * len(self.tokens)


def order_masks(
    tokens: Sequence[str] | None = None, order: Sequence[int] | None = None, *, place: int = 0
) -> OrderMasks:
    """Shows what each place sees in the content and in the query stream, for an order.

    Args:
        tokens: 2 to 8 strings; default: a short sentence.
        order: `order[t]` is the place predicted at step t, a permutation; default: from left to
            right, and a mixed one for the default sentence.
        place: the place whose view is told at the start.

    Returns:
        The widget; `order` and `place` follow the controls.

    Raises:
        TypeError: if the tokens are no strings.
        ValueError: if there are too few or too many, or the order is no permutation of the places.
    """
    if tokens is None:
        tokens, order = _TOKENS, _ORDER if order is None else order
    names = validate.token_list("tokens", tokens, len(list(tokens)), "places")
    if len(names) < 2:
        raise ValueError(f"tokens must be at least 2; got {len(names)}. Add some.")
    validate.at_most("tokens", len(names), LIMIT, "tokens")
    order = list(range(len(names))) if order is None else [int(p) for p in order]
    if sorted(order) != list(range(len(names))):
        raise ValueError(
            f"order must hold each place from 0 to {len(names) - 1} once; got {order}. "
            f"Pass a permutation."
        )
    validate.index("place", place, len(names), "places")
    return OrderMasks(tokens=names, order=order, place=place)
