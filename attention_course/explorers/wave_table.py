"""Chapter 03: the table of sines and cosines as a picture, and one of its waves."""

from __future__ import annotations

import math

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

WIDEST = 64
LOWEST_POWER, HIGHEST_POWER = 1.0, 5.0  # of ten, for the base


class WaveTable(Explorer):
    """The explorer behind `wave_table`; its traits follow the sliders."""

    files = "wave_table"
    title = "Wave table: positions, columns and wavelengths"

    rows = t.Int(64).tag(sync=True)
    d_model = t.Int(32).tag(sync=True)
    power = t.Float(4.0).tag(sync=True)
    position = t.Int(0).tag(sync=True)
    column = t.Int(0).tag(sync=True)

    @property
    def base(self) -> float:
        """The number that sets how slow the slowest wave is."""
        return 10.0**self.power

    def wavelength(self) -> float:
        """Positions from one crest to the next, in the chosen column."""
        return 2 * math.pi * self.base ** (2 * (self.column // 2) / self.d_model)

    def value(self) -> float:
        """Entry of the table at the chosen position and column."""
        angle = 2 * math.pi * self.position / self.wavelength()
        return math.cos(angle) if self.column % 2 else math.sin(angle)

    def slow_pairs(self) -> int:
        """How many pairs do not finish one wave within the rows drawn."""
        pairs = np.arange(self.d_model // 2)
        return int(np.sum(2 * np.pi * self.base ** (2 * pairs / self.d_model) > self.rows))

    def text(self) -> str:
        """What is drawn, then the chosen entry and its wave."""
        kind = "cosine" if self.column % 2 else "sine"
        return (
            f"Table of {self.rows} positions and {self.d_model} columns, base {self.base:.0f}.\n"
            f"Column {self.column}: {kind} of pair {self.column // 2}, wavelength "
            f"{self.wavelength():.1f} positions; at position {self.position} it is "
            f"{self.value():.2f}.\n"
            f"{self.slow_pairs()} of {self.d_model // 2} pairs do not finish one wave within "
            f"{self.rows} positions."
        )

    def frame_height(self) -> int:
        """The same for all inputs: the picture has a fixed size."""
        return 560


def wave_table(
    *, d_model: int = 32, base: float = 10000.0, position: int = 10, column: int = 4
) -> WaveTable:
    """Shows the table of sines and cosines for 64 positions, with one column as a curve.

    Args:
        d_model: columns at the start, an even number from 4 to 64.
        base: at the start, from 10 to 100000.
        position: the chosen row at the start, from 0 to 63.
        column: the chosen column at the start, from 0 to `d_model` - 1.

    Returns:
        The widget; `d_model`, `base`, `position` and `column` follow the reader.

    Raises:
        TypeError: if `base` is no number.
        ValueError: if a number lies outside its range.
    """
    if d_model not in range(4, WIDEST + 1, 2):
        raise ValueError(
            f"d_model must be an even number from 4 to {WIDEST}; got {d_model!r}. "
            f"Columns come in pairs here."
        )
    validate.index("position", position, 64, "rows")
    validate.index("column", column, d_model, "columns")
    base = validate.number("base", base, 10**LOWEST_POWER, 10**HIGHEST_POWER)
    return WaveTable(d_model=int(d_model), power=math.log10(base), position=position, column=column)
