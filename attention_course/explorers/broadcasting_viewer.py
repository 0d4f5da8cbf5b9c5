"""Chapter 01: how two shapes line up, stretch, or clash."""

from __future__ import annotations

from collections.abc import Iterable

import traitlets as t

from attention_course.explorers.base import Explorer

LIMIT = 6


class BroadcastingViewer(Explorer):
    """The explorer behind `broadcasting_viewer`; the two shapes follow what the reader types."""

    files = "broadcasting_viewer"
    title = "Broadcasting viewer: two shapes aligned from the right, and their result"

    first_shape = t.List(t.Int()).tag(sync=True)
    second_shape = t.List(t.Int()).tag(sync=True)

    def text(self) -> str:
        """The result shape, or the axis that clashes, axis by axis from the right."""
        first, second = tuple(self.first_shape), tuple(self.second_shape)
        result, clash, lines = [], None, []
        for back in range(1, max(len(first), len(second)) + 1):
            a = first[-back] if back <= len(first) else None
            b = second[-back] if back <= len(second) else None
            sizes = " and ".join("missing, counts as 1" if x is None else str(x) for x in (a, b))
            a, b = (1 if x is None else x for x in (a, b))
            if a != b and 1 not in (a, b):
                clash = clash or -back
                outcome = "clash: the sizes differ and neither is 1"
            else:
                result.insert(0, b if a == 1 else a)
                outcome = str(result[0])
            lines.append(f"  axis {-back}: {sizes} -> {outcome}")
        if clash:
            head = f"{first} and {second} do not broadcast: axis {clash} clashes."
        else:
            head = f"{first} and {second} broadcast to {tuple(result)}."
        return "\n".join([head, *lines])

    def frame_height(self) -> int:
        """The same for all shapes: the reader changes them."""
        return 360


def broadcasting_viewer(
    first_shape: Iterable[int] = (5, 1), second_shape: Iterable[int] = (7,)
) -> BroadcastingViewer:
    """Shows two shapes aligned from the right, and the shape they broadcast to or their clash.

    Args:
        first_shape: up to 6 whole numbers from 0; `array.shape` will do.
        second_shape: the same.

    Returns:
        The widget; `viewer.first_shape` and `viewer.second_shape` follow what the reader types.

    Raises:
        TypeError: if a shape is not a sequence of whole numbers.
        ValueError: if an axis is negative or there are more than 6.
    """
    return BroadcastingViewer(
        first_shape=_shape("first_shape", first_shape),
        second_shape=_shape("second_shape", second_shape),
    )


def _shape(name: str, value: Iterable[int]) -> list[int]:
    """`value` as a list of axis sizes."""
    try:
        sizes = [size.__index__() for size in value]
    except (AttributeError, TypeError):
        raise TypeError(
            f"{name} must be a tuple of whole numbers such as (5, 1) or (7,); got {value!r}. "
            f"Pass array.shape; one axis needs the comma: (7,)."
        ) from None
    if any(size < 0 for size in sizes):
        raise ValueError(
            f"{name} must hold sizes from 0 up; got {value!r}. "
            f"A -1 as in reshape has no meaning here: write the size itself."
        )
    if len(sizes) > LIMIT:
        raise ValueError(
            f"{name} has {len(sizes)} axes; this figure draws at most {LIMIT}. Leave some out."
        )
    return sizes
