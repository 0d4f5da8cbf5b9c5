"""Train the generator and the discriminator that come with the course, on one thread.

    nice -n 15 python experiments/electra_pair.py

takes a few minutes of computing. It writes `electra_pair.safetensors` and `electra_pair.json`
(hash, seed, losses, date, machine) into `attention_course/data/checkpoints/`, and sentences that
this generator corrupted, for the game of chapter 11, into `attention_course/data/records/`.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import torch

from attention_course.data import electra_records as records
from attention_course.data.runs import recording_options
from attention_course.electra import corpus as corpora
from attention_course.electra import pair as pairs
from attention_course.electra import training

SEED = 0
ENTRIES = 12  # of the log
OPERATIONS = 1.8e12
SENTENCES, SHORTEST = 12, 7  # of each kind in the game, and words of a sentence at least


def game(pair: pairs.Pair, corpus: corpora.Corpus) -> tuple[list[dict], list[dict]]:
    """Corrupt sentences that the pair never read.

    Returns those in which the discriminator is sure of a word that was replaced, and those in which
    it is sure of none; without those that did not change.
    """
    found, missed = [], []
    for number, (ids, _) in enumerate(corpus.test):
        made = pairs.corrupted(pair, ids, seed=number)
        original, corrupted = made["original"], made["corrupted"]
        if len(original) < SHORTEST or original == corrupted or corpora.has_slip(original):
            continue
        words = zip(original, corrupted, made["scores"], strict=True)
        sure = any(old != new and score > 0.5 for old, new, score in words)
        (found if sure else missed).append(made)
    return found, missed


def write_game(path: Path, pair: pairs.Pair, corpus: corpora.Corpus, sentences: int) -> None:
    """Write so many sentences of each kind, in turns."""
    turns = itertools.zip_longest(*(some[:sentences] for some in game(pair, corpus)))
    lines = [json.dumps(one, ensure_ascii=False) for turn in turns for one in turn if one]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def make(
    path: Path, detections: Path, stops: list[float], sizes: dict[str, int], sentences: int
) -> None:
    """Train up to the last of `stops`, a line of the log at each, and write all files."""
    torch.set_num_threads(1)
    corpus, losses = corpora.make_corpus(**sizes), []
    for progress in training.pretrain("ELECTRA", corpus, stops, SEED):
        lately = {name: round(loss, 4) for name, loss in progress.losses.items()}
        losses.append({"step": progress.step, **lately})
        print(losses[-1], flush=True)
    made = {
        "command": "python experiments/electra_pair.py",
        "seed": SEED,
        "steps": progress.step,
        "seconds": progress.seconds,
        "losses": losses,
    }
    print(pairs.save_pair(path, progress.model, corpus.words, **made))
    write_game(detections, pairs.load_pair(path), corpus, sentences)


if __name__ == "__main__":
    arguments = recording_options(__doc__.splitlines()[0])
    stops = [OPERATIONS * (entry + 1) / ENTRIES for entry in range(ENTRIES)]
    if arguments.small:
        small = {"train": 1_700, "labelled": 100, "test": 60}
        folder = arguments.folder
        make(folder / pairs.PATH.name, folder / records.DETECTIONS.name, [1e9, 2e9], small, 3)
    else:
        make(pairs.PATH, records.DETECTIONS, stops, {}, SENTENCES)
