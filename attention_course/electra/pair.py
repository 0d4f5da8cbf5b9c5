"""The generator and the discriminator that come with the course, trained by its own code.

`experiments/electra_pair.py` makes them. Parameters are named as in chapter 11's exercise about
throwing the generator away: `generator.…`, `discriminator.…`, and heads `….head.…`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from attention_course.checkpoints import CHECKPOINTS, load, save
from attention_course.electra.corpus import FIRST_WORD, padded
from attention_course.electra.objectives import Pretraining
from attention_course.electra.scoring import replaced_suspicion

PATH = CHECKPOINTS / "electra_pair.safetensors"
_OWNERS = {  # the first part of a parameter's name, in `Pretraining` and in the file
    "encoder": "discriminator",
    "head": "discriminator.head",
    "generator": "generator",
    "generator_head": "generator.head",
}


@dataclass(frozen=True)
class Pair:
    """A trained pair: the model, the words of its ids, its weights by name, how it was made."""

    model: Pretraining
    words: list[str]
    weights: dict[str, torch.Tensor]
    made: dict[str, Any]


def _stored_name(name: str) -> str:
    owner, _, rest = name.partition(".")
    return f"{_OWNERS[owner]}.{rest}"


def save_pair(path: Path, model: Pretraining, words: Sequence[str], **made: Any) -> str:
    """Write a pair as half-precision numbers; `made` goes to `checkpoints.save`. Gives its hash."""
    # Parameters that both share are named once, for the discriminator.
    weights = {_stored_name(name): parameter for name, parameter in model.named_parameters()}
    about = {
        "words": list(words),
        "d_model": model.encoder.d_model,
        "generator_share": model.generator.d_model / model.encoder.d_model,
    }
    return save(path, weights, about=about, **made)


def load_pair(path: Path = PATH) -> Pair:
    """Read the pair that comes with the course, and check its hash.

    Raises CheckpointError if the file is missing or is another one.
    """
    checkpoint = load(path)
    about, weights = checkpoint.about, checkpoint.weights
    model = Pretraining(
        "ELECTRA",
        len(about["words"]),
        about["d_model"],
        generator_share=about["generator_share"],
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[_stored_name(name)])
    return Pair(model.eval(), about["words"], weights, checkpoint.made)


@torch.no_grad()
def corrupted(pair: Pair, ids: Sequence[int], seed: int) -> Mapping[str, Any]:
    """Let the generator corrupt a sentence of ids, and the discriminator score every word.

    Args:
        pair: the trained pair.
        ids: a sentence with the start token in front.
        seed: which words are hidden, and what is drawn for them.

    Returns:
        "original" and "corrupted" (words), "chosen" (places that were hidden) and "scores" (the
        probability that each word was replaced), all without the start token.
    """
    model, tokens = pair.model, padded([ids])
    model.random.manual_seed(seed)
    chosen = model.choose(tokens >= FIRST_WORD)
    samples = model.sample(model.generator_logits(tokens, chosen))
    given = tokens.masked_scatter(chosen, samples)
    scores = replaced_suspicion(model, given).sigmoid()[0, 1:]
    return {
        "original": [pair.words[i] for i in ids[1:]],
        "corrupted": [pair.words[i] for i in given[0, 1:].tolist()],
        "chosen": chosen[0, 1:].nonzero()[:, 0].tolist(),
        "scores": [round(float(score), 3) for score in scores],
    }
