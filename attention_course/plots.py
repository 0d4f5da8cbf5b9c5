"""Figures that several chapters draw: heat maps with token labels, and runs over several seeds.

Functions draw on axes that the caller made and return what they drew; none calls `plt.show`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

LARGEST_WITH_NUMBERS = 12  # rows or columns up to which a number fits into a cell


def heat_map(
    ax: Axes,
    values: object,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    title: str = "",
    row_axis: str = "query",
    column_axis: str = "key",
    limits: tuple[float, float] = (0.0, 1.0),
    cmap: str = "Blues",
    numbers: bool = False,
) -> AxesImage:
    """Draw a matrix as coloured cells, labelled with tokens.

    Args:
        ax: where to draw.
        values: real numbers, shape (rows, columns).
        rows: one label for each row, from the top; none if empty.
        columns: one label for each column.
        title: of the axes.
        row_axis: what rows are, written beside them.
        column_axis: what columns are, written below them.
        limits: numbers that get the first and the last colour; give all heat maps of a figure the
            same ones, and colours can be compared.
        cmap: a colour map's name.
        numbers: writes each value into its cell; only up to 12 rows and columns.

    Returns:
        The image, for a colour bar.

    Raises:
        ValueError: if `values` is not a matrix or the number of labels is not that of its rows or
            columns.
    """
    matrix = np.asarray(values, dtype=float)
    if matrix.ndim != 2:
        raise ValueError(f"values must have 2 axes, (rows, columns); got shape {matrix.shape}.")
    for name, labels, length in zip(
        ("rows", "columns"), (rows, columns), matrix.shape, strict=True
    ):
        if len(labels) not in (0, length):
            raise ValueError(f"{name} must be {length} labels; got {len(labels)}.")
    image = ax.imshow(matrix, cmap=cmap, vmin=limits[0], vmax=limits[1], aspect="equal")
    ax.set_title(title, fontsize=10)
    ax.set_xlabel(column_axis)
    ax.set_ylabel(row_axis)
    ax.set_xticks(range(len(columns)), [_plain(label) for label in columns], rotation=45)
    ax.set_yticks(range(len(rows)), [_plain(label) for label in rows])
    ax.tick_params(length=0)
    if numbers and max(matrix.shape) <= LARGEST_WITH_NUMBERS:
        for (row, column), value in np.ndenumerate(matrix):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
            colour = "white" if dark else "black"
            text = f"{value:.2f}"
            ax.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    return image


def heat_maps(
    matrices: Mapping[str, object],
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    size: float = 3.0,
    limits: tuple[float, float] = (0.0, 1.0),
    bar: str = "weight",
    **options: object,
) -> Figure:
    """Draw several matrices side by side with one colour scale and one colour bar.

    Args:
        matrices: title: matrix, for each of them.
        rows: labels, the same for all.
        columns: labels, the same for all.
        size: width and height of each, in inches.
        limits: numbers that get the first and the last colour.
        bar: what the colours mean, written beside the colour bar.
        options: what else `heat_map` takes.

    Returns:
        The figure.

    Raises:
        ValueError: as `heat_map` does, or if there is no matrix.
    """
    if not matrices:
        raise ValueError("matrices is empty; give at least one title with its matrix.")
    fig, axes = plt.subplots(
        1,
        len(matrices),
        figsize=(size * len(matrices) + 0.8, size + 0.3),
        layout="constrained",
        squeeze=False,
    )
    for ax, (title, matrix) in zip(axes[0], matrices.items(), strict=True):
        image = heat_map(ax, matrix, rows, columns, title=title, limits=limits, **options)
    fig.colorbar(image, ax=axes[0].tolist(), label=bar, shrink=0.8)
    return fig


def spread(
    ax: Axes, x: object, runs: object, label: str = "", *, color: str | None = None
) -> Line2D:
    """Draw what several seeds gave: a dot for each, a band from least to most, a line of means.

    Args:
        ax: where to draw; its scales are left alone.
        x: real numbers, shape (points,).
        runs: real numbers, shape (seeds, points).
        label: for the legend; the number of seeds is added.
        color: of all three; the next one of the axes if None.

    Returns:
        The line of means.

    Raises:
        ValueError: if the shapes do not fit.
    """
    points, table = np.asarray(x, dtype=float), np.asarray(runs, dtype=float)
    if points.ndim != 1 or table.ndim != 2 or table.shape[1] != len(points):
        raise ValueError(
            f"x must have shape (points,) and runs (seeds, points); got {points.shape} and "
            f"{table.shape}."
        )
    text = f"{label} ({len(table)} seeds)" if label else ""
    (line,) = ax.plot(points, table.mean(axis=0), color=color, label=text or None)
    shade = line.get_color()
    ax.fill_between(points, table.min(axis=0), table.max(axis=0), color=shade, alpha=0.2, lw=0)
    ax.plot(points, table.T, ".", color=shade, ms=3, alpha=0.5)
    return line


def _plain(label: str) -> str:
    """A label that matplotlib does not read as a formula."""
    return str(label).replace("$", r"\$")
