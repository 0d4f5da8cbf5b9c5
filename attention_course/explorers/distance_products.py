"""Chapter 03: what two positions give together, against their distance."""

from __future__ import annotations

import math

import numpy as np
import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

WIDTHS = [4, 8, 16]
FARTHEST = 40  # distance drawn on either side
PLACES = [0, 25, 50, 75, 100]  # of the query, drawn for comparison
SCHEMES = ["waves", "rotary"]


class DistanceProducts(Explorer):
    """The explorer behind `distance_products`; its traits follow the controls."""

    files = "distance_products"
    title = "Products of positions against distance: waves that are added, and rotary embedding"

    scheme = t.Unicode("waves").tag(sync=True)
    mixed = t.Bool(False).tag(sync=True)
    width = t.Int(16).tag(sync=True)
    power = t.Float(4.0).tag(sync=True)
    place = t.Int(0).tag(sync=True)
    matrix = t.List(t.List(t.Float())).tag(sync=True)  # (16, 16), between two wave vectors
    query = t.List(t.Float()).tag(sync=True)
    key = t.List(t.Float()).tag(sync=True)

    @property
    def base(self) -> float:
        """The number that sets how slow the slowest wave is."""
        return 10.0**self.power

    def curve(self, place: int) -> np.ndarray:
        """The score of a query at `place` for each distance from -40 to 40, shape (81,)."""
        there = place + np.arange(-FARTHEST, FARTHEST + 1)
        rates = self.base ** (-np.arange(0, self.width, 2) / self.width)
        return (self._added if self.scheme == "waves" else self._turned)(place, there, rates)

    def _added(self, place: int, there: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Products of the position vector of `place` with those of `there`."""
        angles = np.outer(np.append(there, place), rates)
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), -1)
        matrix = np.array(self.matrix)[: self.width, : self.width]
        middle = matrix if self.mixed else np.eye(self.width)
        return waves[:-1] @ (waves[-1] @ middle) * 2 / self.width

    def _turned(self, place: int, there: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Products of a query that is turned by `place` with a key that is turned by `there`."""
        if not self.mixed:
            return np.cos(np.outer(there - place, rates)).sum(axis=1) * 2 / self.width
        q, k = (np.array(side)[: self.width] for side in (self.query, self.key))
        product = (q[0::2] + 1j * q[1::2]) * (k[0::2] - 1j * k[1::2])
        turns = np.exp(1j * np.outer(place - there, rates))
        return (turns * product).sum(axis=1).real / math.sqrt(self.width)

    def spread(self) -> float:
        """Largest difference, at one distance, between queries at the places compared."""
        return float(np.ptp([self.curve(place) for place in PLACES], axis=0).max())

    def text(self) -> str:
        """What is drawn, and whether the distance alone decides."""
        curve, spread = self.curve(self.place), self.spread()
        verdict = "only the distance counts" if spread < 1e-3 else "the place counts as well"
        name = "waves, added" if self.scheme == "waves" else "rotary embedding"
        inside = "random projections" if self.mixed else "no projections"
        return (
            f"Scores by distance for {name} ({inside}), width {self.width}, "
            f"base {self.base:.0f}, query at position {self.place}:\n"
            f"  distance -10: {curve[FARTHEST - 10]:.2f}, 0: {curve[FARTHEST]:.2f}, "
            f"+10: {curve[FARTHEST + 10]:.2f}\n"
            f"  between queries at {PLACES} scores at the same distance differ by up to "
            f"{spread:.2f}: {verdict}."
        )

    def frame_height(self) -> int:
        """The same for all inputs: the picture has a fixed size."""
        return 520


def distance_products(
    scheme: str = "waves",
    *,
    mixed: bool = False,
    width: int = 16,
    base: float = 10000.0,
    place: int = 10,
    seed: int = 3,
) -> DistanceProducts:
    """Shows the part of a score that comes from positions, against the distance of key and query.

    Args:
        scheme: "waves" (added to tokens; the product of two position vectors) or "rotary".
        mixed: whether random projections (waves) or random queries and keys (rotary) stand
            between the two; without them, position vectors meet as they are.
        width: 4, 8 or 16.
        base: at the start, from 10 to 100000.
        place: of the query at the start, from 0 to 100.
        seed: of the random numbers.

    Returns:
        The widget; its traits follow the controls.

    Raises:
        TypeError: if `base` is no number.
        ValueError: if `scheme` or `width` is unknown, or a number lies outside its range.
    """
    for name, value, known in [("scheme", scheme, SCHEMES), ("width", width, WIDTHS)]:
        if value not in known:
            raise ValueError(f"{name} must be one of {known}; got {value!r}. Choose one of them.")
    validate.index("place", place, 101, "places")
    rng = np.random.default_rng(seed)
    matrix, (query, key) = rng.normal(size=(16, 16)), rng.normal(size=(2, 16))
    return DistanceProducts(
        scheme=scheme,
        mixed=bool(mixed),
        width=int(width),
        power=math.log10(validate.number("base", base, 10.0, 1e5)),
        place=place,
        matrix=np.round(matrix, 3).tolist(),
        query=np.round(query, 3).tolist(),
        key=np.round(key, 3).tolist(),
    )
