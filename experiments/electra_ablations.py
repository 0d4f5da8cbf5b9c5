"""Record ELECTRA, its ablations and three generator sizes in miniature, on one thread.

    nice -n 15 python experiments/electra_ablations.py

takes a quarter of an hour of computing and writes `electra_ablations.csv` (a row for each run and
stop), `electra_ablations.txt` (the log) and `electra_detections.json` (sentences for the game) into
`attention_course/data/records/`. Chapter 11 plots them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from attention_course.data import electra_records as records
from attention_course.data.runs import record_runs, recording_options
from attention_course.electra import corpus as corpora
from attention_course.electra import objectives, scoring, training

SEEDS = (0, 1, 2)
SIZE_SEEDS = (0, 1, 2)
STOPS = (0.15e12, 0.3e12)  # floating-point operations, the same for all objectives
HALF = 0.5
# (objective, the generator's width as a share of the encoder's, seed), in the order of running
RUNS = [(objective, HALF, seed) for seed in SEEDS for objective in objectives.OBJECTIVES]
RUNS += [("ELECTRA", share, seed) for seed in SIZE_SEEDS for share in (0.25, 1.0)]
COLUMNS = (
    *("objective", "generator_share", "seed", "stop", "step", "tflop", "seconds"),
    *("tagging", "acceptability", "points", "pairs", "chance"),
    *("generator_loss", "own_loss"),
)
GAME_SENTENCES = 24


def score(progress: training.Progress, objective: str, corpus: corpora.Corpus, seed: int) -> dict:
    """Score a model on both tasks; those that can, also point at wrong words."""
    model, found = progress.model, {}
    if objective == "BERT":
        found = scoring.detection(scoring.mlm_suspicion, model, corpus)
    elif not model.objective.says_words:
        found = scoring.detection(scoring.replaced_suspicion, model, corpus)
    return {
        "tagging": scoring.tagging(model.encoder, corpus, seed),
        "acceptability": scoring.acceptability(model.encoder, corpus, seed),
        **found,
    }


def one_run(objective, share, stops, seed, corpus):
    """Yield (row, model) at each stop of one run."""
    options = {"generator_share": share} if objectives.OBJECTIVES[objective].corrupted else {}
    runs = training.pretrain(objective, corpus, stops, seed, **options)
    for stop, progress in zip(stops, runs, strict=True):
        row = {
            "objective": objective,
            "generator_share": options.get("generator_share", ""),
            "seed": seed,
            "stop": stop / 1e12,
            "step": progress.step,
            "tflop": round(progress.flops / 1e12, 4),
            "seconds": round(progress.seconds, 1),
            "generator_loss": progress.losses.get("generator", ""),
            "own_loss": progress.losses["own"],
            **score(progress, objective, corpus, seed),
        }
        yield (
            {name: round(x, 4) if isinstance(x, float) else x for name, x in row.items()},
            progress.model,
        )


@torch.no_grad()
def game(model: objectives.Pretraining, corpus: corpora.Corpus) -> list[dict[str, Any]]:
    """Corrupt test sentences by the model's generator; score every word by its discriminator."""
    sentences = []
    model.eval()
    for ids, _ in corpus.test:
        if len(sentences) == GAME_SENTENCES:
            break
        tokens = torch.tensor([ids])
        chosen = model.choose(tokens >= corpora.FIRST_WORD)
        samples = model.sample(model.generator_logits(tokens, chosen))
        given = tokens.masked_scatter(chosen, samples)
        replaced = int((given != tokens).sum())
        if not 8 <= len(ids) <= 14 or not replaced:
            continue
        scores = scoring.replaced_suspicion(model, given).sigmoid()[0, 1:]
        sentences.append(
            {
                "original": [corpus.words[i] for i in ids[1:]],
                "corrupted": [corpus.words[i] for i in given[0, 1:].tolist()],
                "chosen": (chosen[0, 1:].nonzero()[:, 0]).tolist(),
                "scores": [round(float(x), 3) for x in scores],
            }
        )
    return sentences


def all_runs(folder: Path, runs, stops, corpus: corpora.Corpus) -> Iterator[dict[str, Any]]:
    """Make all runs, one after the other; write the game's sentences when their model is there."""
    for objective, share, seed in runs:
        for row, model in one_run(objective, share, stops, seed, corpus):  # noqa: B007
            yield row
        if (objective, share, seed) == ("ELECTRA", HALF, SEEDS[0]):
            lines = [json.dumps(one, ensure_ascii=False) for one in game(model, corpus)]
            text = "[\n" + ",\n".join(lines) + "\n]\n"
            (folder / records.DETECTIONS.name).write_text(text, encoding="utf-8")


def record(folder: Path, runs, stops, sizes: dict[str, int]) -> None:
    """Make all runs and write the files as they go."""
    torch.set_num_threads(1)
    corpus = corpora.make_corpus(**sizes)
    about = f"{len(corpus.train)} sentences to read, {len(corpus.words)} ids, {len(runs)} runs"
    rows = all_runs(folder, runs, stops, corpus)
    record_runs(folder / records.RUNS.name, COLUMNS, rows, about)


if __name__ == "__main__":
    arguments = recording_options(__doc__.splitlines()[0])
    if arguments.small:
        small = {"train": 1_700, "labelled": 100, "test": 60}
        record(arguments.folder, RUNS[:5], (1e9, 2e9), small)
    else:
        record(arguments.folder, RUNS, STOPS, {})
