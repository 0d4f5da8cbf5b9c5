"""Read what `experiments/electra_ablations.py` recorded."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records"
RUNS, DETECTIONS = RECORDS / "electra_ablations.csv", RECORDS / "electra_detections.json"
TEXTS = ("objective",)


def read_runs() -> list[dict[str, Any]]:
    """Read the recorded runs: one row for each run and stop; numbers are floats, None if empty."""
    with RUNS.open(encoding="utf-8", newline="") as file:
        return [
            {name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)
        ]


def _value(name: str, text: str) -> Any:
    if name in TEXTS:
        return text
    return float(text) if text else None


def read_detections() -> list[dict[str, Any]]:
    """Read sentences corrupted by a recorded generator, with the discriminator's scores.

    Each has "original" and "corrupted" (lists of words), "chosen" (places) and "scores", the
    probability that each word was replaced.
    """
    return json.loads(DETECTIONS.read_text(encoding="utf-8"))
