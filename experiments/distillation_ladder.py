"""Record what students of one to three layers learn from labels, opinions and hidden states.

    nice -n 15 python experiments/distillation_ladder.py

takes some minutes of computing and writes `distillation_ladder.csv` (a row for each model) and
`distillation_ladder.txt` (the log) into `attention_course/data/records/`. Chapter 12 plots them.

Each seed has sentences, a teacher and students of its own. All students of a seed have the width of
the teacher and make the same number of steps, on 100 labelled sentences or on 1,600 others. Two
signals are also given four times as many steps on the 1,600.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from attention_course.data import distillation_records as records
from attention_course.data.runs import record_runs, recording_options
from attention_course.distillation import (
    WordModel,
    fit,
    from_labels,
    from_logits,
    hard_labels,
    logits_of,
    make_word_task,
)
from attention_course.distillation.words import PADDING, Sentences, WordTask

SEEDS = (0, 1, 2, 3, 4)
SIZES = {"labelled": 100, "teacher's": 1000, "transfer": 1600, "test": 500}
D_MODEL, HEADS, TEACHER_LAYERS = 48, 4, 3
TEACHER_STEPS, STEPS, RATE = 250, 100, 8e-3
LONGER = 4  # times as many steps, for two signals: is a soft target only slower?
LAYERS = 2  # of most students
TEMPERATURE, TEMPERATURES = 2.0, (0.5, 1.0, 2.0, 4.0, 8.0)  # the latter for one layer
LAYER_MAP = [(1, 1), (2, 3)]  # indices of states, 0 is the embedding's; the last ones meet
CUT = (0, 2)  # teacher layers that a student cut out of it begins with
COLUMNS = (
    *("seed", "inputs", "signal", "layers", "temperature", "steps", "parameters"),
    *("accuracy", "agreement", "copied", "seconds"),
)


def new_model(task: WordTask, layers: int, seed: int) -> WordModel:
    """A fresh model of the task."""
    torch.manual_seed(seed)
    return WordModel(len(task.french), len(task.english), D_MODEL, HEADS, layers)


def cut_out(task: WordTask, teacher: WordModel, seed: int) -> WordModel:
    """A student with the teacher's weights outside its layers, and some of its layers."""
    student = new_model(task, LAYERS, seed)
    for part in ("embedding", "positions", "norm", "head"):
        getattr(student, part).load_state_dict(getattr(teacher, part).state_dict())
    for layer, number in zip(student.layers, CUT, strict=True):
        layer.load_state_dict(teacher.layers[number].state_dict())
    return student


def from_states(teacher: WordModel, words: torch.Tensor):
    """Learn from opinions, and from hidden states by a layer map, with equal shares."""
    opinions = from_logits(logits_of(teacher, words), TEMPERATURE)

    def loss(model, batch, rows, length):
        with torch.no_grad():
            aims = teacher.states(batch)
        found, tokens = model.states(batch), batch != PADDING
        gaps = [F.mse_loss(found[ours][tokens], aims[theirs][tokens]) for ours, theirs in LAYER_MAP]
        return opinions(model, batch, rows, length) + sum(gaps) / len(gaps)

    return loss


def habits(model: WordModel, teacher: WordModel, test: Sentences) -> dict[str, float]:
    """Accuracy, agreement with the teacher, and the share of its mistakes that are repeated."""
    chosen, taught = (logits_of(one, test.words).argmax(-1) for one in (model, teacher))
    tokens, same = test.words != PADDING, chosen == taught
    wrong = tokens & (taught != test.labels)
    shares = {
        "accuracy": (chosen == test.labels)[tokens],
        "agreement": same[tokens],
        "copied": same[wrong],
    }
    return {name: round(float(share.double().mean()), 5) for name, share in shares.items()}


def plans(task: WordTask, teacher: WordModel) -> Iterator[tuple]:
    """Yield (inputs, signal, layers, temperature, times as many steps, loss, whether cut out)."""
    for inputs in ("labelled", "transfer"):
        some = task.sets[inputs]
        opinions = logits_of(teacher, some.words)
        soft = from_logits(opinions, TEMPERATURE)
        labels, states = hard_labels(opinions, some.words), from_states(teacher, some.words)
        yield inputs, "gold", LAYERS, "", 1, from_labels(some.labels), False
        yield inputs, "hard", LAYERS, "", 1, from_labels(labels), False
        yield inputs, "soft", LAYERS, TEMPERATURE, 1, soft, False
        yield inputs, "soft + hidden", LAYERS, TEMPERATURE, 1, states, False
        yield inputs, "soft, cut out", LAYERS, TEMPERATURE, 1, soft, True
        yield inputs, "soft", TEACHER_LAYERS, TEMPERATURE, 1, soft, False
        for temperature in TEMPERATURES:
            yield inputs, "soft", 1, temperature, 1, from_logits(opinions, temperature), False
    yield inputs, "hard", LAYERS, "", LONGER, from_labels(labels), False
    yield inputs, "soft", LAYERS, TEMPERATURE, LONGER, soft, False


def one_seed(seed: int, sizes: dict[str, int], steps: int) -> Iterator[dict[str, Any]]:
    """Train a teacher and its students; yield a row for each."""
    task = make_word_task(100 + seed, sizes)
    start = time.process_time()
    teacher, lessons = new_model(task, TEACHER_LAYERS, seed), task.sets["teacher's"]
    aims = from_labels(lessons.labels)
    taught = steps * TEACHER_STEPS // STEPS
    fit(teacher, lessons.words, aims, steps=taught, seed=seed, rate=RATE)
    yield _row(seed, "teacher's", "teacher", "", taught, teacher, teacher, task, start)
    for inputs, signal, layers, temperature, times, loss, is_cut in plans(task, teacher):
        start, first = time.process_time(), 1000 + seed
        student = cut_out(task, teacher, first) if is_cut else new_model(task, layers, first)
        made = times * steps
        fit(student, task.sets[inputs].words, loss, steps=made, seed=seed, rate=RATE)
        yield _row(seed, inputs, signal, temperature, made, student, teacher, task, start)


def _row(seed, inputs, signal, temperature, steps, model, teacher, task, start) -> dict[str, Any]:
    return {
        "seed": seed,
        "inputs": inputs,
        "signal": signal,
        "layers": len(model.layers),
        "temperature": temperature,
        "steps": steps,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        **habits(model, teacher, task.sets["test"]),
        "seconds": round(time.process_time() - start, 1),
    }


def record(folder: Path, seeds: tuple[int, ...], sizes: dict[str, int], steps: int) -> None:
    """Make all runs, one seed after the other, and write the files as they go."""
    torch.set_num_threads(1)
    rows = (row for seed in seeds for row in one_seed(seed, sizes, steps))
    about = f"sentences: {sizes}; {steps} steps for most students"
    record_runs(folder / records.RUNS.name, COLUMNS, rows, about)


if __name__ == "__main__":
    arguments = recording_options(__doc__.splitlines()[0])
    if arguments.small:
        small = {"labelled": 20, "teacher's": 40, "transfer": 40, "test": 20}
        record(arguments.folder, SEEDS[:1], small, 2)
    else:
        record(arguments.folder, SEEDS, SIZES, STEPS)
