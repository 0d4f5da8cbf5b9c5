"""Read what `experiments/electra_ablations.py` recorded."""

from __future__ import annotations

import json
from typing import Any

from attention_course.data import runs

RUNS = runs.RECORDS / "electra_ablations.csv"
DETECTIONS = runs.RECORDS / "electra_detections.json"


def read_runs() -> list[dict[str, Any]]:
    """Read the recorded runs: one row for each run and stop; numbers are floats, None if empty."""
    return runs.read_runs(RUNS, texts=("objective",))


def read_detections() -> list[dict[str, Any]]:
    """Read sentences corrupted by a recorded generator, with the discriminator's scores.

    Each has "original" and "corrupted" (lists of words), "chosen" (places) and "scores", the
    probability that each word was replaced.
    """
    return json.loads(DETECTIONS.read_text(encoding="utf-8"))
