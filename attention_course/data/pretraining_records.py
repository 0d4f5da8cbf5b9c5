"""What tiny BERTs learned under different conditions: runs that are too long for a notebook.

Made by `experiments/bert_pretraining.py`.
"""

from __future__ import annotations

from attention_course.data.runs import RECORDS, read_runs


def pretraining_records(compared: str) -> dict[str, list[dict[str, float]]]:
    """Read one comparison: condition → one run for each seed.

    A run has `loss` (nats per blank), `found` (share of blanks found) and `seconds` of computing.
    Raises ValueError for a comparison that was not recorded.
    """
    found: dict[str, list[dict[str, float]]] = {}
    for run in read_runs(RECORDS / f"bert_{compared}.csv", texts=("condition",), whole=("seed",)):
        found.setdefault(run["condition"], []).append(run)
    return found
