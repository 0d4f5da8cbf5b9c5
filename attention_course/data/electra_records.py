"""Read what `experiments/electra_ablations.py` and `experiments/electra_pair.py` recorded."""

from __future__ import annotations

import json
from typing import Any

from attention_course.data import runs

RUNS = runs.RECORDS / "electra_ablations.csv"
LONGER = runs.RECORDS / "electra_longer.csv"
WAYS = runs.RECORDS / "electra_ways.csv"
MASKS = runs.RECORDS / "electra_masks.csv"
DETECTIONS = runs.RECORDS / "electra_detections.json"


def read_runs() -> list[dict[str, Any]]:
    """Read the recorded runs: one row for each run and stop; numbers are floats, None if empty."""
    return runs.read_runs(RUNS, texts=("objective",))


def read_longer() -> list[dict[str, Any]]:
    """Read the longer runs of ELECTRA and BERT, which go on where `read_runs` stops."""
    return runs.read_runs(LONGER, texts=("objective",))


def read_ways() -> list[dict[str, Any]]:
    """Read the runs that train the generator in three ways: jointly, before, against."""
    return runs.read_runs(WAYS, texts=("objective",))


def read_masks() -> list[dict[str, Any]]:
    """Read the runs that differ in what stands in chosen places; `stop` is a number of steps."""
    return runs.read_runs(MASKS, texts=("objective",))


def read_detections() -> list[dict[str, Any]]:
    """Read sentences corrupted by a recorded generator, with the discriminator's scores.

    Each has "original" and "corrupted" (lists of words), "chosen" (places) and "scores", the
    probability that each word was replaced.
    """
    return json.loads(DETECTIONS.read_text(encoding="utf-8"))
