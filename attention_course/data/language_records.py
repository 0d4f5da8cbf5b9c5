"""Read what `experiments/language_model_ablations.py` recorded."""

from __future__ import annotations

from typing import Any

from attention_course.data import runs

REPAIRS = runs.RECORDS / "language_model_repairs.csv"
WAYS = runs.RECORDS / "language_model_ways.csv"
NOTHING = "none"  # the condition without pre-training


def read_repairs() -> dict[str, list[float]]:
    """Read the share of misspelt words mended after each corruption, one number for each seed."""
    found: dict[str, list[float]] = {}
    for row in runs.read_runs(REPAIRS, texts=("corruption",), whole=("seed",)):
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
    rows: list[dict[str, Any]] = runs.read_runs(
        WAYS, texts=("way",), whole=("seed", "steps", "step")
    )
    for row in rows:
        if row["steps"] == steps:
            curves = found.setdefault(row["way"], {})
            curves.setdefault(row["seed"], {})[row["step"]] = row["right"]
    if not found:
        lengths = sorted({row["steps"] for row in rows})
        raise ValueError(f"no run of {steps} steps was recorded; there are {lengths}.")
    return {way: list(curves.values()) for way, curves in found.items()}
