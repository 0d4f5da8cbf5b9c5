"""Record ELECTRA, its ablations and its variants in miniature, on one thread.

    nice -n 15 python experiments/electra_ablations.py

takes half an hour of computing and writes into `attention_course/data/records/`, a row for each run
and stop, and a log beside each: `electra_ablations.csv` (the paper's five objectives and three
sizes of the generator), `electra_longer.csv` (ELECTRA and BERT, twice as long), `electra_ways.csv`
(two stages, and an adversarial generator) and `electra_masks.csv` (is [MASK] in the input a
handicap?). Names (`ablations`, `longer`, `ways`, `masks`) record only some. Chapter 11 plots them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from attention_course.data import electra_records as records
from attention_course.data.runs import record_runs, recording_options
from attention_course.electra import corpus as corpora
from attention_course.electra import objectives, scoring, training

SEEDS = (0, 1, 2)
SHORT = (0.15e12, 0.3e12)  # floating-point operations, the same for all objectives
LONG = (0.6e12,)
STEPS = (1_000,)
HALF = 0.5
COLUMNS = (
    *("objective", "generator_share", "seed", "stop", "step", "tflop", "seconds"),
    *("tagging", "acceptability", "points", "pairs", "chance"),
    *("generator_loss", "own_loss", "guessed", "entropy"),
)
IN_STAGES = "two stages"


class Run(NamedTuple):
    """One training: `stops` count operations, or steps if `by` says so."""

    objective: str
    seed: int
    stops: tuple[float, ...]
    share: float = HALF  # of the encoder's width that the generator has, if there is one
    by: str = "flops"

    @property
    def has_generator(self) -> bool:
        """Whether the objective reads samples."""
        known = objectives.OBJECTIVES | objectives.VARIANTS
        return self.objective == IN_STAGES or known[self.objective].corrupted

    def start(self, corpus: corpora.Corpus) -> Iterator[training.Progress]:
        """Train, and yield at each stop."""
        if self.objective == IN_STAGES:
            return training.pretrain_in_stages(corpus, *self.stops, self.seed)
        options = {"generator_share": self.share} if self.has_generator else {}
        return training.pretrain(
            self.objective, corpus, self.stops, self.seed, by=self.by, **options
        )


def ablations(stops: tuple[float, ...]) -> list[Run]:
    """The paper's five objectives, and ELECTRA with two more generators."""
    runs = [Run(name, seed, stops) for seed in SEEDS for name in objectives.OBJECTIVES]
    return runs + [Run("ELECTRA", seed, stops, share) for seed in SEEDS for share in (0.25, 1.0)]


def longer(stops: tuple[float, ...]) -> list[Run]:
    """ELECTRA and BERT for more operations."""
    return [Run(name, seed, stops) for seed in SEEDS for name in ("ELECTRA", "BERT")]


def ways(stops: tuple[float, ...]) -> list[Run]:
    """ELECTRA, a discriminator after its generator, and a generator that is paid for mistakes."""
    runs = []
    for seed in SEEDS:
        runs += [Run("ELECTRA", seed, stops), Run("adversarial", seed, stops)]
        runs += [Run(IN_STAGES, seed, stops, 1.0)]
    return runs


def masks(stops: tuple[float, ...]) -> list[Run]:
    """The same question about the same words; [MASK] in the input always, mostly, never."""
    names = ("MLM, only [MASK]", "BERT", "Replace MLM")
    return [Run(name, seed, stops, by="step") for seed in SEEDS for name in names]


def score(model: objectives.Pretraining, corpus: corpora.Corpus, seed: int) -> dict[str, float]:
    """Score a model on both tasks; those that can, also point at wrong words or fill holes."""
    found = {
        "tagging": scoring.tagging(model.encoder, corpus, seed),
        "acceptability": scoring.acceptability(model.encoder, corpus, seed),
    }
    if model.objective.corrupted:
        found |= scoring.guessing(model, corpus)
        if not model.objective.says_words:
            found |= scoring.detection(scoring.replaced_suspicion, model, corpus)
    else:
        found |= scoring.detection(scoring.mlm_suspicion, model, corpus)
    return found


def rows(runs: Iterable[Run], corpus: corpora.Corpus) -> Iterator[dict[str, Any]]:
    """Make all runs, one after the other; a row at each stop."""
    for run in runs:
        for stop, progress in zip(run.stops, run.start(corpus), strict=True):
            row = {
                "objective": run.objective,
                "generator_share": run.share if run.has_generator else "",
                "seed": run.seed,
                "stop": stop / 1e12 if run.by == "flops" else stop,
                "step": progress.step,
                "tflop": progress.flops / 1e12,
                "seconds": round(progress.seconds, 1),
                "generator_loss": progress.losses.get("generator", ""),
                "own_loss": progress.losses["own"],
                **score(progress.model, corpus, run.seed),
            }
            yield {name: round(x, 4) if isinstance(x, float) else x for name, x in row.items()}


# name: (file, its runs, stops, stops of a trial)
PLANS = {
    "ablations": (records.RUNS, ablations, SHORT, (1e9, 2e9)),
    "longer": (records.LONGER, longer, LONG, (1e9,)),
    "ways": (records.WAYS, ways, SHORT[-1:], (1e9,)),
    "masks": (records.MASKS, masks, STEPS, (2,)),
}


def record(folder: Path, names: Iterable[str], small: bool) -> None:
    """Make the runs that are named and write the files as they go."""
    torch.set_num_threads(1)
    sizes = {"train": 1_700, "labelled": 100, "test": 60} if small else {}
    corpus = corpora.make_corpus(**sizes)
    for name in names:
        file, plan, stops, few = PLANS[name]
        runs = plan(few if small else stops)
        about = f"{len(corpus.train)} sentences to read, {len(corpus.words)} ids, {len(runs)} runs"
        record_runs(folder / file.name, COLUMNS, rows(runs, corpus), about)


if __name__ == "__main__":
    arguments = recording_options(__doc__.splitlines()[0], PLANS)
    record(arguments.folder, arguments.names, arguments.small)
