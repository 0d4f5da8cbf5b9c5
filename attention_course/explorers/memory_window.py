"""Chapter 13: how far back a place looks through layers with a memory, and where learning stops."""

from __future__ import annotations

import traitlets as t

from attention_course.explorers import validate
from attention_course.explorers.base import Explorer

PLACES, MOST_LAYERS = 24, 3


class MemoryWindow(Explorer):
    """The explorer behind `memory_window`; its traits follow the controls."""

    files = "memory_window"
    title = "How far a place looks back with a memory"

    segment = t.Int(4).tag(sync=True)
    memory = t.Int(4).tag(sync=True)
    layers = t.Int(2).tag(sync=True)
    place = t.Int(19).tag(sync=True)

    def reached(self) -> list[set[int]]:
        """The places whose vectors the chosen place uses: below each layer, the top one first."""
        rows = [{self.place}]
        for _ in range(self.layers):
            below = set()
            for place in rows[-1]:
                start = place - place % self.segment
                below |= set(range(max(0, start - self.memory), place + 1))
            rows.append(below)
        return rows

    def text(self) -> str:
        """How far the chosen place looks, layer by layer."""
        start = self.place - self.place % self.segment
        lines = [
            f"Segments of {self.segment} places, a memory of {self.memory}. "
            f"Place {self.place} at the top uses:"
        ]
        for down, row in enumerate(self.reached()[1:], 1):
            old = sum(place < start for place in row)
            lines.append(
                f"  {down} layer{'s' if down > 1 else ''} down: places {min(row)} to {max(row)}; "
                f"{old} of them in earlier segments, which are not trained from here"
            )
        return "\n".join(lines)

    def frame_height(self) -> int:
        """Controls, a row for each layer, and the status."""
        return 265 + 50 * MOST_LAYERS


def memory_window(
    *, segment: int = 4, memory: int = 4, layers: int = 2, place: int = 19
) -> MemoryWindow:
    """Shows which earlier places reach the vector of a place, through layers with a memory.

    Args:
        segment: places of a segment, 2 to 8.
        memory: places kept below each layer at the start, 0 to 12.
        layers: how many at the start, 1 to 3.
        place: the place that looks back at the start, 0 to 23.

    Returns:
        The widget; its traits follow the controls.

    Raises:
        TypeError: if an argument is no number.
        ValueError: if one lies outside or is not whole.
    """
    given = {"segment": segment, "memory": memory, "layers": layers, "place": place}
    limits = {
        "segment": (2, 8),
        "memory": (0, 12),
        "layers": (1, MOST_LAYERS),
        "place": (0, PLACES - 1),
    }
    for name, value in given.items():
        if validate.number(name, value, *limits[name]) % 1:
            raise ValueError(f"{name} must be a whole number; got {value}. Round it.")
    return MemoryWindow(**{name: int(value) for name, value in given.items()})
