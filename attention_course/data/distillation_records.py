"""Read what `experiments/distillation_ladder.py` recorded."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

RUNS = Path(__file__).parent / "records" / "distillation_ladder.csv"
TEXTS, WHOLE = ("inputs", "signal"), ("seed", "layers", "parameters")


def read_runs() -> list[dict[str, Any]]:
    """Read the recorded runs: one row for each model.

    "signal" is what it learned from ("teacher" for the teachers), "inputs" on which sentences,
    "temperature" is None where there is none, "accuracy", "agreement" and "copied" are shares of
    test words: right, the same as the teacher's, and of the teacher's mistakes the same mistake.
    """
    with RUNS.open(encoding="utf-8", newline="") as file:
        return [
            {name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)
        ]


def _value(name: str, text: str) -> Any:
    if name in TEXTS:
        return text
    if not text:
        return None
    return int(text) if name in WHOLE else float(text)
