"""Record the longer runs of chapter 10: the ladder of models, and two heads for spans.

    OMP_NUM_THREADS=1 python experiments/task_heads.py [spans] [ladder]

It takes some 8 minutes of one CPU and writes `attention_course/data/records/task_heads.csv`; what
is not asked for stays there as it was.
The pre-trained rung needs the package of `requirements-models.txt`.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator

import numpy as np
import torch

from attention_course.data.glosses import CLASSES, load_glosses
from attention_course.tasks.features import (
    accuracy,
    fit_linear,
    scores_of,
    tf_idf,
    vocabulary_of,
)
from attention_course.tasks.ladder import RUNGS, climb
from attention_course.tasks.readers import HEADS, found_exactly, train_reader
from attention_course.tasks.records import COLUMNS, RECORDS
from attention_course.tasks.stories import as_arrays, draw_stories

TRAIN, TEST = 1_000, 1_000
SEEDS = range(3)

Row = tuple[str, str, int, float, float]


def ladder() -> Iterator[Row]:
    """Climb every rung with every seed: other weights, other labelled texts, the same test."""
    pairs = [(gloss, CLASSES.index(kind)) for gloss, kind in load_glosses()]
    test, rest = pairs[:TEST], pairs[TEST:]
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(rest))[:TRAIN]
        train = [rest[place] for place in order]
        texts, labels = zip(*train, strict=True)
        vocabulary = vocabulary_of(texts)
        start = time.process_time()
        weights = fit_linear(tf_idf(texts, vocabulary, texts), torch.tensor(labels), len(CLASSES))
        bags = tf_idf([text for text, _ in test], vocabulary, texts)
        score = accuracy(scores_of(bags, weights), torch.tensor([label for _, label in test]))
        yield "ladder", "bag of words", seed, score, time.process_time() - start
        for rung in RUNGS:
            start = time.process_time()
            score = climb(rung, train, test, vocabulary, len(CLASSES), seed)
            yield "ladder", rung, seed, score, time.process_time() - start


def spans() -> Iterator[Row]:
    """Train both heads on the same stories with every seed; count exact answers."""
    for seed in SEEDS:
        train, test = (
            {
                name: torch.from_numpy(values)
                for name, values in as_arrays(draw_stories(rng, pairs)).items()
            }
            for rng, pairs in (
                (np.random.default_rng([10, seed]), 2_000),
                (np.random.default_rng([20, seed]), 400),
            )
        )
        for head in HEADS:
            start = time.process_time()
            model = train_reader(head, train, seed)
            score = found_exactly(model, head, test).double().mean().item()
            yield "spans", head, seed, score, time.process_time() - start


EXPERIMENTS = {"spans": spans, "ladder": ladder}


def main() -> int:
    """Run what is asked for, print each row as it comes, and write the file."""
    torch.set_num_threads(1)
    asked = sys.argv[1:] or list(EXPERIMENTS)
    rows = []
    for name in asked:
        for *what, score, seconds in EXPERIMENTS[name]():
            rows.append([*map(str, what), f"{score:.4f}", f"{seconds:.1f}"])
            print(*rows[-1], flush=True)
    kept = []
    if RECORDS.exists():
        with RECORDS.open(encoding="utf-8", newline="") as file:
            kept = [row for row in list(csv.reader(file))[1:] if row[0] not in asked]
    RECORDS.parent.mkdir(exist_ok=True)
    with RECORDS.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *sorted(kept), *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
