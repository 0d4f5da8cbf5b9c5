"""What tiny BERTs learned under different conditions: runs that are too long for a notebook.

Made by `experiments/bert_pretraining.py`.
"""

from __future__ import annotations

import csv
from pathlib import Path

RECORDS = Path(__file__).parent / "records"


def pretraining_records(compared: str) -> dict[str, list[tuple[float, float]]]:
    """Read one comparison: condition → (nats per blank, share of blanks found) of each seed.

    Raises ValueError for a comparison that was not recorded.
    """
    path = RECORDS / f"bert_{compared}.csv"
    if not path.is_file():
        raise ValueError(f"no runs were recorded of {compared!r}: there is no {path.name}.")
    found: dict[str, list[tuple[float, float]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            pair = float(row["loss"]), float(row["found"])
            found.setdefault(row["condition"], []).append(pair)
    return found
