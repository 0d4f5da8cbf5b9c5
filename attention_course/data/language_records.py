"""Read what `experiments/language_model_ablations.py` recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attention_course.data import runs

REPAIRS = runs.RECORDS / "language_model_repairs.csv"
WAYS = runs.RECORDS / "language_model_ways.csv"
COLUMNS = {
    REPAIRS: {"texts": ("corruption",), "whole": ("seed",)},
    WAYS: {"texts": ("way",), "whole": ("seed", "steps", "step")},
}
NOTHING = "none"  # the condition without pre-training


def _rows(record: Path) -> list[dict[str, Any]]:
    return runs.read_runs(record, **COLUMNS[record])


def seconds_of(record: Path) -> float:
    """Sum what the runs of one record, REPAIRS or WAYS, took: seconds of computing."""
    return sum(row["seconds"] or 0.0 for row in _rows(record))


def read_repairs() -> dict[str, list[float]]:
    """Read the share of misspelt words mended after each corruption, one number for each seed."""
    found: dict[str, list[float]] = {}
    for row in _rows(REPAIRS):
        found.setdefault(row["corruption"], []).append(row["mended"])
    return found


def read_ways(steps: int) -> dict[str, list[dict[int, float]]]:
    """Read the curves of the runs that were `steps` long, for each way.

    Returns, for each way, one dictionary for each seed: share of right answers by step. Runs of
    another length are left out: the learning rate falls towards the end, so a short run is not
    the beginning of a long one.

    Raises ValueError if there is no run of that length.
    """
    found: dict[str, dict[int, dict[int, float]]] = {}
    rows = _rows(WAYS)
    for row in rows:
        if row["steps"] == steps:
            curves = found.setdefault(row["way"], {})
            curves.setdefault(row["seed"], {})[row["step"]] = row["right"]
    if not found:
        lengths = sorted({row["steps"] for row in rows})
        raise ValueError(f"no run of {steps} steps was recorded; there are {lengths}.")
    return {way: list(curves.values()) for way, curves in found.items()}
