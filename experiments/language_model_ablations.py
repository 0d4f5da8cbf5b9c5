"""Record three ways to read an input, and which corruption prepares best for mending words.

    nice -n 15 python experiments/language_model_ablations.py

takes some minutes of computing, on one thread, and writes into `attention_course/data/records/`:
`language_model_repairs.csv` (a row for each corruption and seed), `language_model_ways.csv` (a row
for each way, seed and stop), and a log beside each. Chapter 08 plots them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from attention_course.data import language_records as records
from attention_course.data.runs import record_runs, recording_options
from attention_course.data.shakespeare import load_shakespeare
from attention_course.language import repair, three_ways

SEEDS = (0, 1, 2, 3, 4)
WORDS = 30  # the most frequent ones of the plays
STEPS = {160: SEEDS, 240: SEEDS[:3]}  # length of the runs of the three ways: its seeds
EVERY = 40


def repairs(seeds: Sequence[int], **sizes: int) -> Iterator[dict[str, Any]]:
    """Pre-train with each corruption, and with none; yield the share of words mended."""
    words = repair.frequent_words(load_shakespeare(), WORDS)
    for seed in seeds:
        for corruption in (None, *repair.CORRUPTIONS):
            start = time.process_time()
            mended = repair.repair_score(words, corruption, seed, **sizes)
            run = {"corruption": corruption or records.NOTHING, "seed": seed}
            seconds = round(time.process_time() - start, 1)
            yield {**run, "mended": round(mended, 4), "seconds": seconds}


def ways(plan: Mapping[int, Sequence[int]], every: int) -> Iterator[dict[str, Any]]:
    """Train the three ways; yield the share of right answers at each stop, the cost at the last."""
    for steps, seeds in plan.items():
        for seed in seeds:
            for way in three_ways.WAYS:
                start = time.process_time()
                curve = three_ways.train_way(way, seed, steps, every)
                seconds = round(time.process_time() - start, 1)
                run = {"way": way, "seed": seed, "steps": steps}
                for number, right in enumerate(curve, start=1):
                    cost = {"seconds": seconds} if number == len(curve) else {}
                    yield {**run, "step": number * every, "right": round(right, 4), **cost}


def record(folder: Path, seeds, plan, every: int, **sizes: int) -> None:
    """Make all runs and write the files as they go."""
    torch.set_num_threads(1)
    rows, columns = repairs(seeds, **sizes), ("corruption", "seed", "mended", "seconds")
    record_runs(folder / records.REPAIRS.name, columns, rows, f"{WORDS} words, 500 misspellings")
    rows, columns = ways(plan, every), ("way", "seed", "steps", "step", "right", "seconds")
    record_runs(folder / records.WAYS.name, columns, rows, "500 test inputs")


if __name__ == "__main__":
    arguments = recording_options(__doc__.splitlines()[0])
    if arguments.small:
        record(arguments.folder, SEEDS[:1], {2: SEEDS[:1]}, 1, steps=2, tuning=1)
    else:
        record(arguments.folder, SEEDS, STEPS, EVERY)
