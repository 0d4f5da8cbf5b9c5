"""Read what `experiments/distillation_ladder.py` recorded."""

from __future__ import annotations

from typing import Any

from attention_course.data import runs

RUNS = runs.RECORDS / "distillation_ladder.csv"


def read_runs() -> list[dict[str, Any]]:
    """Read the recorded runs: one row for each model.

    "signal" is what it learned from ("teacher" for the teachers), "inputs" on which sentences,
    "temperature" is None where there is none, "accuracy", "agreement" and "copied" are shares of
    test words: right, the same as the teacher's, and of the teacher's mistakes the same mistake.
    """
    return runs.read_runs(RUNS, ("inputs", "signal"), ("seed", "layers", "steps", "parameters"))
