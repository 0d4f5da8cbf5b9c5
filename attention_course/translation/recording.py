"""Write down what a translator does step by step, for the decoder stepper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from attention_course.translation.models import TransformerTranslator
from attention_course.translation.reading import cross_attention
from attention_course.translation.text import END, START, Vocabulary

CANDIDATES = 4


@torch.no_grad()
def read_prefixes(
    model: TransformerTranslator, prefixes: Sequence[Sequence[int]], source: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What follows each prefix of ids, all of one length, and where the last step looks.

    Gives log-probabilities (prefixes, words) and weights (prefixes, source): the mean over all
    heads and layers.
    """
    memory = model.encode(source.expand(len(prefixes), -1))
    words = torch.tensor([[START, *prefix] for prefix in prefixes])
    log_probabilities = model.decode(words, memory)[:, -1].log_softmax(dim=-1)
    weights = cross_attention(model, words, memory).mean(dim=(0, 2))[:, -1]
    return log_probabilities, weights


def record_greedy(
    model: TransformerTranslator,
    sentence: Sequence[str],
    source: Vocabulary,
    target: Vocabulary,
    longest: int = 24,
) -> dict[str, Any]:
    """Record a greedy translation, as `decoder_stepper` takes it.

    Args:
        model: the translator.
        sentence: words to translate.
        source: the vocabulary of `sentence`.
        target: the vocabulary of the translation.
        longest: most words to write.

    Returns:
        {"source": words, "greedy": steps}. A step is a dict of "word", "candidates" (pairs of word
        and probability, best first) and "weights" (one for each source word).
    """
    ids, prefix, steps = torch.tensor([source.ids(sentence)]), [], []
    while len(steps) < longest and END not in prefix:
        log_probabilities, weights = read_prefixes(model, [prefix], ids)
        best, words = log_probabilities[0].exp().topk(CANDIDATES)
        names = [target.words[word] for word in words]
        pairs = [[n, round(p, 3)] for n, p in zip(names, best.tolist(), strict=True)]
        shares = [round(weight, 2) for weight in weights[0].tolist()]
        steps.append({"word": names[0], "candidates": pairs, "weights": shares})
        prefix.append(int(words[0]))
    return {"source": list(sentence), "greedy": steps}
