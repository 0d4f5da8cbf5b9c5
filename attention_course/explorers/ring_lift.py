"""Chapter 05: a ring inside a ring, lifted by a hidden layer until a plane separates them."""

from __future__ import annotations

import math

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

LIMIT = 120
MOST_UNITS = 8


class RingLift(Explorer):
    """The explorer behind `ring_lift`; its traits follow the controls."""

    files = "ring_lift"
    title = "Ring lift: points of the plane, lifted by hidden units"

    points = t.List(t.List(t.Float())).tag(sync=True)
    outside = t.List(t.Bool()).tag(sync=True)
    units = t.Int(3).tag(sync=True)
    bend = t.Bool(True).tag(sync=True)
    lift = t.Float(0.0).tag(sync=True)
    turn = t.Float(30.0).tag(sync=True)

    def heights(self) -> np.ndarray:
        """The sum of the hidden units for each point when fully lifted, shape (points,)."""
        angles = 2 * math.pi * np.arange(self.units) / self.units
        hidden = np.array(self.points) @ np.stack([np.cos(angles), np.sin(angles)])
        heights = (np.maximum(hidden, 0.0) if self.bend else hidden).sum(axis=1)
        return np.round(heights, 9) + 0.0  # no "-0.00" in words

    def text(self) -> str:
        """How far apart the two kinds of points are in height."""
        heights, outside = self.heights() * self.lift, np.array(self.outside)
        inner, outer = heights[~outside], heights[outside]
        bend = "with ReLU" if self.bend else "without ReLU"
        apart = self.lift > 0 and outer.min() > inner.max()
        return (
            f"{len(inner)} points inside, {len(outer)} outside; {self.units} hidden units {bend}, "
            f"lifted by {self.lift:.2f}.\n"
            f"Heights inside: {inner.min():.2f} to {inner.max():.2f}; "
            f"outside: {outer.min():.2f} to {outer.max():.2f}.\n"
            f"{'A' if apart else 'No'} horizontal plane separates the two kinds."
        )

    def frame_height(self) -> int:
        """The same for all inputs: the panels have a fixed size."""
        return 520


def ring_lift(
    points: object = None,
    outside: object = None,
    *,
    units: int = 3,
    bend: bool = True,
    lift: float = 0.0,
    seed: int = 0,
) -> RingLift:
    """Shows how a hidden layer lifts points of the plane until a plane separates two kinds.

    Hidden unit k measures how far a point lies in the k-th of `units` evenly spaced directions;
    a point's height is the sum of its units, after ReLU if `bend`.

    Args:
        points: real numbers, shape (points, 2), at most 120; default: two rings.
        outside: one bool for each point, both kinds present; to be given with `points`.
        units: number of hidden units at the start, from 1 to 8.
        bend: whether ReLU is on at the start.
        lift: from 0 (flat) to 1, at the start.
        seed: of the default rings.

    Returns:
        The widget; `units`, `bend`, `lift` and `turn` follow the controls.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if shapes or counts do not fit.
    """
    if (points is None) != (outside is None):
        missing, given = ("points", "outside") if points is None else ("outside", "points")
        raise ValueError(
            f"{missing} must be given together with {given}; got only {given}. "
            f"Pass both, or neither for two rings."
        )
    if points is None:
        points, outside = _two_rings(np.random.default_rng(seed))
    placed = validate.array("points", points, "(points, 2)", 2)
    if placed.shape[1] != 2:
        raise ValueError(
            f"points must have 2 columns, to be drawn in the plane; got {placed.shape[1]}. "
            f"Pass two of them: points[:, :2]."
        )
    validate.at_most("points", len(placed), LIMIT, "points")
    kinds = np.asarray(outside)
    if kinds.dtype != bool or kinds.shape != (len(placed),):
        raise TypeError(
            f"outside must be {len(placed)} booleans, one for each point; got dtype {kinds.dtype} "
            f"and shape {kinds.shape}. Compare something: radius > 1.5."
        )
    if kinds.all() or not kinds.any():
        raise ValueError(
            "outside must hold True and False; all points are of one kind. "
            "There is nothing to separate."
        )
    if isinstance(units, bool) or not isinstance(units, int) or not 1 <= units <= MOST_UNITS:
        raise ValueError(
            f"units must be a whole number from 1 to {MOST_UNITS}; got {units!r}. Choose one."
        )
    return RingLift(
        points=validate.lists(placed / np.abs(placed).max()),
        outside=kinds.tolist(),
        units=units,
        bend=bool(bend),
        lift=validate.number("lift", lift, 0.0, 1.0),
    )


def _two_rings(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A ring of 24 points inside one of 40, with a little noise: (64, 2) and (64,)."""
    outside = np.arange(64) >= 24
    angles = np.concatenate([2 * np.pi * np.arange(n) / n for n in (24, 40)])
    radius = np.where(outside, 2.0, 1.0) + rng.uniform(-0.15, 0.15, 64)
    return radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1), outside
