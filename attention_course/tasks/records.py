"""Read what `experiments/task_heads.py` recorded."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

RECORDS = Path(__file__).parents[1] / "data" / "records" / "task_heads.csv"
COLUMNS = ("experiment", "model", "seed", "score", "cpu_seconds")


def read_scores(experiment: str) -> dict[str, list[float]]:
    """Scores of an experiment, "ladder" or "spans": model → one score for each seed, in order.

    Raises KeyError if nothing was recorded under that name.
    """
    scores, _ = _columns(experiment)
    return scores


def read_seconds(experiment: str) -> dict[str, float]:
    """Mean CPU seconds of each model of an experiment. Raises KeyError as `read_scores` does."""
    _, seconds = _columns(experiment)
    return {model: sum(values) / len(values) for model, values in seconds.items()}


def _columns(experiment: str) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    scores, seconds = defaultdict(list), defaultdict(list)
    with RECORDS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["experiment"] == experiment:
                scores[row["model"]].append(float(row["score"]))
                seconds[row["model"]].append(float(row["cpu_seconds"]))
    if not scores:
        raise KeyError(f"{RECORDS.name} holds no experiment {experiment!r}")
    return dict(scores), dict(seconds)
