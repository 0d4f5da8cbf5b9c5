"""Record small students, and half of a BERT, that learn classes of WordNet's glosses from MiniLM.

    nice -n 15 python experiments/gloss_distillation.py

takes some ten minutes of computing and writes `gloss_distillation.csv` (a row for each
model) and `gloss_distillation.txt` (the log) into `attention_course/data/records/`. It needs the
package of `requirements-models.txt`. Chapter 12 plots what it records, and needs no package.

The teacher is MiniLM, frozen, with a linear head fitted to 1,000 labelled glosses. Small students
read words and start at random. Students that are cut out of the teacher have three of its six
layers, and read its word pieces. All small students of a seed make the same number of steps.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention_course.data import distillation_records as records
from attention_course.data.glosses import CLASSES
from attention_course.data.runs import record_runs, recording_options
from attention_course.distillation import bytes_on_disk, fit, in_8_bits
from attention_course.distillation.glosses import (
    D_MODEL,
    Pooled,
    World,
    cut_out,
    make_world,
    small_student,
)
from attention_course.distillation.words import PADDING
from attention_course.tasks.features import fit_linear, scores_of
from attention_course.tasks.minilm import MiniLM

SEEDS = (0, 1, 2)
TEMPERATURE, RATE = 1.0, 2e-3
LAYER_MAP = [(1, 3), (2, 6)]  # indices of states, 0 is the embedding's
CUT, CUT_RATE = (0, 2, 4), 1e-4
DECAY = 3e-3  # of the teacher's head
COLUMNS = (
    *("seed", "model", "inputs", "signal", "layers", "temperature", "steps", "parameters"),
    *("bytes", "milliseconds", "accuracy", "agreement", "copied", "seconds"),
)
Aim = Callable[[Tensor, Tensor], Tensor]  # (logits, rows) → loss


@dataclass(frozen=True)
class Sizes:
    """How many glosses there are of each kind, and how long students train."""

    test: int = 1500
    labelled: int = 1000
    transfer: tuple[int, ...] = (2000, 4500)  # without labels; the labelled ones are among them
    steps: int = 300
    cut_steps: int = 80
    rounds: int = 12  # of timing


@torch.no_grad()
def answers(model: Pooled, ids: Tensor) -> Tensor:
    """Logits (glosses, classes), in evaluation mode."""
    model.eval()
    parts = (part[:, : int((part != PADDING).sum(1).max())] for part in ids.split(250))
    return torch.cat([model(part) for part in parts])


def from_classes(classes: Tensor) -> Aim:
    """Learn from one class for each gloss."""
    return lambda logits, rows: F.cross_entropy(logits, classes[rows])


def from_opinions(logits: Tensor, temperature: float) -> Aim:
    """Learn from softened probabilities."""
    aims = (logits / temperature).softmax(-1)
    return lambda found, rows: temperature**2 * F.cross_entropy(found / temperature, aims[rows])


def train(student: Pooled, inputs: Tensor, aim: Aim, steps: int, seed: int, rate: float) -> None:
    """Fit a student to an aim."""

    def loss(model, ids, rows, length):
        return aim(model(ids), rows)

    fit(student, inputs, loss, steps=steps, seed=seed, rate=rate)


def train_on_vectors(
    student: Pooled, world: World, rows: slice, aim: Aim, steps: int, seed: int
) -> None:
    """Fit a student to an aim and, by direction, to the teacher's mean vectors of some layers."""
    vectors = world.vectors[:, rows]
    student.projection = nn.Linear(D_MODEL, vectors.shape[-1], bias=False)

    def loss(model, ids, batch, length):
        found = model.means(ids)
        gaps = [
            1 - F.cosine_similarity(model.projection(found[ours]), vectors[theirs, batch]).mean()
            for ours, theirs in LAYER_MAP
        ]
        return aim(model.head(found[-1]), batch) + sum(gaps) / len(gaps)

    fit(student, world.words[rows], loss, steps=steps, seed=seed, rate=RATE)
    del student.projection  # needed in training alone


