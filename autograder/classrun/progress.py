"""What a class run says on the terminal: progress while it runs, a table at the end."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from autograder.classrun.job import Result

NOTE_WIDTH = 70


def shown(text: str) -> str:
    """Replace what could not be printed, or would move the cursor."""
    return "".join(c if c.isprintable() else "?" for c in text)


def duration(seconds: float) -> str:
    """Give a time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@dataclass
class Progress:
    """Says after every submission how far the run is; on a terminal, in one line."""

    total: int
    out: TextIO = field(default_factory=lambda: sys.stdout)
    done: int = 0
    slowest: tuple[float, str, str] = (0.0, "", "")  # seconds, cell, student
    started: float = field(default_factory=time.monotonic)

    def advance(self, student: str, word: str, result: Result | None) -> None:
        """Count one submission and say so."""
        self.done += 1
        if result is not None:
            times = [(s, cell, student) for cell, s in result.seconds.items()]
            self.slowest = max([self.slowest, *times])
        self._say(f"{self.done} of {self.total}  {student}: {word}; {self._outlook()}")

    def _outlook(self) -> str:
        left = (time.monotonic() - self.started) / self.done * (self.total - self.done)
        seconds, cell, student = self.slowest
        parts = [f"about {duration(left)} left"] if self.done < self.total else []
        if cell:
            parts.append(f"slowest cell {cell} of {student} ({seconds:.1f} s)")
        return ", ".join(parts)

    def _say(self, text: str) -> None:
        text = shown(text)
        if self.out.isatty():
            width = shutil.get_terminal_size().columns - 1
            end = "\n" if self.done == self.total else ""
            print(f"\r{text[:width]:<{width}}", end=end, file=self.out, flush=True)
        else:
            print(text, file=self.out, flush=True)


@dataclass(frozen=True)
class Row:
    """One line of the final table; points are None if the gradebook has none."""

    student: str
    points: float | None
    out_of: float | None
    word: str
    note: str = ""


def table(rows: Sequence[Row]) -> str:
    """Lay out the final table."""
    width = max(len("student"), *(len(row.student) for row in rows))
    lines = [f"{'student':<{width}}  {'points':>11}  status"]
    for row in rows:
        points = "-" if row.points is None else f"{row.points:g} of {row.out_of:g}"
        note = row.note if len(row.note) <= NOTE_WIDTH else row.note[: NOTE_WIDTH - 2] + " …"
        said = f"{row.word}: {note}" if note else row.word
        lines.append(shown(f"{row.student:<{width}}  {points:>11}  {said}"))
    return "\n".join(lines)
