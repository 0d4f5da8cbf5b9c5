"""Record the longer runs of chapter 10: the ladder of models, and two heads for spans.

    OMP_NUM_THREADS=1 python experiments/task_heads.py [spans] [ladder]

It takes some 10 minutes of one CPU and writes `task_heads_spans.csv` and `task_heads_ladder.csv`,
each with its log, into `attention_course/data/records/`; what is not asked for stays as it was.
The pre-trained rung needs the package of `requirements-models.txt`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

import numpy as np
import torch

from attention_course.data.glosses import CLASSES, load_glosses
from attention_course.data.runs import record_runs
from attention_course.tasks.features import (
    accuracy,
    fit_linear,
    scores_of,
    tf_idf,
    vocabulary_of,
)
from attention_course.tasks.ladder import RUNGS, climb
from attention_course.tasks.readers import HEADS, found_exactly, train_reader
from attention_course.tasks.records import COLUMNS, path_of
from attention_course.tasks.stories import as_arrays, draw_stories

TRAIN, TEST = 1_000, 1_000
LADDER_SEEDS, SPAN_SEEDS = range(3), range(5)
SPAN_STEPS = 1_000

Result = tuple[str, int, float, float]  # model, seed, score, CPU seconds


def ladder() -> Iterator[Result]:
    """Climb every rung with every seed: other weights, other labelled texts, the same test."""
    pairs = [(gloss, CLASSES.index(kind)) for gloss, kind in load_glosses()]
    test, rest = pairs[:TEST], pairs[TEST:]
    for seed in LADDER_SEEDS:
        order = np.random.default_rng(seed).permutation(len(rest))[:TRAIN]
        train = [rest[place] for place in order]
        texts, labels = zip(*train, strict=True)
        vocabulary = vocabulary_of(texts)
        start = time.process_time()
        weights = fit_linear(tf_idf(texts, vocabulary, texts), torch.tensor(labels), len(CLASSES))
        bags = tf_idf([text for text, _ in test], vocabulary, texts)
        score = accuracy(scores_of(bags, weights), torch.tensor([label for _, label in test]))
        yield "bag of words", seed, score, time.process_time() - start
        for rung in RUNGS:
            start = time.process_time()
            score = climb(rung, train, test, vocabulary, len(CLASSES), seed)
            yield rung, seed, score, time.process_time() - start


def spans() -> Iterator[Result]:
    """Train both heads on the same stories with every seed; count exact answers."""
    for seed in SPAN_SEEDS:
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
            model = train_reader(head, train, seed, SPAN_STEPS)
            score = found_exactly(model, head, test).double().mean().item()
            yield head, seed, score, time.process_time() - start


EXPERIMENTS = {"spans": spans, "ladder": ladder}


def as_rows(results: Iterable[Result]) -> Iterator[dict[str, object]]:
    """Name the columns, and round."""
    for model, seed, score, seconds in results:
        yield dict(zip(COLUMNS, (model, seed, f"{score:.4f}", f"{seconds:.1f}"), strict=True))


def main() -> None:
    """Record what is asked for, everything if nothing is."""
    torch.set_num_threads(1)
    for name in sys.argv[1:] or EXPERIMENTS:
        record_runs(path_of(name), COLUMNS, as_rows(EXPERIMENTS[name]()))


if __name__ == "__main__":
    main()
