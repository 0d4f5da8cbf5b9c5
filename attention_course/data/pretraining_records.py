"""What tiny BERTs learned under different conditions: runs that are too long for a notebook.

Made by `experiments/bert_pretraining.py`.
"""

from __future__ import annotations

from attention_course.data.runs import RECORDS, read_runs


def pretraining_records(compared: str) -> dict[str, list[tuple[float, float]]]:
    """Read one comparison: condition → (nats per blank, share of blanks found) of each seed.

    Raises ValueError for a comparison that was not recorded.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for run in read_runs(RECORDS / f"bert_{compared}.csv", texts=("condition",)):
        found.setdefault(run["condition"], []).append((run["loss"], run["found"]))
    return found
