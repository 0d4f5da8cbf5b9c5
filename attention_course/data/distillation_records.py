"""Read what the scripts on distillation below `experiments/` recorded."""

from __future__ import annotations

from typing import Any

from attention_course.data import runs

RUNS = runs.RECORDS / "distillation_ladder.csv"
GLOSS_RUNS = runs.RECORDS / "gloss_distillation.csv"


def read_runs() -> list[dict[str, Any]]:
    """Read the runs of `distillation_ladder.py`: one row for each model.

    "signal" is what it learned from ("teacher" for the teachers), "inputs" on which sentences,
    "temperature" is None where there is none, "accuracy", "agreement" and "copied" are shares of
    test words: right, the same as the teacher's, and of the teacher's mistakes the same mistake.
    """
    return runs.read_runs(RUNS, ("inputs", "signal"), ("seed", "layers", "steps", "parameters"))


def read_gloss_runs() -> list[dict[str, Any]]:
    """Read the runs of `gloss_distillation.py`: one row for each model.

    "model" is "teacher", "small" or "cut out", the first and the last also with ", 8 bits";
    "inputs" counts glosses. "bytes" and "milliseconds" (of computing, a median for 32 glosses)
    are None where nothing was timed. The other columns are as in `read_runs`.
    """
    whole = ("seed", "inputs", "layers", "steps", "parameters", "bytes")
    return runs.read_runs(GLOSS_RUNS, ("model", "signal"), whole)
