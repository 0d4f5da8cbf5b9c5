"""Exercises that time something: a device and a clock that are played, so nothing is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attention_course.drivers.functions import must_be_function
from attention_course.outcomes import Terms


class PlayedDevice:
    """A device that works through what it is given while the program goes on, and its clock.

    `durations[i]` is how long the device takes for the i-th run; the last one serves for all later
    runs. Handing over a run takes the program `launch`. All times are in seconds.
    """

    def __init__(self, durations: Sequence[float], launch: float):
        self._durations, self._launch = durations, launch
        self._now, self._free, self.runs = 100.0, 0.0, 0

    def run(self) -> None:
        """Hand one piece of work over and return at once."""
        duration = self._durations[min(self.runs, len(self._durations) - 1)]
        self._now += self._launch
        self._free = max(self._free, self._now) + duration
        self.runs += 1

    def synchronise(self) -> None:
        """Wait until the device has nothing left to do."""
        self._now = max(self._now, self._free)

    def clock(self) -> float:
        """Tell the time in seconds."""
        return self._now


def call_timing(
    candidate: Any,
    terms: Terms,
    durations: Sequence[float],
    launch: float,
    warm_up: int,
    repeats: int,
) -> Any:
    """Let the candidate time a played device. Gives what it returns and how many runs it made."""
    must_be_function(candidate)
    device = PlayedDevice(durations, launch)
    result = candidate(
        run=device.run,
        synchronise=device.synchronise,
        clock=device.clock,
        warm_up=warm_up,
        repeats=repeats,
    )
    return result, device.runs