def plans(labelled: int, transfer: tuple[int, ...]) -> Iterator[tuple[int, str, int, Any]]:
    """Yield (inputs, signal, layers, temperature) of the small students."""
    for inputs in (labelled, transfer[-1]):
        yield inputs, "gold", 2, ""
        yield inputs, "hard", 2, ""
        yield inputs, "soft", 2, TEMPERATURE
        yield inputs, "soft + hidden", 2, TEMPERATURE
    for inputs in transfer[:-1]:
        yield inputs, "hard", 2, ""
        yield inputs, "soft", 2, TEMPERATURE
    for layers in (1, 3):
        yield transfer[-1], "soft", layers, TEMPERATURE
    for temperature in (2.0, 4.0):
        yield transfer[-1], "soft", 2, temperature


@dataclass(frozen=True)
class Lesson:
    """What the students of one seed learn from."""

    seed: int
    sizes: Sizes
    world: World
    opinions: Tensor  # the teacher's logits for all glosses
    teacher: Pooled

    def after_the_tests(self, count: int) -> slice:
        """Rows of the first so many glosses to learn from."""
        return slice(self.sizes.test, self.sizes.test + count)

    def row(self, network: Pooled, logits: Tensor, start: float, **about: Any) -> dict[str, Any]:
        """Say how the logits of a network for the test glosses compare with labels and teacher."""
        test = slice(0, self.sizes.test)
        chosen, taught = logits.argmax(-1), self.opinions[test].argmax(-1)
        right, same = chosen == self.world.labels[test], chosen == taught
        wrong = taught != self.world.labels[test]
        shares = {"accuracy": right, "agreement": same, "copied": same[wrong]}
        return {
            **{"seed": self.seed, "layers": len(network.encoder.layers), **about},
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
            **{name: round(float(share.double().mean()), 5) for name, share in shares.items()},
            "seconds": round(time.process_time() - start, 1),
        }


def make_lesson(seed: int, world: World, sizes: Sizes) -> Lesson:
    """Shuffle what students learn from, and fit the teacher's head to the first glosses of it."""
    rest = np.random.default_rng([1, seed]).permutation(sizes.transfer[-1]) + sizes.test
    order = torch.cat([torch.arange(sizes.test), torch.from_numpy(rest)])
    world = dataclasses.replace(
        world,
        words=world.words[order],
        pieces=world.pieces[order],
        labels=world.labels[order],
        vectors=world.vectors[:, order],
    )
    few = slice(sizes.test, sizes.test + sizes.labelled)
    weights = fit_linear(world.vectors[-1, few], world.labels[few], len(CLASSES), DECAY)
    head = nn.Linear(*weights[:-1].shape)
    head.load_state_dict({"weight": weights[:-1].T, "bias": weights[-1]})
    opinions = scores_of(world.vectors[-1], weights)
    return Lesson(seed, sizes, world, opinions, Pooled(MiniLM(), head).eval())


def aim_of(lesson: Lesson, signal: str, rows: slice, temperature: float | str) -> Aim:
    """What a student with this signal is to match on these rows."""
    if signal == "gold":
        return from_classes(lesson.world.labels[rows])
    if signal == "hard":
        return from_classes(lesson.opinions[rows].argmax(-1))
    return from_opinions(lesson.opinions[rows], temperature)


def small_students(lesson: Lesson) -> Iterator[tuple[Pooled, dict[str, Any]]]:
    """Train the small students; yield each with its row."""
    world, sizes, test = lesson.world, lesson.sizes, slice(0, lesson.sizes.test)
    for inputs, signal, layers, temperature in plans(sizes.labelled, sizes.transfer):
        start, rows = time.process_time(), lesson.after_the_tests(inputs)
        student = small_student(world, layers, 1000 + lesson.seed)
        aim = aim_of(lesson, signal, rows, temperature)
        if signal == "soft + hidden":
            train_on_vectors(student, world, rows, aim, sizes.steps, lesson.seed)
        else:
            train(student, world.words[rows], aim, sizes.steps, lesson.seed, RATE)
        about = {"inputs": inputs, "signal": signal, "temperature": temperature}
        about |= {"model": "small", "steps": sizes.steps}
        yield student, lesson.row(student, answers(student, world.words[test]), start, **about)


