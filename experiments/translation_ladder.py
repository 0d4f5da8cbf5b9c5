"""Record three translators with equal parameters, data and steps: what each sees of the source.

    nice -n 15 python experiments/translation_ladder.py

takes some two minutes of computing and writes `translation_ladder.csv` (a row for each model and
seed) and `translation_ladder.txt` (the log) into `attention_course/data/records/`. Chapter 07 plots
them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from attention_course.data.fragment import translation_splits
from attention_course.data.runs import record_runs, recording_options
from attention_course.translation import Vocabulary
from attention_course.translation.ladder import COLUMNS, RIVALS, RUNS, TRAIN, climb

SEEDS = range(5)


def rows(seeds: Iterable[int], train_pairs: int) -> Iterator[dict[str, Any]]:
    """Train every rival with every seed on the chapter's pairs."""
    torch.set_num_threads(1)
    pairs = translation_splits(seed=7, train=9000, test=400)
    french = Vocabulary(pair.source for pair in pairs["train"])
    english = Vocabulary(pair.target for pair in pairs["train"])
    for seed in seeds:
        for name in RIVALS:
            start = time.process_time()
            found = climb(name, pairs, french, english, seed, train_pairs)
            seconds = round(time.process_time() - start, 1)
            yield {"model": name, "seed": seed, **found, "seconds": seconds}


if __name__ == "__main__":
    arguments = recording_options(__doc__.splitlines()[0])
    made = rows([0], 100) if arguments.small else rows(SEEDS, TRAIN)
    record_runs(arguments.folder / RUNS.name, COLUMNS, made)
