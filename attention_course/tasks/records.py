"""Read what `experiments/task_heads.py` recorded."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from attention_course.data.runs import RECORDS, read_runs

COLUMNS = ("model", "seed", "score", "cpu_seconds")


def path_of(experiment: str) -> Path:
    """Say where an experiment, "ladder" or "spans", is recorded."""
    return RECORDS / f"task_heads_{experiment}.csv"


def read_scores(experiment: str) -> dict[str, list[float]]:
    """Scores of an experiment, "ladder" or "spans": model → one score for each seed, in order.

    Raises ValueError if nothing was recorded under that name.
    """
    return _column(experiment, "score")


def read_seconds(experiment: str) -> dict[str, float]:
    """Mean CPU seconds of each model of an experiment. Raises ValueError as `read_scores` does."""
    seconds = _column(experiment, "cpu_seconds")
    return {model: sum(values) / len(values) for model, values in seconds.items()}


def _column(experiment: str, column: str) -> dict[str, list[float]]:
    values = defaultdict(list)
    for run in read_runs(path_of(experiment), texts=("model",)):
        values[run["model"]].append(run[column])
    return dict(values)
