"""Chapter 04: the fused matrix of queries, keys and values, cut into chunks and heads."""

from __future__ import annotations

import traitlets as t

from attention_course.explorers.base import Explorer

WIDEST = 24
PARTS = ("query", "key", "value")


class FusedMatrix(Explorer):
    """The explorer behind `fused_matrix`; the traits follow what the reader moves."""

    files = "fused_matrix"
    title = "Fused matrix: which column belongs to which part, head and feature"

    d_model = t.Int(12).tag(sync=True)
    heads = t.Int(3).tag(sync=True)
    row = t.Int(0).tag(sync=True)
    column = t.Int(0).tag(sync=True)
    widest = t.Int(WIDEST).tag(sync=True)

    def entry(self) -> str:
        """The chosen column in words, such as "key, head 1, feature 1"; "" if h is illegal."""
        width, rest = divmod(self.d_model, self.heads)
        if rest:
            return ""
        part, within = divmod(self.column, self.d_model)
        head, feature = divmod(within, width)
        return f"{PARTS[part]}, head {head}, feature {feature}"

    def text(self) -> str:
        """The layout, head by head, or why there is none."""
        d, h = self.d_model, self.heads
        first = f"w_qkv has shape ({d}, {3 * d}), in three chunks of {d} columns; heads: {h}."
        width, rest = divmod(d, h)
        if rest:
            return (
                f"{first}\n{h} heads do not divide d_model = {d}: {d} = {h} x {width} + {rest}, so "
                f"{rest} of every {d} columns would belong to no head. Real code raises ValueError."
            )
        lines = [
            f"  {part}: "
            + ", ".join(
                f"head {i} columns {start}-{start + width - 1}"
                for i, start in enumerate(range(p * d, (p + 1) * d, width))
            )
            for p, part in enumerate(PARTS)
        ]
        chosen = f"Entry (row {self.row}, column {self.column}): {self.entry()}."
        return "\n".join([first, *lines, chosen])

    def frame_height(self) -> int:
        """Room for a square cell in each of at most `WIDEST` rows."""
        return 440


def fused_matrix(d_model: int = 12, heads: int = 3, *, row: int = 0, column: int = 0):
    """Shows a matrix (d_model, 3 · d_model) in three chunks, each cut into heads.

    Args:
        d_model: rows of the matrix, from 2 to 24.
        heads: from 1 to 12; if they do not divide d_model the figure says why not.
        row: of the entry that is described first.
        column: the same, from 0 to 3 · d_model - 1.

    Returns:
        The widget, a `FusedMatrix`; `figure.d_model`, `.heads`, `.row`, `.column` and `.entry()`
        follow what the reader moves.

    Raises:
        ValueError: if an argument is no whole number in its range.
    """
    _whole("d_model", d_model, 2, WIDEST)
    _whole("heads", heads, 1, 12)
    _whole("row", row, 0, d_model - 1)
    _whole("column", column, 0, 3 * d_model - 1)
    return FusedMatrix(d_model=d_model, heads=heads, row=row, column=column)


def _whole(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(
            f"{name} must be a whole number from {low} to {high}; got {value!r}. "
            f"Choose a number inside."
        )
