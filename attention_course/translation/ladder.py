"""Three translators with about the same number of parameters, and what was recorded of them.

In two of them one GRU reads and one writes. Between them stands nothing but the last state
(Sutskever et al. 2014 did this with deep LSTMs) or dot-product attention (Luong et al. 2015). The
third is a small transformer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from attention_course.data import runs
from attention_course.translation.models import RecurrentTranslator, TransformerTranslator
from attention_course.translation.reading import share_right
from attention_course.translation.text import Vocabulary
from attention_course.translation.training import train

# Name → (how to make it from the sizes of both vocabularies, its learning rate: the better of two
# that were tried on a seed that is not among the recorded ones).
RIVALS: dict[str, tuple[Callable[[int, int], nn.Module], float]] = {
    "one vector": (lambda *sizes: RecurrentTranslator(*sizes, 64, attention=False), 0.015),
    "looking back": (lambda *sizes: RecurrentTranslator(*sizes, 62, attention=True), 0.015),
    "attention only": (
        lambda *sizes: TransformerTranslator(*sizes, 48, 4, layers=1, hidden=192),
        0.008,
    ),
}
TRAIN, TEST, EPOCHS, BATCH = 3000, 150, 5, 48
# How many words the source sentence has.
GROUPS = {"up to 7 words": range(8), "8 to 10": range(8, 11), "11 and more": range(11, 99)}
RUNS = runs.RECORDS / "translation_ladder.csv"
COLUMNS = ("model", "seed", *GROUPS, "all", "parameters", "last_loss", "seconds")


def climb(
    name: str,
    pairs: Mapping[str, Sequence],
    source: Vocabulary,
    target: Vocabulary,
    seed: int,
    train_pairs: int = TRAIN,
) -> dict[str, Any]:
    """Train one of `RIVALS` and score it on unseen sentences, by the length of the source.

    Args:
        name: which rival.
        pairs: "train" and "test", as `translation_splits` gives them.
        source: vocabulary of the sources.
        target: vocabulary of the targets.
        seed: of its weights and of the order of the sentences.
        train_pairs: how many pairs it sees in each epoch.

    Returns:
        The share of sentences translated exactly in each of `GROUPS` and in "all", the number of
        "parameters" and the mean loss of a word in the last epoch, "last_loss".
    """
    make, rate = RIVALS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make(len(source), len(target))
    few, options = pairs["train"][:train_pairs], {"epochs": EPOCHS, "size": BATCH}
    *_, last = train(model, few, source, target, seed=seed, rate=rate, **options)
    tested = pairs["test"][:TEST]
    groups = {
        group: [pair for pair in tested if len(pair.source) in lengths]
        for group, lengths in GROUPS.items()
    }
    shares = {
        group: round(share_right(model, some, source, target), 4)
        for group, some in {**groups, "all": tested}.items()
    }
    count = sum(parameter.numel() for parameter in model.parameters())
    return {**shares, "parameters": count, "last_loss": round(last.loss, 4)}


def read_runs() -> list[dict[str, Any]]:
    """Read what `experiments/translation_ladder.py` recorded: one row for each model and seed.

    A row has the columns of `climb`, and "model", "seed" and "seconds" (of computing).
    """
    return runs.read_runs(RUNS, texts=("model",), whole=("seed", "parameters"))
