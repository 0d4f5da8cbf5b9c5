"""Record the longer runs of chapter 10: heads for spans, a ladder, learning curves.

    nice -n 15 python experiments/task_heads.py [spans] [ladder] [fixed] [tuned]

takes a quarter of an hour of computing on one thread and writes `task_heads_NAME.csv` (a row for
each run) and its log into `attention_course/data/records/`, for what is asked for, or for all.
All but `spans` need the package of `requirements-models.txt`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_course.data.glosses import CLASSES, load_glosses
from attention_course.data.runs import record_runs, recording_options
from attention_course.tasks.features import (
    accuracy,
    fit_linear,
    scores_of,
    tf_idf,
    vocabulary_of,
)
from attention_course.tasks.ladder import RUNGS, climb
from attention_course.tasks.minilm import MiniLM, mean_vectors, minilm_tokenizer
from attention_course.tasks.readers import HEADS, found_exactly, train_reader
from attention_course.tasks.records import COLUMNS, file_name
from attention_course.tasks.stories import as_arrays, draw_stories
from attention_course.tasks.tuning import BATCH

Row = dict[str, Any]
Texts = Sequence[tuple[str, int]]  # definitions with the number of their class

TEST = 1_000  # definitions, the same for all seeds
LADDER = 1_000  # labels for every rung
SIZES = (50, 200, LADDER, 2_000)  # labels of the learning curve with fixed features
TUNED_SIZES = (50, 200)  # labels of fine-tuning, beside the ladder's
FEWEST_STEPS = 40  # of fine-tuning, however few labels there are


def row(model: str, labels: int, seed: int, score: float, start: float) -> Row:
    """Make a row of the record; `start` is the CPU time at which the run began."""
    values = model, labels, seed, f"{score:.4f}", f"{time.process_time() - start:.1f}"
    return dict(zip(COLUMNS, values, strict=True))


def spans(seed: int, small: bool) -> Iterator[Row]:
    """Train both heads on the same stories; count exact answers."""
    train, test = (
        {
            name: torch.from_numpy(values)
            for name, values in as_arrays(draw_stories(rng, pairs)).items()
        }
        for rng, pairs in (
            (np.random.default_rng([10, seed]), 20 if small else 2_000),
            (np.random.default_rng([20, seed]), 20 if small else 400),
        )
    )
    for head in HEADS:
        start = time.process_time()
        model = train_reader(head, train, seed, 2 if small else 1_000)
        score = found_exactly(model, head, test).double().mean().item()
        yield row(head, len(train["ids"]), seed, score, start)


def definitions(seed: int, small: bool) -> tuple[Texts, Texts]:
    """Definitions to learn from, in another order for each seed, and those of the test."""
    pairs = [(gloss, CLASSES.index(kind)) for gloss, kind in load_glosses()]
    rest, test = pairs[TEST:], sorted(pairs[:TEST], key=lambda pair: len(pair[0].split()))
    order = np.random.default_rng(seed).permutation(len(rest))
    return [rest[place] for place in order], test[:20] if small else test


def labels_of(pairs: Texts) -> Tensor:
    """Numbers of the classes, int64 (texts,)."""
    return torch.tensor([label for _, label in pairs])


def bag_of_words(train: Texts, test: Texts) -> float:
    """Accuracy of a linear classifier on TF-IDF."""
    texts = [text for text, _ in train]
    vocabulary = vocabulary_of(texts)
    weights = fit_linear(tf_idf(texts, vocabulary, texts), labels_of(train), len(CLASSES))
    bags = tf_idf([text for text, _ in test], vocabulary, texts)
    return accuracy(scores_of(bags, weights), labels_of(test))


def frozen(vectors: Tensor, labels: Tensor, test_vectors: Tensor, test_labels: Tensor) -> float:
    """Accuracy of a linear classifier on vectors that stay as they are."""
    scale = vectors.std()
    weights = fit_linear(vectors / scale, labels, len(CLASSES))
    return accuracy(scores_of(test_vectors / scale, weights), test_labels)


def rung(name: str, train: Texts, test: Texts, seed: int, passes: int | None) -> float:
    """Accuracy of a rung of the ladder; None: as many passes as it has there."""
    vocabulary = vocabulary_of([text for text, _ in train])
    return climb(name, train, test, vocabulary, len(CLASSES), seed, passes)


def ladder(seed: int, small: bool) -> Iterator[Row]:
    """Climb every rung on the same definitions."""
    train, test = definitions(seed, small)
    train, passes = (train[:40], 1) if small else (train[:LADDER], None)
    start = time.process_time()
    yield row("bag of words", len(train), seed, bag_of_words(train, test), start)
    for name in RUNGS:
        start = time.process_time()
        yield row(name, len(train), seed, rung(name, train, test, seed, passes), start)


def fixed(seed: int, small: bool) -> Iterator[Row]:
    """Learn from more and more labels without changing what features are.

    MiniLM's vectors are made once, and their time counts with the first number of labels.
    """
    train, test = definitions(seed, small)
    sizes = (20, 40) if small else SIZES
    start = time.process_time()
    model, tokenizer = MiniLM().eval(), minilm_tokenizer()
    vectors, others = (
        mean_vectors(model, tokenizer, [text for text, _ in pairs])[-1]
        for pairs in (train[: max(sizes)], test)
    )
    for size in sizes:
        score = frozen(vectors[:size], labels_of(train[:size]), others, labels_of(test))
        yield row("MiniLM, frozen", size, seed, score, start)
        start = time.process_time()
    for size in sizes:
        start = time.process_time()
        yield row("bag of words", size, seed, bag_of_words(train[:size], test), start)


def tuned(size: int, seed: int, small: bool) -> Iterator[Row]:
    """Fine-tune MiniLM on some of the same definitions, some 40 steps."""
    train, test = definitions(seed, small)
    start = time.process_time()
    passes = 1 if small else -(-FEWEST_STEPS // -(-size // BATCH))
    score = rung("pre-trained", train[:size], test, seed, passes)
    yield row("pre-trained", size, seed, score, start)


# The parts of each experiment, what makes the rows of one seed, and how many seeds there are.
EXPERIMENTS = {
    "spans": ([spans], 5),
    "ladder": ([ladder], 3),
    "fixed": ([fixed], 3),
    "tuned": ([partial(tuned, size) for size in TUNED_SIZES], 3),
}


def rows(experiment: str, small: bool) -> Iterator[Row]:
    """Go through an experiment's parts and seeds: other weights, other data to learn from."""
    parts, seeds = EXPERIMENTS[experiment]
    for part in parts:
        for seed in range(1 if small else seeds):
            yield from part(seed, small)


if __name__ == "__main__":
    options = recording_options(__doc__.splitlines()[0], EXPERIMENTS)
    torch.set_num_threads(1)
    for name in options.names:
        record_runs(options.folder / file_name(name), COLUMNS, rows(name, options.small))
