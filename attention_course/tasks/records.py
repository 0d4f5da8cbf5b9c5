"""Read what `experiments/task_heads.py` recorded."""

from __future__ import annotations

from collections import defaultdict

from attention_course.data.runs import RECORDS, read_runs

COLUMNS = ("model", "labels", "seed", "score", "cpu_seconds")


def file_name(experiment: str) -> str:
    """Say in which of the records an experiment ("ladder", "spans", "fixed", "tuned") is."""
    return f"task_heads_{experiment}.csv"


def read_scores(experiment: str) -> dict[str, list[float]]:
    """Scores of an experiment: model → one score for each seed, in order.

    Raises ValueError if nothing was recorded under that name.
    """
    return _column(experiment, "score")


def read_seconds(experiment: str) -> dict[str, float]:
    """Mean CPU seconds of each model of an experiment. Raises ValueError as `read_scores` does."""
    seconds = _column(experiment, "cpu_seconds")
    return {model: sum(values) / len(values) for model, values in seconds.items()}


def read_curve() -> dict[str, dict[int, list[float]]]:
    """Scores over the number of labels: model → labels → one score for each seed.

    Fine-tuning with as many labels as the ladder has is the ladder's rung "pre-trained", on the
    same texts. Raises ValueError as `read_scores` does.
    """
    rung = [run for run in _runs("ladder") if run["model"] == "pre-trained"]
    curve = defaultdict(lambda: defaultdict(list))
    for run in (*_runs("fixed"), *_runs("tuned"), *rung):
        curve[run["model"]][run["labels"]].append(run["score"])
    return {model: dict(sorted(scores.items())) for model, scores in curve.items()}


def _runs(experiment: str) -> list[dict]:
    path = RECORDS / file_name(experiment)
    return read_runs(path, texts=("model",), whole=("labels", "seed"))


def _column(experiment: str, column: str) -> dict[str, list[float]]:
    values = defaultdict(list)
    for run in _runs(experiment):
        values[run["model"]].append(run[column])
    return dict(values)