def halves(lesson: Lesson) -> Iterator[tuple[Pooled, dict[str, Any]]]:
    """Train what is cut out of the teacher, by gold labels and by opinions; then 8 bits."""
    pieces, sizes = lesson.world.pieces, lesson.sizes
    tests = pieces[: sizes.test]
    for inputs, signal, temperature in (
        (sizes.labelled, "gold", ""),
        (sizes.transfer[-1], "soft", TEMPERATURE),
    ):
        start, rows = time.process_time(), lesson.after_the_tests(inputs)
        about = {"inputs": inputs, "signal": signal, "temperature": temperature}
        about |= {"steps": sizes.cut_steps}
        student = cut_out(lesson.teacher.head, CUT)
        aim = aim_of(lesson, signal, rows, temperature)
        train(student, pieces[rows], aim, sizes.cut_steps, lesson.seed, CUT_RATE)
        logits = answers(student, tests)
        yield student, lesson.row(student, logits, start, model="cut out", **about)
    rounded, start = in_8_bits(student), time.process_time()
    logits = answers(rounded, tests)
    yield rounded, lesson.row(student, logits, start, model="cut out, 8 bits", **about)


def one_seed(seed: int, world: World, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Fit a teacher's head and train its students; yield a row for each model."""
    lesson, start = make_lesson(seed, world, sizes), time.process_time()
    teacher, logits = lesson.teacher, lesson.opinions[: sizes.test]
    kept = [(teacher, lesson.row(teacher, logits, start, model="teacher"))]
    rounded = in_8_bits(teacher)
    with torch.no_grad():
        logits = rounded.head(world.rounded)
    kept.append((rounded, lesson.row(teacher, logits, start, model="teacher, 8 bits")))
    for student, row in itertools.chain(small_students(lesson), halves(lesson)):
        best = row["inputs"] == sizes.transfer[-1] and row["signal"] == "soft"
        if best and row["temperature"] == TEMPERATURE:
            kept.append((student, row))
        else:
            yield row
    yield from timed(kept, lesson.world, sizes.rounds)


@torch.no_grad()
def timed(kept: list[tuple[Pooled, dict[str, Any]]], world: World, rounds: int):
    """Add to each row the file's bytes, and a median for 32 glosses; models take turns."""
    series: list[list[float]] = [[] for _ in kept]
    for number in range(rounds + 3):
        for times, (model, about) in zip(series, kept, strict=True):
            inputs = world.words if about["model"] == "small" else world.pieces
            ids = inputs[-32:]
            ids = ids[:, : int((ids != PADDING).sum(1).max())]
            start = time.process_time()
            model(ids)
            if number >= 3:  # the first rounds warm up
                times.append(time.process_time() - start)
    for times, (model, about) in zip(series, kept, strict=True):
        milliseconds = round(1000 * float(np.median(times)), 2)
        yield {**about, "bytes": bytes_on_disk(model), "milliseconds": milliseconds}


def record(folder: Path, seeds: tuple[int, ...], sizes: Sizes) -> None:
    """Make all runs, one seed after the other, and write the files as they go."""
    torch.set_num_threads(1)
    world = make_world(sizes.test, sizes.transfer[-1])
    rows = (row for seed in seeds for row in one_seed(seed, world, sizes))
    record_runs(folder / records.GLOSS_RUNS.name, COLUMNS, rows, str(sizes))


if __name__ == "__main__":
    arguments = recording_options(__doc__.splitlines()[0])
    if arguments.small:
        record(arguments.folder, SEEDS[:1], Sizes(20, 20, (30, 40), 2, 1, 1))
    else:
        record(arguments.folder, SEEDS, Sizes())
